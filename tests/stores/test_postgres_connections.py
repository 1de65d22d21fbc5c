"""Reads and writes on a pool of connections: transactions, collisions, cancelling, and a pool that is too small."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import psycopg
import pytest
from psycopg import AsyncConnection, errors

from recollect.errors import BackendError, BackendTimeout, BackendUnavailable, InvalidRequest
from recollect.settings import PostgresSettings
from recollect.stores.postgres.connections import ATTEMPTS, Connections
from recollect.stores.postgres.failures import BACKEND, Place, translate
from recollect.stores.sql_store import Share

Make: TypeAlias = Callable[..., Awaitable[Connections]]
Database: TypeAlias = AsyncConnection[Any]
SIZE = 4
FOREVER = "SELECT pg_sleep(1000)"
SLEEPING = f"SELECT count(*) FROM pg_stat_activity WHERE query = '{FOREVER}' AND state = 'active'"
TOLD = """
    SELECT ARRAY[current_schema()::text, current_setting('statement_timeout'), current_setting('recollect.space', true)]
"""


@pytest.fixture
async def make(pg_dsn: str, pg_schema: str) -> AsyncIterator[Make]:
    """Open a store in a schema of its own with other settings."""
    made: list[Connections] = []

    async def open_store(**settings: Any) -> Connections:
        made.append(Connections(pg_dsn, PostgresSettings(schema=pg_schema, **settings)))
        await made[-1].open(create=True)
        return made[-1]

    yield open_store
    for connections in made:
        await connections.close()


@pytest.fixture
async def connections(make: Make) -> Connections:
    return await make(pool_size=SIZE, acquire_timeout=10.0)


async def value(db: Database, sql: str) -> Any:
    row = await (await db.execute(sql)).fetchone()
    assert row
    return row[0]


async def spaces(db: Database) -> list[str]:
    return [name for (name,) in await (await db.execute("SELECT name FROM spaces ORDER BY name")).fetchall()]


async def add(db: Database, name: str) -> None:
    await db.execute("INSERT INTO spaces (name) VALUES (%s)", [name])


async def write(connections: Connections, name: str) -> None:
    await connections.write(lambda db: add(db, name))


async def sleeping(dsn: str) -> int:
    """How many statements the server is asleep in."""
    async with await AsyncConnection.connect(dsn, autocommit=True) as db:
        return int(
            await value(db, f"SELECT count(*) FROM pg_stat_activity WHERE query = '{FOREVER}' AND state = 'active'")
        )


async def until_sleeping(dsn: str, number: int) -> None:
    async with asyncio.timeout(30):
        while await sleeping(dsn) != number:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0.01)


# Transactions


async def test_a_read_sees_what_was_written(connections: Connections) -> None:
    """A read that begins after a write sees it."""
    await write(connections, "a")
    assert await connections.read(spaces) == ["a"]


async def test_a_read_is_one_snapshot(connections: Connections) -> None:
    """What is committed while a read runs is not seen by it, only by the next."""
    begun, written = asyncio.Event(), asyncio.Event()

    async def twice(db: Database) -> tuple[list[str], list[str]]:
        before = await spaces(db)
        begun.set()
        await written.wait()
        return before, await spaces(db)

    reading = asyncio.create_task(connections.read(twice))
    await begun.wait()
    await write(connections, "a")
    written.set()
    assert await reading == ([], [])
    assert await connections.read(spaces) == ["a"]


async def test_an_error_undoes_a_write(connections: Connections) -> None:
    """Whatever a write did before it failed is undone, and the error arrives as it was raised."""

    async def fail(db: Database) -> None:
        await add(db, "a")
        raise InvalidRequest("changed my mind")

    with pytest.raises(InvalidRequest, match="changed my mind"):
        await connections.write(fail)
    assert await connections.read(spaces) == []
    await write(connections, "b")
    assert await connections.read(spaces) == ["b"]


async def test_an_ignored_error_is_not_taken_for_success(connections: Connections) -> None:
    """A write that goes on after a failed statement would be undone without a word: it is reported."""

    async def careless(db: Database) -> None:
        await add(db, "a")
        with suppress(errors.DivisionByZero):
            await db.execute("SELECT 1 / 0")

    with pytest.raises(BackendError, match="not stored"):
        await connections.write(careless)
    assert await connections.read(spaces) == []


async def test_a_read_cannot_write(connections: Connections) -> None:
    """A statement that writes fails in a read."""
    with pytest.raises(BackendError, match="cannot be written"):
        await connections.read(lambda db: add(db, "a"))


async def test_what_a_transaction_is_told(connections: Connections) -> None:
    """Search path, time limit and space hold inside the transaction, and nothing of them in the session: a pooler may
    give the next transaction to somebody else.
    """
    for run in (connections.read, connections.write):
        assert await run(lambda db: value(db, TOLD), space=7) == [connections.settings.schema, "30s", "7"]
        assert await run(lambda db: value(db, TOLD)) == [connections.settings.schema, "30s", ""]

    async def outside(db: Database) -> Any:
        await db.execute("ROLLBACK")
        return await value(db, TOLD)

    assert await connections.read(outside, space=7) == ["public", "0", ""]


async def test_nothing_is_prepared(connections: Connections) -> None:
    """No statement is kept in a session, however often it is run."""

    async def often(db: Database) -> Any:
        for number in range(20):
            await db.execute("SELECT %s::integer", [number])
        return await value(db, "SELECT count(*) FROM pg_prepared_statements")

    assert await connections.read(often) == 0


async def test_an_index_is_built_beside_the_pool(connections: Connections) -> None:
    """What cannot be part of a transaction has a connection of its own, and others go on meanwhile."""
    async with connections.autocommit() as db:
        await db.execute("CREATE INDEX CONCURRENTLY by_model ON generations (model)")
        assert await asyncio.gather(*(connections.read(spaces) for _ in range(4))) == [[]] * 4
        assert await value(db, "SHOW statement_timeout") == "0"


# Collisions


async def test_a_deadlock_is_run_again(connections: Connections) -> None:
    """Two writes that wait for each other both end up stored."""
    await write(connections, "a")
    await write(connections, "b")
    both = asyncio.Barrier(2)
    tries: list[str] = []

    def crossing(first: str, second: str) -> Any:
        async def work(db: Database) -> None:
            tries.append(first)
            await db.execute("SELECT FROM spaces WHERE name = %s FOR UPDATE", [first])
            if len(tries) <= 2:
                await both.wait()
            await db.execute("SELECT FROM spaces WHERE name = %s FOR UPDATE", [second])
            await add(db, first + second)

        return connections.write(work)

    await asyncio.gather(crossing("a", "b"), crossing("b", "a"))
    assert len(tries) == 3
    assert await connections.read(spaces) == ["a", "ab", "b", "ba"]


async def test_who_comes_second_sees_the_first(connections: Connections) -> None:
    """A unique row that another writer added meanwhile: the second time the write finds it."""
    both = asyncio.Barrier(2)
    tries: list[bool] = []

    async def ensure(db: Database) -> bool:
        missing = "a" not in await spaces(db)
        tries.append(missing)
        if len(tries) <= 2:
            await both.wait()
        if missing:
            await add(db, "a")
        return missing

    assert sorted(await asyncio.gather(connections.write(ensure), connections.write(ensure))) == [False, True]
    assert tries == [True, True, False]


@pytest.mark.parametrize(
    ("state", "error"), [("40001", BackendUnavailable), ("40P01", BackendUnavailable), ("23505", BackendError)]
)
async def test_a_collision_that_goes_on_is_reported(
    connections: Connections, state: str, error: type[Exception]
) -> None:
    """After a few times a write that keeps colliding gives up, and is not stored."""
    tries = 0

    async def collide(db: Database) -> None:
        nonlocal tries
        tries += 1
        await add(db, "a")
        await db.execute(f"DO $$ BEGIN RAISE SQLSTATE '{state}' USING MESSAGE = 'after you'; END $$")

    with pytest.raises(error, match="after you"):
        await connections.write(collide)
    assert tries == ATTEMPTS
    assert await connections.read(spaces) == []


# Waiting


async def test_more_reads_than_connections(connections: Connections) -> None:
    """Reads beyond the number of connections wait for their turn, and all are answered."""
    assert await asyncio.gather(*(connections.read(spaces) for _ in range(64))) == [[]] * 64


async def test_one_connection_is_enough(make: Make) -> None:
    """A pool of one serves any number, one after the other."""
    connections = await make(pool_size=1)
    await asyncio.gather(*(write(connections, str(number)) for number in range(20)))
    assert len(await connections.read(spaces)) == 20


async def test_a_starved_pool_says_so(make: Make) -> None:
    """Who gets no connection in time is told how many there are and what to change; the others are not disturbed."""
    connections = await make(pool_size=1, acquire_timeout=0.2)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def hold(db: Database) -> list[str]:
        begun.set()
        await go_on.wait()
        return await spaces(db)

    holding = asyncio.create_task(connections.read(hold))
    await begun.wait()
    with pytest.raises(BackendUnavailable, match=r"all 1 connections .* pool_size"):
        await connections.read(spaces)
    go_on.set()
    assert await holding == []
    assert await connections.read(spaces) == []


async def test_searches_leave_a_connection_to_the_others(make: Make) -> None:
    """However many search, what they have found can be read; and a search that finds no connection says so."""
    connections = await make(pool_size=3, acquire_timeout=0.1)
    forever, search = (lambda db: value(db, FOREVER)), partial(connections.read, share="search")
    searching = [asyncio.create_task(search(forever)) for _ in range(2)]
    while await connections.read(lambda db: value(db, SLEEPING)) < 2:
        pass
    with pytest.raises(BackendUnavailable, match=r"all 2 connections .* were in use for 0\.1 s"):
        await search(lambda db: value(db, "SELECT 1"))
    assert await connections.read(lambda db: value(db, "SELECT 1")) == 1
    for task in searching:
        task.cancel()
    await asyncio.wait(searching)
    assert await search(lambda db: value(db, "SELECT 2")) == 2


async def test_a_crowd_of_slow_writes_leaves_recalls_half_of_the_pool(make: Make, pg_dsn: str) -> None:
    """However many write, and however long each takes, searches and the rows they found are read at once."""
    connections = await make(pool_size=SIZE, acquire_timeout=0.1)
    writing = [asyncio.create_task(connections.write(lambda db: value(db, FOREVER))) for _ in range(3 * SIZE)]
    await until_sleeping(pg_dsn, SIZE // 2)
    shares: tuple[Share, ...] = ("search", "rows")
    for share in shares:
        assert await connections.read(lambda db: value(db, "SELECT 1"), share=share) == 1
    with pytest.raises(BackendUnavailable, match=rf"all {SIZE // 2} connections .* were in use for 0\.1 s"):
        await connections.read(lambda db: value(db, "SELECT 1"))
    assert await sleeping(pg_dsn) == SIZE // 2
    for task in writing:
        task.cancel()
    await asyncio.wait(writing)


async def test_a_slow_statement_is_stopped(make: Make) -> None:
    """A statement beyond its time is an error of its own, and its connection serves others."""
    connections = await make(pool_size=1, statement_timeout=0.05)
    for run in (connections.read, connections.write):
        with pytest.raises(BackendTimeout, match=r"took too long.*statement timeout"):
            await run(lambda db: db.execute(FOREVER))
        assert await connections.read(spaces) == []


async def test_a_cancelled_read_stops(connections: Connections, pg_dsn: str) -> None:
    """A read that nobody waits for stops on the server, and its connection serves others."""
    for _ in range(3):  # more often than there are connections
        reading = asyncio.create_task(connections.read(lambda db: db.execute(FOREVER)))
        await until_sleeping(pg_dsn, 1)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await until_sleeping(pg_dsn, 0)
    assert await asyncio.gather(*(connections.read(spaces) for _ in range(4))) == [[]] * 4


async def test_a_cancelled_write_is_undone(connections: Connections, pg_dsn: str) -> None:
    """A write that nobody waits for leaves nothing."""

    async def slow(db: Database) -> None:
        await add(db, "a")
        await db.execute(FOREVER)

    writing = asyncio.create_task(connections.write(slow))
    await until_sleeping(pg_dsn, 1)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await until_sleeping(pg_dsn, 0)
    await write(connections, "b")
    assert await connections.read(spaces) == ["b"]


async def test_a_cancelled_wait_for_a_connection(connections: Connections) -> None:
    """Who stops waiting for a connection does not keep it from others."""
    go_on, held = asyncio.Event(), asyncio.Event()

    async def hold(db: Database) -> list[str]:
        held.set()
        await go_on.wait()
        return await spaces(db)

    holding = [asyncio.create_task(connections.read(hold)) for _ in range(SIZE)]
    await held.wait()
    waiting = [asyncio.create_task(connections.read(spaces)) for _ in range(5)]
    await asyncio.sleep(0)  # they begin to wait
    for task in waiting:
        task.cancel()
    gone = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in gone] == [asyncio.CancelledError] * 5
    go_on.set()
    assert await asyncio.gather(*holding) == [[]] * SIZE
    assert await asyncio.gather(*(connections.read(spaces) for _ in range(4))) == [[]] * 4


async def test_closing_waits_for_what_is_running(connections: Connections) -> None:
    """Whoever is served when the store is closed gets an answer; who comes later is told that it is closed."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def hold(db: Database) -> list[str]:
        begun.set()
        await go_on.wait()
        return await spaces(db)

    holding = asyncio.create_task(connections.read(hold))
    await begun.wait()
    closing = asyncio.create_task(connections.close())
    await asyncio.sleep(0)
    with pytest.raises(BackendError, match="not open"):
        await connections.read(spaces)
    go_on.set()
    assert await holding == []
    await closing


