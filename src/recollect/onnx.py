"""Runs packaged ONNX models on this machine's CPU, for embedders and rerankers."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Tokens: TypeAlias = npt.NDArray[np.int64]
"""One row of token numbers, or of its mask, for each text."""


def load_tokenizer(file: Path, most_tokens: int) -> Tokenizer:
    """The tokenizer in a `tokenizer.json`, cutting texts to `most_tokens`."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.enable_truncation(most_tokens)
    return tokenizer


def load_session(file: Path) -> Any:
    """An inference session with one thread. Batches run concurrently instead, which is faster for short texts."""
    # The variable must be set before the import, which since 1.29 opens a cache file and starts an uploader on Linux
    # and macOS. The call after it covers Windows, and a process that imported onnxruntime before us.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime  # type: ignore[import-untyped]  # it ships no types

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # only errors: warnings would be printed into the caller's terminal
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def padded(rows: Sequence[Sequence[int] | npt.NDArray[np.int32]], padding: int) -> tuple[Tokens, Tokens]:
    """Token numbers of different lengths as one array, and its mask.

    >>> ids, mask = padded([[5, 6, 7], [8]], padding=0)
    >>> ids.tolist(), mask.tolist()
    ([[5, 6, 7], [8, 0, 0]], [[1, 1, 1], [1, 0, 0]])
    """
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), lengths.max()), padding, np.int64)
    for filled, row in zip(ids, rows, strict=True):
        filled[: len(row)] = row
    return ids, (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)


def give_freed_memory_back() -> None:
    """Return freed memory to the system: after loading a model, glibc would keep some 140 MB of it for good."""
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def cores() -> int:
    """The cores that this process may use. In a container that can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
