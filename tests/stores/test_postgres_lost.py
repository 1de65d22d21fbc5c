"""Connections that are cut, a server that is gone and comes back, and one that hangs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import psutil
import psycopg
import pytest
from psycopg import AsyncConnection

from recollect.errors import BackendTimeout, BackendUnavailable
from recollect.settings import PostgresSettings
from recollect.stores.postgres import pool, watchdog
from recollect.stores.postgres.connections import Connections
from recollect.stores.postgres.server import EmbeddedServer

Database: TypeAlias = AsyncConnection[Any]
SIZE = 3
SLEEPING = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
CUT_AT_COMMIT = """
    CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON spaces DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION cut()
"""


@pytest.fixture
async def connections(pg_dsn: str, pg_schema: str) -> AsyncIterator[Connections]:
    connections = Connections(pg_dsn, PostgresSettings(schema=pg_schema, pool_size=SIZE))
    await connections.open(create=True)
    yield connections
    await connections.close()


@pytest.fixture(scope="module")
def own_folder() -> Iterator[Path]:
    """The folder of a server that a test may stop."""
    with TemporaryDirectory(prefix="recollect-pg-") as folder:
        yield Path(folder, "server")


@pytest.fixture
async def own(own_folder: Path) -> AsyncIterator[Connections]:
    """A store on a server that nobody else uses."""
    server = EmbeddedServer(own_folder)
    connections = Connections(await server.start(), PostgresSettings(pool_size=SIZE, acquire_timeout=2.0))
    await connections.open(create=True)
    yield connections
    await connections.close()
    await server.stop()


async def spaces(db: Database) -> list[str]:
    return [name for (name,) in await (await db.execute("SELECT name FROM spaces ORDER BY name")).fetchall()]


async def add(db: Database, name: str) -> None:
    await db.execute("INSERT INTO spaces (name) VALUES (%s)", [name])


async def cut(db: Database) -> None:
    """The server ends this connection."""
    await db.execute("SELECT pg_terminate_backend(pg_backend_pid())")


async def everywhere(connections: Connections) -> list[list[str]]:
    """The same read on every connection of the pool."""
    together = asyncio.Barrier(SIZE)

    async def read(db: Database) -> list[str]:
        await together.wait()
        return await spaces(db)

    return await asyncio.gather(*(connections.read(read, share="rows") for _ in range(SIZE)))


async def test_idle_connections_that_were_cut(connections: Connections, pg_dsn: str) -> None:
    """A pool whose connections all were cut while nobody used them serves on, reads and writes, without an error."""
    for _ in range(2):
        await everywhere(connections)
        with psycopg.connect(pg_dsn, autocommit=True) as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'recollect'")
        await connections.write(lambda db: db.execute("INSERT INTO spaces (name) VALUES ('a') ON CONFLICT DO NOTHING"))
        assert await everywhere(connections) == [["a"]] * SIZE


async def test_a_read_that_was_cut_is_run_again(connections: Connections) -> None:
    """Nobody notices a connection that is lost once in the middle of a read."""
    tries: list[None] = []

    async def read(db: Database) -> list[str]:
        tries.append(None)
        if len(tries) == 1:
            await cut(db)
        return await spaces(db)

    assert await connections.read(read) == []
    assert len(tries) == 2


async def test_a_write_that_was_cut_is_run_again(connections: Connections) -> None:
    """What was done on a connection that was lost before the commit was undone, so it is done once."""
    tries: list[None] = []

    async def write(db: Database) -> None:
        tries.append(None)
        await add(db, "a")
        if len(tries) == 1:
            await cut(db)

    await connections.write(write)
    assert len(tries) == 2
    assert await connections.read(spaces) == ["a"]


async def test_a_copy_that_was_cut_is_run_again(connections: Connections) -> None:
    """A connection that is lost in the middle of a COPY leaves nothing of it."""
    tries: list[None] = []

    async def write(db: Database) -> None:
        tries.append(None)
        async with db.cursor().copy("COPY spaces (name) FROM STDIN") as copy:
            for number in range(1000):
                await copy.write_row([f"{number}-{'x' * 1000}"])
                if number == 500 and len(tries) == 1:
                    os.kill(db.info.backend_pid, signal.SIGTERM)

    await connections.write(write)
    assert len(tries) == 2
    assert len(await connections.read(spaces)) == 1000


@pytest.mark.parametrize("mode", ["read", "write"])
async def test_cut_each_time(connections: Connections, mode: str) -> None:
    """A connection that is lost twice is reported, as worth a retry."""
    with pytest.raises(BackendUnavailable, match="cannot be reached"):
        await getattr(connections, mode)(cut)
    assert await everywhere(connections) == [[]] * SIZE


async def test_cut_while_committing(connections: Connections) -> None:
    """Whether a commit took place is not known when its answer is lost: it is not run again, and the error says so."""
    await connections.write(lambda db: db.execute(CUT_AT_COMMIT))
    tries: list[None] = []

    async def write(db: Database) -> None:
        tries.append(None)
        await add(db, "a")

    with pytest.raises(BackendUnavailable, match=r"may or may not be stored.*again.*safe"):
        await connections.write(write)
    assert len(tries) == 1
    assert await everywhere(connections) == [[]] * SIZE


async def test_a_server_that_stops_and_comes_back(own: Connections, own_folder: Path) -> None:
    """While it is away every call fails with the reason, and none waits for long; when it is back they work again."""
    await everywhere(own)
    server = watchdog.running(own_folder / "postgres")
    assert server
    process = psutil.Process(server.pid)
    os.kill(server.pid, signal.SIGINT)
    await asyncio.to_thread(psutil.wait_procs, [process])
    calls = [own.read(spaces) for _ in range(2 * SIZE)] + [own.write(lambda db: add(db, "lost")) for _ in range(2)]
    for end in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(end, BackendUnavailable)
        assert "cannot be reached" in str(end)
    again = EmbeddedServer(own_folder)
    await again.start()
    try:
        await own.write(lambda db: add(db, "back"))
        assert await everywhere(own) == [["back"]] * SIZE
    finally:
        await again.stop()


@contextmanager
def frozen(folder: Path) -> Iterator[None]:
    """The server and all its processes neither go on nor go away."""
    server = watchdog.running(folder / "postgres")
    assert server
    main = psutil.Process(server.pid)
    processes = [main, *main.children(recursive=True)]
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # a worker that had just done its part
            process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


async def test_cancelling_does_not_wait_for_a_server_that_hangs(own: Connections, own_folder: Path) -> None:
    """Who stops waiting goes on at once, while the driver still waits for the server to stop the statement; afterwards
    all connections serve again.
    """
    ended = asyncio.Event()

    async def read(db: Database) -> None:
        try:
            await db.execute("SELECT pg_sleep(1000)")
        finally:
            ended.set()

    reading = asyncio.create_task(own.read(read))
    async with own.autocommit() as db:
        while not await (await db.execute(SLEEPING)).fetchone():
            pass
    with frozen(own_folder):
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert not ended.is_set()
    await ended.wait()
    await everywhere(own)


async def test_a_server_that_hangs_is_given_up(
    own_folder: Path, own: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that is not even stopped when its time is over is given up, for reads and for writes; one that was
    being committed may be there or not.
    """
    monkeypatch.setattr(pool, "GRACE", 0.2)
    server = EmbeddedServer(own_folder)
    settings = PostgresSettings(pool_size=SIZE, statement_timeout=0.2, acquire_timeout=0.5)
    impatient = Connections(await server.start(), settings)
    freezing = ExitStack()

    async def write(db: Database) -> None:
        await add(db, "perhaps")
        freezing.enter_context(frozen(own_folder))

    try:
        await impatient.open(create=False)
        await everywhere(impatient)
        with freezing:
            with pytest.raises(BackendUnavailable, match="may or may not be stored"):
                await impatient.write(write)
            with pytest.raises(BackendTimeout, match=r"does not answer.*hangs"):
                await impatient.read(spaces)
        await everywhere(impatient)
    finally:
        await impatient.close()
        await server.stop()
