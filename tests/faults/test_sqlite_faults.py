"""The SQLite store when processes die, disks fill up and several processes share the file."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import apsw
import pytest

from recollect.conformance.samples import ALL, HERE, found, memory, record
from recollect.errors import BackendUnavailable
from recollect.stores.sqlite.store import SqliteStore

WRITER = """
import asyncio, sys
from recollect.conformance.samples import HERE, MODEL, record, unit
from recollect.stores.sqlite.store import SqliteStore

async def write(path, name, batches):
    store = SqliteStore(path)
    await store.open()
    await store.set_generation(MODEL)
    for number in range(batches):
        ids = [f"{name}-{number:05}-{place}" for place in range(20)]
        await store.add(HERE, [record(id, f"umbrella {id}", vector=unit(1), tags=("t",), thread=name) for id in ids])
        print(*ids, flush=True)  # acknowledged
    await store.close()

asyncio.run(write(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""
BATCHES_BEFORE_THE_KILL = 5
ENDLESS = 1_000_000


@contextmanager
def writing(path: Path, name: str, batches: int) -> Iterator[subprocess.Popen[str]]:
    """A process that writes, and that does not outlive the test."""
    command = [sys.executable, "-c", WRITER, str(path), name, str(batches)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        try:
            yield writer
        finally:
            writer.kill()


def acknowledged(writer: subprocess.Popen[str]) -> Iterator[list[str]]:
    """The batches that a writer has reported as stored; a line cut short by a kill counts as far as it goes."""
    assert writer.stdout
    for line in writer.stdout:
        yield line.split() if line.endswith("\n") else line.split()[:-1]


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def every_id(store: SqliteStore) -> list[str]:
    ids, after = [], None
    while True:
        page = await store.list(HERE, ALL, limit=1000, after=after)
        ids += [memory.id for memory in page.memories]
        after = page.cursor
        if after is None:
            return ids


def assert_sound(path: Path) -> None:
    """The file is whole, and its words, tags and vectors are those of its memories."""
    db = apsw.Connection(str(path))
    assert db.pragma("integrity_check") == "ok"
    db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    rows = db.execute("SELECT row FROM memories ORDER BY row").fetchall()
    assert db.execute("SELECT id >> 16 FROM words_docsize ORDER BY id").fetchall() == rows
    assert db.execute("SELECT row FROM vectors ORDER BY row").fetchall() == rows
    assert db.execute("SELECT row FROM tags ORDER BY row").fetchall() == rows
    db.close()


@pytest.mark.parametrize("attempt", range(3))
def test_a_killed_writer_loses_nothing(tmp_path: Path, attempt: int) -> None:
    """After `kill -9` all that was acknowledged is there, nothing twice, every batch whole, and the file is sound."""
    path = tmp_path / "memory.db"
    with writing(path, "w", ENDLESS) as writer:
        batches = acknowledged(writer)
        promised = [id for _ in range(BATCHES_BEFORE_THE_KILL * (attempt + 1)) for id in next(batches)]
        writer.send_signal(signal.SIGKILL)
        promised += [id for batch in batches for id in batch]
        assert writer.wait() == -signal.SIGKILL

    async def stored() -> list[str]:
        async with opened(path) as store:
            return await every_id(store)

    ids = asyncio.run(stored())
    assert set(promised) <= set(ids)
    assert len(set(ids)) == len(ids)
    assert len(ids) % 20 == 0
    assert_sound(path)


def test_a_killed_import_can_be_run_again(tmp_path: Path) -> None:
    """Running it again completes what a kill cut short, without a copy."""
    path = tmp_path / "memory.db"
    with writing(path, "w", ENDLESS) as writer:
        next(acknowledged(writer))
    with writing(path, "w", 40) as again:
        assert sum(len(batch) for batch in acknowledged(again)) == 800
        assert again.wait() == 0

    async def counted() -> int:
        async with opened(path) as store:
            return len([id for id in await every_id(store) if id < "w-00040"])

    assert asyncio.run(counted()) == 800
    assert_sound(path)


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    """Processes that create and write one file together wait for each other, and all they store is there."""
    path = tmp_path / "memory.db"
    with writing(path, "a", 15) as one, writing(path, "b", 15) as two, writing(path, "c", 15) as three:
        writers = (one, two, three)
        promised = sorted(id for writer in writers for batch in acknowledged(writer) for id in batch)
        assert [writer.wait() for writer in writers] == [0, 0, 0]

    async def stored() -> list[str]:
        async with opened(path) as store:
            return await every_id(store)

    assert asyncio.run(stored()) == promised
    assert len(promised) == 900
    assert_sound(path)


async def test_another_process_is_seen_at_the_next_recall(tmp_path: Path) -> None:
    """What another process has stored is found by the next read, by id and by word, and what it forgot is not."""
    path = tmp_path / "memory.db"
    async with opened(path) as here, opened(path) as there:
        assert await found(here, "umbrella") == []
        await there.add(HERE, [record("a", "an umbrella")])
        assert await found(here, "umbrella") == ["a"]
        assert list(await here.get(HERE, ["a"])) == ["a"]
        await here.forget(HERE, ["a"])
        assert await found(there, "umbrella") == []
        assert await there.get(HERE, ["a"]) == {}


async def test_a_full_disk_keeps_the_old_state(tmp_path: Path) -> None:
    """A write that the disk has no room for says so and leaves everything as it was; with room it goes through."""
    path = tmp_path / "memory.db"
    async with opened(path) as store:
        await store.add(HERE, [record("a", "an umbrella")])
        connections = store._connections
        pages = await connections.write(lambda db: db.pragma("page_count"))
        await connections.write(lambda db: db.pragma("max_page_count", pages + 4))
        large = [record(f"m{number}", f"bicycle {number} " * 200) for number in range(200)]
        with pytest.raises(BackendUnavailable, match=r"disk that holds .*memory\.db is full"):
            await store.add(HERE, large)
        assert await every_id(store) == ["a"]
        assert await found(store, "bicycle") == []
        assert await found(store, "umbrella") == ["a"]
        await connections.write(lambda db: db.pragma("max_page_count", 2**32 - 2))
        assert all(answer.created for answer in await store.add(HERE, large))
        assert await store.copies(HERE, [memory("m0")]) != [None]


FILLING = """
import asyncio, resource, sys
from recollect.conformance.samples import HERE, record
from recollect.errors import BackendUnavailable
from recollect.stores.sqlite.store import SqliteStore

async def fill(path):
    store = SqliteStore(path)
    await store.open()
    await store.add(HERE, [record("first")])
    print("first", flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    for number in range(1000):
        ids = [f"{number}-{place}" for place in range(20)]
        try:
            await store.add(HERE, [record(id, f"umbrella {id} " * 50) for id in ids])
        except BackendUnavailable as error:
            assert "nothing was stored" in str(error), error
            break
        print(*ids, flush=True)
    else:
        raise AssertionError("the disk should have been full")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.add(HERE, [record("last")])
    print("last", flush=True)
    await store.close()

asyncio.run(fill(sys.argv[1]))
"""


def test_a_disk_that_fills_up_while_writing(tmp_path: Path) -> None:
    """When the operating system refuses to write, the write fails, the earlier ones stay, and later ones succeed."""
    path = tmp_path / "memory.db"
    run = subprocess.run([sys.executable, "-c", FILLING, str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr

    async def stored() -> list[str]:
        async with opened(path) as store:
            return await every_id(store)

    assert asyncio.run(stored()) == sorted(run.stdout.split())
    assert run.stdout.startswith("first")
    assert run.stdout.endswith("last\n")
