"""The packaged model, on this machine's own processor: nothing is sent anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.batches import by_length, side_by_side
from recollect.errors import EmbeddingError
from recollect.onnx import cores, give_freed_memory_back, load_session, load_tokenizer, padded
from recollect.ports import Role
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.types import Vectors

Tokens: TypeAlias = npt.NDArray[np.int32]

NAME = "granite-embedding-30m-english"
DIMENSIONS = 384
FOLDER = Path(__file__).parent / "models" / NAME
MAX_TOKENS = 512
PADDING = 1
"""The model's `<pad>` token."""
MAX_CHARACTERS = MAX_TOKENS * 128
"""No token of the model is longer than 128 characters, so what stands behind these can never be among the first
512 tokens, and need not be cut into tokens."""
BATCH_TOKENS = 512
"""Padded tokens per batch: from 256 to 1024 make no difference, beyond it gets slower (benchmarks/embedding.py), and
a question that arrives during an import waits for whole batches."""
SLICE = 1024
"""Texts cut into tokens at once: the tokenizer's own results take some 100 bytes a token, ours take 4."""


class LocalEmbedder:
    """ONNX Runtime with the model in `folder`, loaded once, when the first text arrives.

    Each batch runs on one thread, and `threads` batches run side by side (default: one per core): for texts as short
    as memories that is faster than sharing each batch among the cores, and a lone question loses nothing by it.
    """

    def __init__(self, folder: Path = FOLDER, *, threads: int | None = None, batch_tokens: int = BATCH_TOKENS) -> None:
        self._folder = folder
        self._threads = threads or cores()
        self._batch_tokens = batch_tokens
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="recollect-embed")
        self._model: _Model | None = None
        self._loading = Lock()
        self._closed = False

    @classmethod
    def named(cls, argument: str, settings: Settings) -> LocalEmbedder | None:  # noqa: ARG003 (every embedder's)
        """The embedder of `local`."""
        return None if argument else cls()

    in_process = True

    @property
    def name(self) -> str:
        return NAME

    @property
    def dimensions(self) -> int:
        return DIMENSIONS

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:  # noqa: ARG002 (one model for all)
        if self._closed:
            raise EmbeddingError("The local embedder was closed: open a new client to embed more texts")
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        if not texts:
            return vectors
        loop = asyncio.get_running_loop()
        model = await loop.run_in_executor(self._pool, self._load)
        tokens = await loop.run_in_executor(self._pool, model.tokens, texts)

        async def fill(batch: list[int]) -> None:
            vectors[batch] = await loop.run_in_executor(self._pool, model.vectors, [tokens[i] for i in batch])

        await side_by_side(fill, by_length([len(t) for t in tokens], self._batch_tokens), self._threads)
        return vectors

    async def close(self) -> None:
        """Wait for the batches under way, and let go of the model."""
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)
        self._model = None

    def _load(self) -> _Model:
        with self._loading:
            if self._model is None:
                self._model = _Model(self._folder)
                give_freed_memory_back()
            return self._model


class _Model:
    """The tokenizer and the network, both safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        for file in (folder / "tokenizer.json", folder / "model.onnx"):
            if not file.is_file():
                raise EmbeddingError(f"The local model's file {file} is missing: install recollect again")
        try:
            self._tokenizer = load_tokenizer(folder / "tokenizer.json", MAX_TOKENS)
            self._session = load_session(folder / "model.onnx")
        except Exception as error:
            reason = type(error).__name__
            raise EmbeddingError(
                f"The local model in {folder} cannot be loaded ({reason}): install recollect again"
            ) from error

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        found: list[Tokens] = []
        for start in range(0, len(texts), SLICE):
            heads = [text[:MAX_CHARACTERS] for text in texts[start : start + SLICE]]
            found.extend(np.array(each.ids, np.int32) for each in self._tokenizer.encode_batch_fast(heads))
        return found

    def vectors(self, batch: Sequence[Tokens]) -> Vectors:
        """One unit vector per text; the network ignores padding, so batch-mates do not matter."""
        ids, mask = padded(batch, PADDING)
        try:
            (vectors,) = self._session.run(["emb"], {"input_ids": ids, "attention_mask": mask})
        except Exception as error:
            raise EmbeddingError(f"The local model failed on a batch of {len(batch)} texts: {error}") from error
        return np.asarray(vectors, np.float32)
