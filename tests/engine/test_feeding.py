"""External indexes beside a store: fed through the outbox, searched in its place, made anew when they are lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import AsyncRecollect, InvalidRequest
from recollect.conformance.samples import HERE, MODEL, record, unit
from recollect.engine import feeding
from recollect.engine.feeding import Feeder
from recollect.indexes.falkordb.index import FalkorIndex
from recollect.indexes.qdrant.index import QdrantIndex
from recollect.ports import Change, ExternalIndex, Store
from recollect.settings import Settings
from recollect.stores.sqlite.store import SqliteStore
from tests.engine.faulty import until

QUESTION = "which invoice was paid?"


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, falkordb_url: str) -> Settings:
    """Three tiers: words in a store, vectors in Qdrant, links in FalkorDB."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    if request.param == "postgres":
        url = f"postgresql://?{urlencode(conninfo_to_dict(request.getfixturevalue('pg_database')))}"
    return Settings(url, "hashing", vectors=f"qdrant+local:///{tmp_path / 'qdrant'}", graph=falkordb_url)


async def told(recollect: AsyncRecollect) -> None:
    """Wait until no index has anything left to be told."""
    async with asyncio.timeout(30):
        while any(lag.waiting for lag in (await recollect.lag()).values()):
            await recollect.sync()
            await asyncio.sleep(0.01)


async def test_three_tiers_answer_together(settings: Settings) -> None:
    """What is remembered is found by words in the store, by meaning in Qdrant and by links in FalkorDB."""
    async with AsyncRecollect(settings=settings) as recollect:
        work = recollect.space("work")
        paid = (await work.remember("Invoice 12345 was paid on 3 May")).memory
        other = (await work.remember("Ada prefers tea")).memory
        await work.link(paid.id, other.id, relation="about", strength=0.9)
        await work.settle()
        await told(recollect)
        answer = await work.recall(QUESTION)
        assert not answer.degraded
        assert {lane.lane: lane.status for lane in answer.lanes} == dict.fromkeys(("vector", "keyword", "graph"), "ok")
        assert answer[0].memory.id == paid.id
        assert {part.lane for hit in answer for part in hit.why} == {"vector", "keyword", "graph"}
        diagnosis = await recollect.doctor()
        assert diagnosis.ok, diagnosis


async def test_forgotten_and_changed_memories_reach_the_indexes(settings: Settings) -> None:
    """After a change, an index holds what the store holds: nothing forgotten, filters by what holds now."""
    async with AsyncRecollect(settings=settings) as recollect:
        work = recollect.space("work")
        kept = (await work.remember("the umbrella is red", tags=["old"])).memory
        gone = (await work.remember("the umbrella is blue")).memory
        await told(recollect)
        await work.update(kept.id, tags=["new"])
        await work.forget(gone.id)
        await told(recollect)
        by_meaning = {"keyword": 0.0, "graph": 0.0}
        assert [hit.memory.id for hit in await work.recall("umbrella", tags=["new"], weights=by_meaning)] == [kept.id]
        assert len(await work.recall("umbrella", tags=["old"], weights=by_meaning)) == 0
        assert (await recollect.doctor()).ok


async def test_an_index_that_comes_later_is_told_everything(settings: Settings) -> None:
    """A store that was used without an index hands it all that is there when it is first configured."""
    async with AsyncRecollect(settings.url, embedder="hashing") as alone:
        await alone.space("work").remember("Invoice 12345 was paid on 3 May")
        await alone.space("work").settle()
    async with AsyncRecollect(settings=settings) as recollect:
        await told(recollect)
        assert len(await recollect.space("work").recall(QUESTION, weights={"keyword": 0.0, "graph": 0.0})) == 1


async def test_what_another_process_wrote_is_told_too(settings: Settings) -> None:
    """Changes are noted in the store, so a client that knows of no index feeds it all the same."""
    async with AsyncRecollect(settings=settings) as recollect:
        await recollect.space("work").remember("Ada prefers tea")
    async with AsyncRecollect(settings.url, embedder="hashing") as unaware:
        await unaware.space("work").remember("Invoice 12345 was paid on 3 May")
        await unaware.space("work").settle()
    async with AsyncRecollect(settings=settings) as recollect:
        await told(recollect)
        assert (await recollect.doctor()).ok


