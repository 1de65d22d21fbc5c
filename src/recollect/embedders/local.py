"""The packaged model, run on this machine's CPU. Nothing is sent anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from errno import ENOENT
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.batches import by_length, side_by_side
from recollect.embedders.conventions import conventions_of
from recollect.embedders.roles import with_roles
from recollect.errors import EmbeddingError
from recollect.onnx import cores, give_freed_memory_back, load_session, load_tokenizer, padded
from recollect.ports import Embedder, Role
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

Tokens: TypeAlias = npt.NDArray[np.int32]
Tokenize: TypeAlias = Callable[[Sequence[str]], list[Tokens]]
"""Turns texts into token numbers, at most `MAX_TOKENS` each. Called from several threads."""

NAME = "granite-embedding-30m-english"
DIMENSIONS = 384
FOLDER = Path(__file__).parent / "models" / NAME
MAX_TOKENS = 512
PADDING = 1
"""The packaged model's `<pad>` token. Any other would do, because padding is masked."""
MAX_CHARACTERS = MAX_TOKENS * 128
"""No token of the model is longer than 128 characters, so nothing after these can be among the first 512 tokens."""
BATCH_TOKENS = 512
"""Padded tokens per batch. Beyond 1024 it gets slower (benchmarks/embedding.py), and a question that arrives during an
import waits for whole batches."""
POOLED = ("emb", "sentence_embedding")
"""Names of outputs that hold one vector per text."""
SLICE = 1024
"""Texts tokenized at a time: the tokenizer's results take about 100 bytes a token, ours take 4."""


class LocalEmbedder:
    """Runs the model in `folder` with ONNX Runtime. The model is loaded when the first text arrives.

    Each batch runs on one thread, and `threads` batches run concurrently (default: one per core). For short texts that
    is faster than sharing a batch among the cores. Another model needs a `model.onnx`, and a `tokenizer.json` unless
    `load_tokenizer` reads something else. `pooling` is for a network that returns a vector for each token. `remedy`
    ends the error about files that cannot be read.
    """

    def __init__(
        self,
        folder: Path = FOLDER,
        *,
        name: str = NAME,
        dimensions: int | None = DIMENSIONS,
        load_tokenizer: Callable[[Path], Tokenize] | None = None,
        pooling: str = "mean",
        remedy: str = "install recollect again",
        threads: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        self._folder = folder
        self._name = name
        self._dimensions = dimensions
        self._load_tokenizer = load_tokenizer or _load_tokenizer
        self._pooling = pooling
        self._remedy = remedy
        self._threads = threads or cores()
        self._batch_tokens = batch_tokens
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="recollect-embed")
        self._model: _Model | None = None
        self._loading = Lock()
        self._closed = False

    @classmethod
    def named(cls, argument: str, settings: Settings) -> Embedder:
        """The embedder of `local` or `local:FOLDER`. A folder's name is the name of its model."""
        if not argument:
            return cls()
        folder = Path(argument).expanduser()
        model = folder.resolve().name
        pooling = conventions_of(model, settings.models.get(model)).pooling
        embedder = cls(folder, name=model, dimensions=None, pooling=pooling, remedy="put a whole model there")
        return with_roles(embedder, model, settings)

    in_process = True

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimensions(self) -> int | None:
        return self._dimensions

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:  # noqa: ARG002 (one model for all)
        if self._closed:
            raise EmbeddingError("the local embedder is closed: open a new client to embed more texts")
        if not texts:
            return np.empty((0, self._dimensions or 0), np.float32)
        loop = asyncio.get_running_loop()
        model = await loop.run_in_executor(self._pool, self._load)
        tokens = await loop.run_in_executor(self._pool, model.tokens, texts)
        found: dict[int, Vector] = {}

        async def fill(batch: list[int]) -> None:
            vectors = await loop.run_in_executor(self._pool, model.vectors, [tokens[i] for i in batch])
            found.update(zip(batch, vectors, strict=True))

        await side_by_side(fill, by_length([len(t) for t in tokens], self._batch_tokens), self._threads)
        vectors = np.stack([found[i] for i in range(len(texts))])
        self._dimensions = vectors.shape[1]
        return vectors

    async def close(self) -> None:
        """Wait for running batches, and free the model."""
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)
        self._model = None

    def _load(self) -> _Model:
        with self._loading:
            if self._model is None:
                self._model = _Model(self._folder, self._load_tokenizer, self._pooling, self._remedy)
                give_freed_memory_back()
            return self._model


class _Model:
    """The tokenizer and the network, both safe to use from several threads."""

    def __init__(self, folder: Path, load_tokenizer: Callable[[Path], Tokenize], pooling: str, remedy: str) -> None:
        try:
            self._tokenize = load_tokenizer(folder)
            self._session = load_session(existing(folder / "model.onnx"))
        except FileNotFoundError as error:
            raise EmbeddingError(f"the local model's file {error.filename} is missing: {remedy}") from error
        except Exception as error:
            reason = type(error).__name__
            raise EmbeddingError(f"the local model in {folder} cannot be loaded ({reason}): {remedy}") from error
        self._pooling = pooling
        self._inputs = {node.name for node in self._session.get_inputs()}
        outputs = [node.name for node in self._session.get_outputs()]
        self._output = next((name for name in POOLED if name in outputs), outputs[0])

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        found: list[Tokens] = []
        for start in range(0, len(texts), SLICE):
            heads = [text[:MAX_CHARACTERS] for text in texts[start : start + SLICE]]
            found.extend(self._tokenize(heads))
        return found

    def vectors(self, batch: Sequence[Tokens]) -> Vectors:
        """One unit vector per text. Padding is masked, so the rest of the batch does not matter."""
        ids, mask = padded(batch, PADDING)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            (output,) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        except Exception as error:
            raise EmbeddingError(f"the local model failed on a batch of {len(batch)} texts: {error}") from error
        return unit_vectors(np.asarray(output, np.float32), mask, self._pooling)


def unit_vectors(output: npt.NDArray[np.float32], mask: npt.NDArray[np.int64], pooling: str) -> Vectors:
    """One vector of length 1 per text. A vector per token is pooled first."""
    if output.ndim == 3:
        if pooling == "mean":
            output = (output * mask[:, :, None]).sum(axis=1)
        else:
            output = output[np.arange(len(output)), 0 if pooling == "cls" else mask.sum(axis=1) - 1]
    return np.asarray(output / np.linalg.norm(output, axis=1, keepdims=True), np.float32)


def existing(file: Path) -> Path:
    """The file itself, if it is there. Raises FileNotFoundError."""
    if not file.is_file():
        raise FileNotFoundError(ENOENT, "no such file", str(file))
    return file


def _load_tokenizer(folder: Path) -> Tokenize:
    tokenizer = load_tokenizer(existing(folder / "tokenizer.json"), MAX_TOKENS)
    tokenizer.no_padding()
    return lambda texts: [np.array(each.ids, np.int32) for each in tokenizer.encode_batch_fast(list(texts))]
