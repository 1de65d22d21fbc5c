"""Opening a store: what is made, what is refused, and that what is refused stays as it was."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from recollect.client import AsyncRecollect
from recollect.conformance.samples import HERE, record
from recollect.errors import BackendError, ConfigError, SchemaOutdated
from recollect.stores.sqlite.migrations import APPLICATION_ID
from recollect.stores.sqlite.store import SqliteStore


async def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    return store


async def make_store(path: Path) -> None:
    store = await opened(path)
    await store.add(HERE, [record("a")])
    await store.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


async def assert_refused(path: Path, error: type[BackendError], *mentions: str) -> None:
    """Opening fails with one sentence, and no byte in the folder has changed."""
    before = contents(path.parent)
    with pytest.raises(error) as raised:
        await opened(path)
    assert type(raised.value) is error
    assert all(mention in str(raised.value) for mention in (str(path), *mentions))
    assert contents(path.parent) == before


async def test_a_missing_file_is_made_with_its_folder(tmp_path: Path) -> None:
    """A path of folders that do not exist yet becomes a store."""
    path = tmp_path / "a" / "b" / "memory.db"
    await make_store(path)
    store = await opened(path)
    assert list(await store.get(HERE, ["a"])) == ["a"]
    await store.close()


async def test_closing_leaves_one_file(tmp_path: Path) -> None:
    """After the last one has closed it, the store is its file alone, and can be copied."""
    await make_store(tmp_path / "memory.db")
    assert list(contents(tmp_path)) == ["memory.db"]


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """A file without a byte, as `touch` makes it, has nothing to lose."""
    path = tmp_path / "memory.db"
    path.touch()
    await make_store(path)
    assert path.stat().st_size > 0


async def test_the_header_says_whose_file_it_is(tmp_path: Path) -> None:
    """The stamp is in the file's first page from the first moment on, even while all else is in the log."""
    path = tmp_path / "memory.db"
    store = await opened(path)
    assert path.read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big")
    await store.close()


async def test_opening_twice_is_opening_once(tmp_path: Path) -> None:
    """`open` and `close` may be called again."""
    store = await opened(tmp_path / "memory.db")
    await store.open()
    await store.add(HERE, [record("a")])
    await store.close()
    await store.close()
    await store.open()
    assert list(await store.get(HERE, ["a"])) == ["a"]
    await store.close()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Reading or writing what is not open is an error of its own."""
    store = SqliteStore(tmp_path / "memory.db")
    with pytest.raises(BackendError, match="not open"):
        await store.get(HERE, ["a"])
    with pytest.raises(BackendError, match="not open"):
        await store.add(HERE, [record("a")])


@pytest.mark.parametrize("content", [b"hello", b"\x00" * 5000, b"SQLite format 3\x00", b"SQLite format 3\x00" * 400])
async def test_some_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file of another sort is left as it is, however much its beginning looks like a database."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    await assert_refused(path, BackendError, "not a Recollect store")


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_another_programs_database_is_refused(tmp_path: Path, mode: str) -> None:
    """Another SQLite database is left as it is, also while its own program has it open."""
    path = tmp_path / "other.db"
    other = apsw.Connection(str(path))
    other.pragma("journal_mode", mode)
    other.execute("CREATE TABLE memories (id); INSERT INTO memories VALUES (1)")
    await assert_refused(path, BackendError, "not a Recollect store")
    other.close()
    await assert_refused(path, BackendError, "not a Recollect store")


async def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    """A store of a version to come is left as it is, and the message says to upgrade."""
    path = tmp_path / "memory.db"
    await make_store(path)
    content = bytearray(path.read_bytes())
    content[60:64] = (99).to_bytes(4, "big")
    path.write_bytes(content)
    await assert_refused(path, SchemaOutdated, "99", "upgrade")


async def test_a_newer_version_in_the_log_is_refused(tmp_path: Path) -> None:
    """The version counts also while it is only in the log of a process that is running."""
    path = tmp_path / "memory.db"
    await make_store(path)
    newer = apsw.Connection(str(path))
    newer.pragma("user_version", 99)
    with pytest.raises(SchemaOutdated, match="99"):
        await opened(path)
    newer.close()


async def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """A path through a file names the path and the reason."""
    (tmp_path / "file").touch()
    with pytest.raises(BackendError, match="is not a folder"):
        await opened(tmp_path / "file" / "memory.db")


async def test_a_folder_is_no_store(tmp_path: Path) -> None:
    """A folder in place of the file is refused."""
    with pytest.raises(BackendError, match="Is a directory"):
        await opened(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Neither a new store nor an old one opens where nothing can be written."""
    asyncio.run(make_store(tmp_path / "old.db"))
    tmp_path.chmod(0o500)
    try:
        for name in ("new.db", "old.db"):
            with pytest.raises(BackendError, match="permissions"):
                asyncio.run(opened(tmp_path / name))
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """A store that is read-only is refused and left as it is."""
    path = tmp_path / "memory.db"
    asyncio.run(make_store(path))
    path.chmod(0o400)
    asyncio.run(assert_refused(path, BackendError, "Permission denied"))


FULL_DISK = """
import asyncio, resource, sys
from recollect.errors import BackendUnavailable
from recollect.stores.sqlite.store import SqliteStore
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
try:
    asyncio.run(SqliteStore(sys.argv[1]).open())
except BackendUnavailable as error:
    print(error)
"""


def test_a_disk_too_full_for_a_new_store(tmp_path: Path) -> None:
    """A store that does not fit is an error that says so; with room again it opens."""
    path = tmp_path / "memory.db"
    run = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True)
    assert "could not be read or written" in run.stdout or "full" in run.stdout
    asyncio.run(make_store(path))


def test_a_url_with_a_slash_too_few_is_shown_with_all_of_them() -> None:
    """With the name that was given."""
    with pytest.raises(ConfigError, match=r"names no file: write sqlite:///notes\.db$"):
        AsyncRecollect("sqlite://notes.db", embedder="hashing")
