"""A private Postgres whose processes are killed comes back by itself, with all that was acknowledged."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import psycopg
import pytest

from recollect import AsyncRecollect, AsyncSpace
from recollect.stores.postgres import watchdog
from recollect.stores.postgres.server import EmbeddedServer

TEXTS = [f"invoice {number} was paid" for number in range(20)]
PATIENT = {name: {"deadline": 60.0} for name in ("vector", "keyword", "graph")}
"""A busy machine is no fault of the server's."""
FOR_EVER = "SELECT count(*) FROM generate_series(1, 100000000000)"


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    with TemporaryDirectory(prefix="recollect-pg-") as parent:
        asyncio.run(fill(Path(parent, "server")))
        yield Path(parent, "server")


@pytest.fixture
def folder(made: Path) -> Iterator[Path]:
    """The folder of a store that holds the texts. Whatever a test leaves running ends with it."""
    yield made
    kill_all(made)


async def fill(folder: Path) -> None:
    async with opened(folder) as work:
        await remember(work, TEXTS)


def kill_all(folder: Path) -> None:
    for pid in watchdog.processes(folder / "postgres"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[AsyncSpace]:
    async with AsyncRecollect(f"embedded-postgres:///{folder}", embedder="hashing") as recollect:
        yield recollect.space("work")


async def remember(work: AsyncSpace, texts: list[str]) -> None:
    for text in texts:
        await work.remember(text)


async def all_there(work: AsyncSpace, *more: str) -> bool:
    found = [memory.text for memory in (await work.list(limit=100)).memories]
    return {*TEXTS, *more} <= {*found} and len(found) == len({*found})


def postmaster(folder: Path) -> psutil.Process:
    server = watchdog.running(folder / "postgres")
    assert server
    return psutil.Process(server.pid)


def backend(folder: Path) -> psutil.Process:
    """A process that serves one connection."""
    return next(child for child in postmaster(folder).children() if "[local]" in " ".join(child.cmdline()))


async def killed(process: psutil.Process) -> None:
    process.kill()
    await asyncio.to_thread(psutil.wait_procs, [process], 10)


async def until_logged(folder: Path, words: str) -> None:
    while words not in (folder / "postgres" / "log").read_text():  # noqa: ASYNC110 (Postgres gives no event for it)
        await asyncio.sleep(0.005)


async def test_the_last_user_leaves_while_the_server_recovers(folder: Path) -> None:
    """A backend is killed, and the server restarts its processes: a store that is closed meanwhile does not leave a
    server behind that neither ends nor works.
    """
    async with opened(folder):
        backend(folder).kill()
        await until_logged(folder, "reinitializing")
    assert not watchdog.processes(folder / "postgres")
    async with opened(folder) as work:
        assert await all_there(work)


async def test_a_server_that_was_left_between_recovery_and_its_end(folder: Path) -> None:
    """Told to stop while it recovered, by somebody who did not see to it: the next who opens the store gets through."""
    users = EmbeddedServer(folder)
    with psycopg.connect(await users.start()) as db:
        os.kill(db.info.backend_pid, signal.SIGKILL)
        await until_logged(folder, "reinitializing")
        postmaster(folder).send_signal(signal.SIGINT)
        await until_logged(folder, "fast shutdown")
    async with opened(folder) as work:
        assert await all_there(work)
    await users.stop()


async def test_a_backend_is_killed_under_an_open_client(folder: Path) -> None:
    """The client's next calls wait for the recovery, and succeed."""
    async with opened(folder) as work:
        backend(folder).kill()
        await until_logged(folder, "terminating any other active server processes")
        await remember(work, ["one more"])
        assert await all_there(work, "one more")
        assert len(await work.recall("which invoice was paid?", lanes=PATIENT)) > 0


async def test_a_postmaster_is_killed_under_an_open_client(folder: Path) -> None:
    """The server is started again by the next call, though a process of the old one is still at work; what was stored
    is there, and the client goes on.
    """
    async with opened(folder) as work:
        with closing(psycopg.connect(await EmbeddedServer(folder).address())) as busy:
            busy.pgconn.send_query(FOR_EVER.encode())
            await killed(postmaster(folder))
            await remember(work, ["one more"])
        assert await all_there(work, "one more")
        assert len(await work.recall("which invoice was paid?", lanes=PATIENT)) > 0
    assert not watchdog.processes(folder / "postgres")


async def test_a_server_that_moves_is_followed(pg_folder: Path) -> None:
    """Where the folder's name is too long for a socket, a server that is started again listens elsewhere."""
    folder = pg_folder / ("long " * 20)
    async with opened(folder) as work:
        await remember(work, TEXTS)
        await killed(postmaster(folder))
        assert await all_there(work)


@contextmanager
def bystander(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the user who runs the server, which has nothing to do with it."""
    owner = (folder / "postgres").stat().st_uid
    with subprocess.Popen(["sleep", "600"], user=owner if os.geteuid() == 0 else None) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_pid_that_was_reused(folder: Path) -> None:
    """The lock files of a server that died, one for its data and one for its socket, name a process that is alive and
    another's: the server starts, and that process is left alone.
    """
    data = folder / "postgres"
    server = EmbeddedServer(folder)
    await server.start()
    locks = [data / "postmaster.pid", data / ".s.PGSQL.5432.lock"]
    left = {file: file.read_text() for file in locks}
    kill_all(folder)
    await server.stop()
    with bystander(folder) as other:
        for file, words in left.items():
            _, newline, rest = words.partition("\n")
            file.write_text(f"{other.pid}{newline}{rest}")
        async with opened(folder) as work:
            assert await all_there(work)
        assert other.poll() is None


def end_watchdog(folder: Path) -> None:
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] and process.info["cmdline"][-2:] == [watchdog.__file__, str(folder)]:
            process.kill()
            process.wait()


async def test_a_server_that_does_not_hear_is_killed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A postmaster that hangs is killed with its children when nothing else helps, and nothing is lost."""
    monkeypatch.setattr(watchdog, "PATIENCE", 0.2)
    monkeypatch.setattr(watchdog, "IMMEDIATE", 0.2)
    async with opened(folder) as work:
        await remember(work, ["one more"])
        end_watchdog(folder)  # which has the usual patience
        frozen = postmaster(folder)
        frozen.suspend()
    assert not watchdog.processes(folder / "postgres")
    async with opened(folder) as work:
        assert await all_there(work, "one more")