async def test_a_rebuild_makes_an_index_anew(settings: Settings) -> None:
    """An index that lost something is found out by doctor and repaired by a rebuild; reads go on meanwhile."""
    async with AsyncRecollect(settings=settings) as recollect:
        work = recollect.space("work")
        memories = [(await work.remember(f"umbrella number {n}")).memory for n in range(5)]
        await work.settle()
        await told(recollect)
        for feeder in recollect._engine.feeders.values():
            await feeder.index.apply("work", [Change(memories[0].id, None)])
        diagnosis = await recollect.doctor()
        assert [check.name for check in diagnosis.checks if not check.ok] == ["qdrant", "falkordb"]
        assert memories[0].id in str(diagnosis)
        reached: list[int] = []
        assert await recollect.rebuild("qdrant", on_progress=reached.append) == 5
        assert reached == [5]
        assert await recollect.rebuild("falkordb") == 5
        await told(recollect)
        assert (await recollect.doctor()).ok


async def test_an_unknown_index_is_refused(settings: Settings) -> None:
    """Whoever names an index that is not there is told which are."""
    async with AsyncRecollect(settings=settings) as recollect:
        with pytest.raises(InvalidRequest, match="qdrant, falkordb"):
            await recollect.rebuild("nonsense")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = SqliteStore(tmp_path / "memory.db")
    await store.open()
    await store.set_generation(MODEL)
    yield store
    await store.close()


class Hanging(QdrantIndex):
    """An index whose engine accepts every call and answers none."""

    async def check(self) -> None:
        await asyncio.Event().wait()


async def test_an_engine_that_hangs_keeps_nobody_from_opening_and_closing(store: Store, tmp_path: Path) -> None:
    """Whoever opens goes on without it, and it knows already which vectors it is to hold: until it is back its searches
    fail, for an answer without hits would be untrue.
    """
    index = Hanging(f"qdrant+local:///{tmp_path / 'qdrant'}")
    feeder = Feeder(store, index, "vector")
    async with asyncio.timeout(30):
        await feeder.open()
        assert index._generation == MODEL
        await feeder.close()


class Counting(FalkorIndex):
    """An index that remembers how many changes it was told at a time."""

    def __init__(self, url: str, store: Store) -> None:
        super().__init__(url, visible=store.visible)
        self.told: list[int] = []

    async def apply(self, space: str, changes: Sequence[Change]) -> None:
        await super().apply(space, changes)
        self.told.append(len(changes))


async def test_what_is_written_on_and_on_is_told_in_batches(
    store: Store, falkordb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first change at once, the following ones together after a while, or when the client is closed."""
    monkeypatch.setattr(feeding, "BATCH_PAUSE_SECONDS", 3600.0)
    index = Counting(falkordb_url, store)
    feeder = Feeder(store, index, "graph")
    await feeder.open()
    for number in range(6):
        await store.add(HERE, [record(f"m{number}")])
        feeder.wake()
        await until(lambda: index.told != [])
    await feeder.close()
    assert index.told == [1, 5]


class Odd(FalkorIndex):
    """An index that fails in a way that nobody thought of, at first."""

    failures = 2

    async def apply(self, space: str, changes: Sequence[Change]) -> None:
        if self.failures:
            self.failures -= 1
            raise KeyError("nobody thought of this")
        await super().apply(space, changes)


async def test_a_feeder_outlives_an_error_that_nobody_thought_of(
    store: Store, falkordb_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, with its traceback, and what waits is told all the same."""
    monkeypatch.setattr(feeding, "RETRY_SECONDS", (0.01, 0.01))
    feeder = Feeder(store, Odd(falkordb_url, visible=store.visible), "graph")
    await feeder.open()
    await store.add(HERE, [record("a")])
    feeder.wake()
    async with asyncio.timeout(30):
        while (await feeder.lag()).waiting:  # noqa: ASYNC110  # no event tells: that is the point
            await asyncio.sleep(0.01)
    assert await feeder.compare() == []
    await feeder.close()
    warnings = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert [one.exc_info and one.exc_info[0] for one in warnings] == [KeyError]
    assert "falkordb cannot be used: feeding it failed" in caplog.text


async def test_overlapping_feeders_keep_the_order(store: Store, falkordb_url: str) -> None:
    """Many feeders of one index at once: one at a time tells it, and in the end it holds what the store holds."""
    indexes: list[ExternalIndex] = [FalkorIndex(falkordb_url, visible=store.visible) for _ in range(4)]
    feeders = [Feeder(store, index, "graph") for index in indexes]
    for feeder in feeders:
        await feeder.open()
    for number in range(30):
        await store.add(HERE, [record(f"m{number}", vector=unit(1))])
        if number % 3 == 0:
            await store.forget(HERE, [f"m{number}"])
        for feeder in feeders:
            feeder.wake()
    for feeder in feeders:
        await feeder.close()
    last = Feeder(store, FalkorIndex(falkordb_url, visible=store.visible), "graph")
    await last.open()
    try:
        await last.drain()
        assert (await last.lag()).waiting == 0
        assert await last.compare() == []
    finally:
        await last.close()
