"""A seed's text index is made in the background, once, by whichever recall needs it first."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from recollect.conformance.samples import ALL, HERE, found, question, record
from recollect.conformance.words import PLAIN
from recollect.errors import BackendError
from recollect.ports import WordHits
from recollect.stores.sqlite import text_indexes
from recollect.stores.sqlite.store import SqliteStore

SEARCH = question("umbrella", **PLAIN)
COUNT = 4_500
"""Three batches."""


async def filled(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    await store.add(HERE, [record(f"{number:04}", f"umbrella {number}") for number in range(COUNT)])
    return store


async def begun(store: SqliteStore) -> asyncio.Task[WordHits]:
    """A search that waits for its index."""
    search = asyncio.create_task(store.search_words(HERE, SEARCH, ALL, limit=10))
    while not store._building:  # noqa: ASYNC110 (the store has no event to tell)
        await asyncio.sleep(0)
    return search


async def test_a_late_lane_does_not_stop_it(tmp_path: Path) -> None:
    """The search that began it is cancelled, and the next one finds the index that was made meanwhile."""
    store = await filled(tmp_path / "memory.db")
    search = await begun(store)
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    await asyncio.gather(*store._building.values())
    assert await store._connections.read(lambda db: text_indexes.missing_index(db, SEARCH)) is None
    assert len(await found(store, "umbrella", **PLAIN)) == 10
    await store.close()


async def test_searches_at_once_wait_for_one(tmp_path: Path) -> None:
    """Two searches that need the same index share its making."""
    store = await filled(tmp_path / "memory.db")
    first, second = await begun(store), asyncio.create_task(store.search_words(HERE, SEARCH, ALL, limit=10))
    (making,) = store._building.values()
    assert (await first).hits == (await second).hits
    assert making.done()
    assert not store._building
    await store.close()


async def test_closing_ends_it_between_two_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits is told that the store is closed, and the next process goes on where this one ended."""
    store = await filled(tmp_path / "memory.db")
    build = text_indexes.build_index
    with monkeypatch.context() as endless:
        endless.setattr(text_indexes, "build_index", lambda db, name: build(db, name, batch=10) and False)
        search = await begun(store)
        await store.close()
        with pytest.raises(BackendError, match="not open"):
            await search
    assert not store._building
    await store.open()
    assert len(await found(store, "umbrella", **PLAIN)) == 10
    await store.close()
