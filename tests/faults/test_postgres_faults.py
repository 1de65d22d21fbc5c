"""The Postgres store when its server stops, hangs, dies or is cut off: what was acknowledged is there, once."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from recollect import AsyncRecollect, BackendError, BackendTimeout, BackendUnavailable, Draft, RecallFailed
from recollect.conformance.samples import ALL, HERE, MODEL, found, ids, memory, record, unit
from recollect.settings import PostgresSettings, Settings
from recollect.stores.postgres.store import PostgresStore
from tests.faults.postgres_process import PostgresProcess, Wire

PATIENT = PostgresSettings(pool_size=8, acquire_timeout=2.0, statement_timeout=10.0)
WRITERS = 8


@pytest.fixture(scope="module")
def machine() -> Iterator[PostgresProcess]:
    with TemporaryDirectory(prefix="recollect-pg-") as folder:  # not pytest's own, which is closed to other users
        process = PostgresProcess(Path(folder))
        yield process
        process.end()


@pytest.fixture
def server(machine: PostgresProcess) -> Iterator[PostgresProcess]:
    """The server, running and with nothing in it."""
    if not machine.is_running:
        machine.start()
    with psycopg.connect(machine.dsn, autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS recollect CASCADE")
    yield machine
    with suppress(Exception):
        machine.thaw()


@asynccontextmanager
async def opened(dsn: str, settings: PostgresSettings = PATIENT) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(dsn, settings)
    await store.open()
    try:
        await store.set_generation(MODEL)
        yield store
    finally:
        await store.close()


async def write_on(store: PostgresStore, name: str, stored: list[str], failures: list[Exception]) -> None:
    """Add memories, noting which were acknowledged, until an error comes."""
    for number in count():
        wanted = [f"{name}-{number:04}-{place}" for place in range(5)]
        try:
            await store.add(HERE, [record(id, f"umbrella {id}", vector=unit(1), thread=name) for id in wanted])
        except BackendError as error:
            failures.append(error)
            return
        stored += wanted


async def test_a_server_that_is_down_is_named(server: PostgresProcess) -> None:
    """Opening a store whose server does not run says so at once, with the server's address."""
    server.stop()
    with pytest.raises(BackendUnavailable, match=str(server.port)):
        await PostgresStore(server.dsn, PATIENT).open()


async def test_a_server_that_comes_back_is_used_again(server: PostgresProcess) -> None:
    """While the server is away every call says so; once it is back the same store works, with all that was stored."""
    async with opened(server.dsn) as store:
        await store.add(HERE, [record("a", "an umbrella")])
        server.stop()
        with pytest.raises(BackendUnavailable):
            await store.get(HERE, ["a"])
        with pytest.raises(BackendUnavailable):
            await store.add(HERE, [record("b")])
        server.start()
        assert await found(store, "umbrella") == ["a"]
        await store.add(HERE, [record("c", "another umbrella")])
        assert await ids(store) == ["a", "c"]


async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(server: PostgresProcess) -> None:
    """Eight writers, and the server killed under them: after its return every acknowledged memory is there, none
    twice, and writing the uncertain ones again completes them.
    """
    stored: list[str] = []
    failures: list[Exception] = []
    async with opened(server.dsn) as store:
        writing = [asyncio.create_task(write_on(store, f"w{n}", stored, failures)) for n in range(WRITERS)]
        while len(stored) < 40 * WRITERS:  # noqa: ASYNC110 (what is waited for is the writers' own list)
            await asyncio.sleep(0.01)
        server.kill()
        await asyncio.gather(*writing)
        assert len(failures) == WRITERS
        assert all(isinstance(error, BackendUnavailable) for error in failures)
        server.start()
        there = Counter(await ids_of_all(store))
        assert set(stored) <= set(there)
        assert set(there.values()) == {1}
        again = [record(id, f"umbrella {id}", vector=unit(1), thread=id.split("-")[0]) for id in stored]
        assert not any(one.created for one in await store.add(HERE, again))


async def ids_of_all(store: PostgresStore) -> list[str]:
    everything: list[str] = []
    after: str | None = None
    while True:
        page = await store.list(HERE, ALL, limit=500, after=after)
        everything += [memory.id for memory in page.memories]
        if page.cursor is None:
            return everything
        after = page.cursor


async def test_a_write_that_the_server_stops_under_leaves_nothing(server: PostgresProcess) -> None:
    """A server that is stopped while a transaction is under way undoes it: the caller is told, and no part is there."""
    async with opened(server.dsn) as store:
        with suppress(psycopg.errors.AdminShutdown), psycopg.connect(server.dsn) as blocker:
            await store.add(HERE, [record("first")])
            blocker.execute("LOCK TABLE recollect.words IN ACCESS EXCLUSIVE MODE")
            adding = asyncio.create_task(store.add(HERE, [record("second"), record("third")]))
            await asyncio.sleep(0.3)
            server.stop()
        with pytest.raises(BackendUnavailable):
            await adding
        server.start()
        assert await ids(store) == ["first"]


