"""The query cache."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recollect.embedders import QueryCache
from recollect.errors import EmbeddingError
from recollect.ports import Role
from tests.embedders.conftest import CountingEmbedder

if TYPE_CHECKING:
    from recollect.types import Vectors


class GatedEmbedder(CountingEmbedder):
    """Answers when its gate opens; fails for the space `locked`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        vectors = await super().embed(texts, space=space, role=role)
        await self.gate.wait()
        if space == "locked":
            raise EmbeddingError("No key")
        return vectors


async def test_asked_twice_embedded_once(counting: CountingEmbedder) -> None:
    """The second time a question comes from the cache, in any space, equal and read-only."""
    cache = QueryCache(counting)
    first = await cache.embed_query("fox", space="a")
    second = await cache.embed_query("fox", space="b")
    assert counting.calls == [["fox"]]
    assert np.array_equal(first, second)
    assert not second.flags.writeable


async def test_a_minute_later(counting: CountingEmbedder) -> None:
    """A question is embedded anew once 60 seconds have passed, however often it was asked meanwhile."""
    clock = [0.0]
    cache = QueryCache(counting, clock=lambda: clock[0])
    for seconds, calls in ((0.0, 1), (30.0, 1), (59.9, 1), (60.0, 2)):
        clock[0] = seconds
        await cache.embed_query("fox", space="s")
        assert len(counting.calls) == calls


async def test_the_least_recently_asked_makes_room(counting: CountingEmbedder) -> None:
    """Of 50 entries, the one not asked for longest goes first."""
    cache = QueryCache(counting)
    for i in range(50):
        await cache.embed_query(f"q{i}", space="s")
    await cache.embed_query("q0", space="s")
    await cache.embed_query("q50", space="s")
    counting.calls.clear()
    await cache.embed_query("q0", space="s")
    assert counting.calls == []
    await cache.embed_query("q1", space="s")
    assert counting.calls == [["q1"]]


async def test_equal_questions_at_once_embed_once() -> None:
    """Concurrent equal questions of a space share one embedding."""
    embedder = GatedEmbedder()
    cache = QueryCache(embedder)
    tasks = [asyncio.create_task(cache.embed_query("fox", space="s")) for _ in range(5)]
    await asyncio.sleep(0)
    embedder.gate.set()
    vectors = await asyncio.gather(*tasks)
    assert embedder.calls == [["fox"]]
    assert all(np.array_equal(vectors[0], vector) for vector in vectors)


async def test_failures_are_not_kept_nor_shared_between_spaces() -> None:
    """A space without a key fails alone, every time, while another's equal question is answered."""
    embedder = GatedEmbedder()
    cache = QueryCache(embedder)
    locked = asyncio.create_task(cache.embed_query("fox", space="locked"))
    other = asyncio.create_task(cache.embed_query("fox", space="open"))
    await asyncio.sleep(0)
    embedder.gate.set()
    with pytest.raises(EmbeddingError):
        await locked
    assert (await other).shape == (32,)
    with pytest.raises(EmbeddingError):
        await cache.embed_query("other", space="locked")
    with pytest.raises(EmbeddingError):
        await cache.embed_query("other", space="locked")
    assert embedder.calls.count(["other"]) == 2


async def test_a_caller_who_gives_up_leaves_the_vector_to_the_next() -> None:
    """A cancelled question does not cancel the others that wait for it, and its vector is cached when it comes."""
    embedder = GatedEmbedder()
    cache = QueryCache(embedder)
    late = asyncio.create_task(cache.embed_query("fox", space="s"))
    patient = asyncio.create_task(cache.embed_query("fox", space="s"))
    await asyncio.sleep(0)
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    embedder.gate.set()
    await patient
    await cache.embed_query("fox", space="s")
    assert embedder.calls == [["fox"]]


async def test_close_stops_what_is_under_way() -> None:
    """Closing cancels an embedding nobody can wait for any more."""
    embedder = GatedEmbedder()
    cache = QueryCache(embedder)
    waiting = asyncio.create_task(cache.embed_query("fox", space="s"))
    await asyncio.sleep(0)
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
