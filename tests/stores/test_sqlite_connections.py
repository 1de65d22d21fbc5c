"""Readers, the writer, and what becomes of SQLite's errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from recollect.errors import BackendError, BackendUnavailable, InvalidRequest
from recollect.stores.sqlite.connections import Connections, translate

FOREVER = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.fixture
async def connections(tmp_path: Path) -> AsyncIterator[Connections]:
    connections = Connections(tmp_path / "memory.db", readers=2, busy_seconds=0.05)
    await connections.open()
    yield connections
    await connections.close()


def spaces(db: apsw.Connection) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM spaces ORDER BY name")]


async def write(connections: Connections, name: str) -> None:
    await connections.write(lambda db: db.execute("INSERT INTO spaces (name) VALUES (?)", (name,)))


async def test_a_read_sees_what_was_written(connections: Connections) -> None:
    """A read that begins after a write sees it."""
    await write(connections, "a")
    assert await connections.read(spaces) == ["a"]


async def test_a_read_is_one_snapshot(connections: Connections) -> None:
    """What is committed while a read runs is not seen by it, only by the next."""
    begun, written = threading.Event(), threading.Event()

    def twice(db: apsw.Connection) -> tuple[list[str], list[str]]:
        before = spaces(db)
        begun.set()
        written.wait(10)
        return before, spaces(db)

    reading = asyncio.create_task(connections.read(twice))
    await asyncio.to_thread(begun.wait, 10)
    await write(connections, "a")
    written.set()
    assert await reading == ([], [])
    assert await connections.read(spaces) == ["a"]


async def test_a_glance_sees_what_was_written(connections: Connections) -> None:
    """By this process and, from one call to the next, by another one."""
    await write(connections, "a")
    assert await connections.read_now(spaces) == ["a"]
    other = apsw.Connection(str(connections.path))
    other.execute("INSERT INTO spaces (name) VALUES ('b')")
    other.close()
    assert await connections.read_now(spaces) == ["a", "b"]


async def test_a_glance_leaves_waiting_to_a_thread(connections: Connections) -> None:
    """Where a store keeps it waiting, the event loop is not what waits."""
    here, seen = threading.get_ident(), []

    def busy_here(db: apsw.Connection) -> int:
        seen.append(threading.get_ident())
        if seen[-1] == here:
            raise apsw.BusyError("database is locked")
        return len(spaces(db))

    assert await connections.read_now(busy_here) == 0
    assert seen[0] == here
    assert seen[1:] not in ([], [here])


async def test_an_error_undoes_a_write(connections: Connections) -> None:
    """Whatever a write did before it failed is undone, and the error arrives as it was raised."""

    def fail(db: apsw.Connection) -> None:
        db.execute("INSERT INTO spaces (name) VALUES ('a')")
        raise InvalidRequest("changed my mind")

    with pytest.raises(InvalidRequest, match="changed my mind"):
        await connections.write(fail)
    assert await connections.read(spaces) == []
    await write(connections, "b")
    assert await connections.read(spaces) == ["b"]


async def test_a_reader_cannot_write(connections: Connections) -> None:
    """A statement that writes fails on a reader's connection."""
    with pytest.raises(BackendError, match="cannot be written"):
        await connections.read(lambda db: db.execute("INSERT INTO spaces (name) VALUES ('a')"))


async def test_more_reads_than_readers(connections: Connections) -> None:
    """Reads beyond the number of readers wait for their turn, and all are answered."""
    assert await asyncio.gather(*(connections.read(spaces) for _ in range(20))) == [[]] * 20


async def test_a_cancelled_read_stops(connections: Connections) -> None:
    """A read that nobody waits for stops at once, and so do the statements that would have followed; its connection
    serves others.
    """
    begun, stopped = threading.Event(), threading.Event()

    def endless(db: apsw.Connection) -> None:
        try:
            for _ in db.execute(FOREVER):
                begun.set()
        except apsw.InterruptError:
            with pytest.raises(apsw.InterruptError):
                db.execute("SELECT 1").fetchall()
            stopped.set()
            raise

    for _ in range(3):  # more often than there are readers
        begun.clear()
        stopped.clear()
        reading = asyncio.create_task(connections.read(endless))
        await asyncio.to_thread(begun.wait, 10)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await asyncio.to_thread(stopped.wait, 10)
    assert await asyncio.gather(*(connections.read(spaces) for _ in range(4))) == [[]] * 4


