"""The disk cache."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recollect.embedders import disk
from recollect.embedders.disk import DiskCachedEmbedder
from recollect.embedders.hashing import HashingEmbedder
from recollect.errors import EmbeddingError
from recollect.ports import Role
from tests.embedders.conftest import CountingEmbedder

if TYPE_CHECKING:
    from recollect.types import Vectors


async def embed_once(inner: HashingEmbedder, folder: Path, texts: Sequence[str]) -> Vectors:
    embedder = DiskCachedEmbedder(inner, folder)
    try:
        return await embedder.embed(texts, space="s", role="document")
    finally:
        await embedder.close()


async def test_a_second_run_embeds_only_what_is_new(tmp_path: Path) -> None:
    """Known texts come from disk, to the last bit and in order; copies in one call are embedded once."""
    first, second = CountingEmbedder(), CountingEmbedder()
    before = await embed_once(first, tmp_path / "new" / "folder", ["fox", "owl", "fox"])
    after = await embed_once(second, tmp_path / "new" / "folder", ["owl", "bee", "fox"])
    assert (first.calls, second.calls) == ([["fox", "owl"]], [["bee"]])
    assert np.array_equal(after[[2, 0]], before[[0, 1]])
    assert after.dtype == np.float32


async def test_another_model_has_its_own_vectors(tmp_path: Path) -> None:
    """A vector is found under the name of the embedder that made it, and no other."""
    await embed_once(CountingEmbedder(32), tmp_path, ["fox"])
    other = CountingEmbedder(16)
    assert (await embed_once(other, tmp_path, ["fox"])).shape == (1, 16)
    assert other.calls == [["fox"]]


async def test_no_texts(tmp_path: Path) -> None:
    """No texts give no rows."""
    assert (await embed_once(CountingEmbedder(), tmp_path, [])).shape == (0, 32)


async def test_an_interrupted_run_keeps_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was embedded before a failure is not embedded again."""

    class FailsAfterOne(CountingEmbedder):
        async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
            if self.calls:
                raise EmbeddingError("down")
            return await super().embed(texts, space=space, role=role)

    monkeypatch.setattr(disk, "SLICE", 2)
    with pytest.raises(EmbeddingError, match="down"):
        await embed_once(FailsAfterOne(), tmp_path, ["a", "b", "c", "d"])
    again = CountingEmbedder()
    await embed_once(again, tmp_path, ["a", "b", "c", "d"])
    assert again.calls == [["c", "d"]]


def _embed_many(folder: Path, start: int) -> None:
    async def run() -> None:
        embedder = DiskCachedEmbedder(HashingEmbedder(32), folder)
        for i in range(start, start + 40):
            await embedder.embed([f"text {i}"], space="s", role="document")
        await embedder.close()

    asyncio.run(run())


async def test_two_processes_share_a_folder(tmp_path: Path) -> None:
    """Processes that write at the same time keep each other's vectors."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_embed_many, args=(tmp_path, start)) for start in (0, 20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        await asyncio.to_thread(worker.join)
    assert [worker.exitcode for worker in workers] == [0, 0]
    after = CountingEmbedder(32)
    await embed_once(after, tmp_path, [f"text {i}" for i in range(60)])
    assert after.calls == []


async def test_a_file_that_is_no_cache(tmp_path: Path) -> None:
    """A foreign file in its place is left alone and named in one sentence."""
    (tmp_path / "embeddings.db").write_bytes(b"not a database, but someone's file" * 100)
    with pytest.raises(EmbeddingError, match=r"embeddings\.db cannot be used .* delete it"):
        await embed_once(CountingEmbedder(), tmp_path, ["fox"])
    assert (tmp_path / "embeddings.db").read_bytes().startswith(b"not a database")
