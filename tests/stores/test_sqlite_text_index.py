"""A seed's text index is made in the background, once, by whichever recall needs it first."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from recollect import AsyncRecollect
from recollect.conformance.samples import ALL, HERE, found, question, record
from recollect.conformance.words import PLAIN
from recollect.errors import BackendError, InvalidRequest
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


async def test_a_large_file_says_how_far_its_index_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question does not wait for an index that lacks much: the other lanes answer. Once it is there it is used."""
    monkeypatch.setattr(text_indexes, "WAITED_FOR", 1)
    async with AsyncRecollect(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing") as opened:
        space = opened.space("work")
        for number in range(3):
            await space.remember(f"umbrella {number}", kind="knowledge")
        answer = await space.recall("umbrella", recipe="drobek")
        (keyword,) = [lane for lane in answer.lanes if lane.leg == "keyword"]
        assert (answer.degraded, len(answer.hits), keyword.status) == (True, 3, "failed")
        assert keyword.reason == "the index of 'simple' words is being built: about 0 of 3 memories are in it"
        store = opened._store
        assert isinstance(store, SqliteStore)
        await asyncio.gather(*store._building.values())
        assert not (await space.recall("umbrella", recipe="drobek")).degraded


async def test_a_question_makes_no_index_of_another_name(tmp_path: Path) -> None:
    """A file knows two configurations, whatever a question names."""
    store = await filled(tmp_path / "memory.db")
    tables = "SELECT name FROM sqlite_schema ORDER BY name"
    before = await store._connections.read(lambda db: db.execute(tables).fetchall())
    for name in ("german", "words_simple", "klingon"):
        with pytest.raises(InvalidRequest, match="use one of simple, english"):
            await store.search_words(HERE, question("umbrella", **{**PLAIN, "words": name}), ALL, limit=10)
    assert await store._connections.read(lambda db: db.execute(tables).fetchall()) == before
    await store.close()


async def test_migrate_makes_the_indexes_of_the_recipes_in_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those, and no others; a second time there is nothing to do."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    await (await filled(tmp_path / "memory.db")).close()
    monkeypatch.setenv("RECOLLECT_RECIPES", "pgmemory, novamem")
    steps = ("index all texts under the configuration english",)
    assert (await AsyncRecollect.migrate(url, dry_run=True)).steps == steps
    assert (await AsyncRecollect.migrate(url)).steps == steps
    assert (await AsyncRecollect.migrate(url)).steps == ()
    store = SqliteStore(tmp_path / "memory.db")
    await store.open()
    ready = [await store._connections.read(partial(text_indexes.is_ready, name)) for name in ("english", "simple")]
    assert ready == [True, False]
    await store.close()
    monkeypatch.setenv("RECOLLECT_RECIPES", "nothing")
    with pytest.raises(InvalidRequest, match="the recipe 'nothing' does not exist"):
        await AsyncRecollect.migrate(url)