# Errors


def test_every_driver_error_is_translated() -> None:
    """Whatever psycopg raises becomes a BackendError of one sentence that names the database and hides the password."""
    place = Place("postgresql://me:s3cret@db.example:5433/notes")
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, psycopg.Error)]
    assert len(kinds) > 200
    for kind in kinds:
        error = translate(kind("disk on fire with s3cret\nand more"), place)
        assert isinstance(error, BackendError)
        assert error.backend == BACKEND
        assert "database notes on db.example:5433" in str(error)
        assert "s3cret" not in str(error)
        assert "\n" not in str(error)
        assert not str(error).endswith(".")


@pytest.mark.parametrize(
    "kind",
    [
        errors.AdminShutdown,
        errors.CrashShutdown,
        errors.CannotConnectNow,
        errors.ConnectionFailure,
        errors.TooManyConnections,
        errors.DiskFull,
        errors.OutOfMemory,
        psycopg.OperationalError,
    ],
)
def test_what_may_pass_is_worth_a_retry(kind: type[psycopg.Error]) -> None:
    """A server that stops, is full or is away is unavailability, not a defect of the store."""
    assert isinstance(translate(kind("x"), Place("")), BackendUnavailable)


async def test_a_table_that_is_gone(connections: Connections) -> None:
    """A store that lost a table says what to run."""
    await connections.write(lambda db: db.execute("DROP TABLE hits"))
    with pytest.raises(BackendError, match=r"lacks part of the store.*recollect migrate"):
        await connections.read(lambda db: db.execute("SELECT FROM hits"))