async def test_a_cancelled_write_is_whole(connections: Connections) -> None:
    """A write that has begun when its caller goes away is finished, and the next one follows it."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(db: apsw.Connection) -> None:
        db.execute("INSERT INTO spaces (name) VALUES ('a')")
        begun.set()
        go_on.wait(10)

    writing = asyncio.create_task(connections.write(slow))
    await asyncio.to_thread(begun.wait, 10)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    go_on.set()
    await write(connections, "b")
    assert await connections.read(spaces) == ["a", "b"]


async def test_a_store_that_is_locked_for_long(connections: Connections) -> None:
    """Another process that keeps the file locked is worth a retry, and does not keep anybody from reading."""
    other = apsw.Connection(str(connections.path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackendUnavailable, match="another process"):
        await write(connections, "a")
    assert await connections.read(spaces) == []
    other.execute("ROLLBACK")
    other.close()
    await write(connections, "a")


async def test_waiting_for_another_writer_holds_up_nothing_else(tmp_path: Path) -> None:
    """While a write waits for the file this process goes on, and here even ends what the write waits for."""
    connections = Connections(tmp_path / "memory.db")
    await connections.open()
    other = apsw.Connection(str(connections.path))
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(write(connections, "a"))
    for _ in range(10):
        assert await connections.read(spaces) == []
    assert not waiting.done()
    other.execute("COMMIT")
    await waiting
    assert await connections.read(spaces) == ["a"]
    other.close()
    await connections.close()


@pytest.mark.parametrize("replaced", [False, True])
async def test_what_nobody_would_find_again_is_not_written(connections: Connections, replaced: bool) -> None:
    """A file that was removed or replaced while it was open takes no write, and is not in order; what it held can
    still be read from here.
    """
    await write(connections, "a")
    assert await connections.read(spaces) == ["a"]
    await connections.check()
    if replaced:
        other = Connections(connections.path.with_name("other.db"))
        await other.open()
        await other.close()
        other.path.replace(connections.path)
    else:
        connections.path.unlink()
    with pytest.raises(BackendUnavailable, match="was removed or replaced while it was open: open it again"):
        await write(connections, "b")
    with pytest.raises(BackendUnavailable, match="was removed or replaced"):
        await connections.check()
    assert await connections.read(spaces) == ["a"]


async def test_a_store_is_known_again_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path means the file that it led to when it was opened."""
    monkeypatch.chdir(tmp_path)
    connections = Connections(Path("memory.db"))
    await connections.open()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    await write(connections, "a")
    assert await connections.read(spaces) == ["a"]
    await connections.close()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_every_driver_error_is_translated() -> None:
    """Whatever SQLite raises becomes a BackendError of one sentence that names the file."""
    kinds = [kind for kind in vars(apsw).values() if isinstance(kind, type) and issubclass(kind, apsw.Error)]
    assert len(kinds) > 30
    for kind in kinds:
        error = translate(kind("disk on fire"), Path("memory.db"))
        assert isinstance(error, BackendError)
        assert error.backend == "sqlite"
        assert "memory.db" in str(error)
        assert not str(error).endswith(".")


@pytest.mark.parametrize("kind", [apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError, apsw.NoMemError])
def test_what_may_pass_is_worth_a_retry(kind: type[apsw.Error]) -> None:
    """A lock, a full disk and a failing one are unavailability, not defects of the file."""
    assert isinstance(translate(kind("x"), Path("memory.db")), BackendUnavailable)


async def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """A store whose pages are garbage is an error that says what to do."""
    path = tmp_path / "memory.db"
    connections = Connections(path)
    await connections.open()
    await connections.close()
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    with pytest.raises(BackendError, match=r"damaged|not a Recollect store"):
        await connections.open()
