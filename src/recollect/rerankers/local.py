"""The packaged cross-encoder, on this machine's own processor: nothing is sent anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import numpy as np
import numpy.typing as npt

from recollect.batches import by_length, side_by_side
from recollect.errors import BackendError
from recollect.onnx import cores, give_freed_memory_back, load_session, load_tokenizer, padded
from recollect.settings import Settings

NAME = "reranker-6"
FOLDER = Path(__file__).parent / "models" / NAME
MAX_TOKENS = 384
"""Question and passage together. The model was measured at this length, and time grows faster than length."""
MAX_CHARACTERS = MAX_TOKENS * 16
"""What stands behind these is hardly ever among the first tokens, and need not be cut into tokens."""
PADDING = 0
BATCH_TOKENS = 512
"""Padded tokens of one batch. More is no faster, and a question waits for the batches of another one."""


class LocalReranker:
    """ONNX Runtime with the model in `folder`, loaded once, when the first question arrives.

    Each batch runs on one thread, and `threads` batches run side by side (default: one for each core).
    """

    in_process = True
    name = NAME
    languages = ("english",)

    def __init__(self, folder: Path = FOLDER, *, threads: int | None = None) -> None:
        self._folder = folder
        self._threads = threads or cores()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="recollect-rerank")
        self._model: _Model | None = None
        self._loading = Lock()
        self._closed = False

    @classmethod
    def named(cls, argument: str, settings: Settings) -> LocalReranker | None:  # noqa: ARG003 (it has no settings)
        """`local`."""
        return None if argument else cls()

    async def score(self, question: str, passages: Sequence[str]) -> list[float]:
        if self._closed:
            raise BackendError("the local reranker was closed: open a new client", backend=NAME)
        if not passages:
            return []
        loop = asyncio.get_running_loop()
        model = await loop.run_in_executor(self._pool, self._load)
        pairs = await loop.run_in_executor(self._pool, model.pairs, question, passages)
        scores = np.empty(len(passages))

        async def fill(batch: list[int]) -> None:
            scores[batch] = await loop.run_in_executor(self._pool, model.probabilities, [pairs[i] for i in batch])

        await side_by_side(fill, by_length([len(ids) for ids, _ in pairs], BATCH_TOKENS), self._threads)
        return [float(score) for score in scores]

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


Pair = tuple[list[int], list[int]]
"""The tokens of question and passage, and which of the two each belongs to."""


class _Model:
    """The tokenizer and the network, both safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        for file in (folder / "tokenizer.json", folder / "model.onnx"):
            if not file.is_file():
                raise BackendError(f"the reranker's file {file} is missing: install recollect again", backend=NAME)
        try:
            self._tokenizer = load_tokenizer(folder / "tokenizer.json", MAX_TOKENS)
            self._session = load_session(folder / "model.onnx")
        except Exception as error:
            raise BackendError(
                f"the reranker in {folder} cannot be loaded ({type(error).__name__}): install recollect again",
                backend=NAME,
            ) from error

    def pairs(self, question: str, passages: Sequence[str]) -> list[Pair]:
        head = question[:MAX_CHARACTERS]
        encoded = self._tokenizer.encode_batch_fast([(head, passage[:MAX_CHARACTERS]) for passage in passages])
        return [(each.ids, each.type_ids) for each in encoded]

    def probabilities(self, batch: Sequence[Pair]) -> npt.NDArray[np.float64]:
        """The chance that each passage answers the question, as the model's logit says it. The network ignores
        padding, so batch-mates do not matter.
        """
        ids, mask = padded([ids for ids, _ in batch], PADDING)
        types, _ = padded([types for _, types in batch], PADDING)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        (logits,) = self._session.run(["score"], inputs)
        scores: npt.NDArray[np.float64] = 1 / (1 + np.exp(-np.asarray(logits, np.float64)))
        return scores