async def test_a_connection_cut_in_the_middle_of_a_copy(server: PostgresProcess) -> None:
    """A bulk write whose connection breaks while its rows are being sent is undone as a whole; run again, it works."""
    seen = bytearray()

    def cut_in_the_copy(wire: Wire, part: bytes) -> None:
        seen.extend(part)
        if b"COPY" in seen and seen.count(b"umbrella") > 100:
            seen.clear()
            wire.cut()

    batch = [record(f"m{n:04}", f"umbrella number {n} " + "word " * 50, vector=unit(n, 1)) for n in range(2_000)]
    async with Wire(server.port, cut_in_the_copy) as wire, opened(wire.dsn) as store:
        with pytest.raises(BackendUnavailable):
            await store.add(HERE, batch)
        assert wire.is_cut
        wire.mend()
        assert await ids(store) == []
    async with opened(server.dsn) as store:
        assert all(one.created for one in await store.add(HERE, batch))


async def test_a_recall_says_what_it_lost(server: PostgresProcess) -> None:
    """With the server away a recall fails with every lane's reason; with it back, the same client answers again."""
    async with AsyncRecollect(server.dsn, embedder="hashing") as recollect:
        work = recollect.space("work")
        await work.remember("Invoice 12345 was paid on 3 May")
        server.stop()
        with pytest.raises(RecallFailed, match=re.escape("127.0.0.1")):
            await work.recall("which invoice was paid?")
        server.start()
        answer = await work.recall("which invoice was paid?")
        assert [hit.memory.text for hit in answer] == ["Invoice 12345 was paid on 3 May"]
        assert not answer.degraded


async def test_a_frozen_server_is_late_not_a_hang(server: PostgresProcess) -> None:
    """Lanes on a server that hangs are late by their deadline; after it thaws, the same client answers."""
    async with AsyncRecollect(server.dsn, embedder="hashing") as recollect:
        work = recollect.space("work")
        await work.remember("Invoice 12345 was paid on 3 May")
        server.freeze()
        with pytest.raises(RecallFailed, match="no answer within"):
            await work.recall("which invoice was paid?")
        server.thaw()
        assert len(await work.recall("which invoice was paid?")) == 1


async def test_a_statement_timeout_is_a_late_lane(server: PostgresProcess) -> None:
    """A lane whose statement the server stops is late, and the others answer: here the table of words is locked."""
    impatient = Settings(server.dsn, "hashing", postgres=PostgresSettings(statement_timeout=0.5))
    async with AsyncRecollect(settings=impatient) as recollect:
        work = recollect.space("work")
        await work.remember("Invoice 12345 was paid on 3 May")
        with psycopg.connect(server.dsn) as blocker:
            blocker.execute("LOCK TABLE recollect.words IN ACCESS EXCLUSIVE MODE")
            answer = await work.recall("which invoice was paid?")
    assert {lane.lane: lane.status for lane in answer.lanes} == {"vector": "ok", "keyword": "late", "graph": "ok"}
    assert answer.degraded
    assert [hit.memory.text for hit in answer] == ["Invoice 12345 was paid on 3 May"]


async def test_a_timeout_outside_a_recall_is_an_error(server: PostgresProcess) -> None:
    """Where there is no lane to be late, a statement that takes too long is a BackendTimeout."""
    async with opened(server.dsn, PostgresSettings(statement_timeout=0.3)) as store:
        await store.add(HERE, [record("a")])
        with psycopg.connect(server.dsn) as blocker:
            blocker.execute("LOCK TABLE recollect.memories IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(BackendTimeout):
                await store.get(HERE, ["a"])


async def test_writers_that_collide_are_run_again(server: PostgresProcess) -> None:
    """Many writers that add, change and link the same memories at once all succeed: what collides is run again."""
    async with opened(server.dsn) as store:
        await store.add(HERE, [record(f"m{n}", thread="t") for n in range(10)])

        async def stir(offset: int) -> None:
            for n in range(10):
                await store.update(HERE, f"m{(n * offset) % 10}", {"quality": offset / 100}, now=memory("x").updated_at)
                await store.add(HERE, [record(f"new-{n}", f"the same text {n}", thread="t")])

        await asyncio.gather(*(stir(offset) for offset in (1, 3, 7, 9, 1, 3, 7, 9)))
        assert len(await ids(store)) == 20


async def test_an_import_goes_on_after_the_server_died(server: PostgresProcess) -> None:
    """A bulk load that is interrupted by the server's death is completed by running it again, without copies."""
    drafts = [Draft(f"memory number {n}", id=f"m{n:05}") for n in range(3_000)]
    async with AsyncRecollect(server.dsn, embedder="hashing") as recollect:
        work = recollect.space("work")
        reached: list[int] = []

        def kill_midway(done: int) -> None:
            if not reached:
                server.kill()
            reached.append(done)

        with pytest.raises(BackendUnavailable):
            await work.remember_many(drafts, on_progress=kill_midway)
        server.start()
        ingested = await work.remember_many(drafts)
        assert ingested.copies >= reached[0]
        assert ingested.created + ingested.copies == len(drafts)
        assert (await work.stats()).memories == len(drafts)
