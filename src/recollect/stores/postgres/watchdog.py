"""Who uses a private Postgres, and its end: it is stopped when nobody uses it any more, however they went.

Whoever uses the server of a folder holds a shared lock on the file `users` in it, which the system takes back even from
a process that was killed. Whoever starts or stops the server holds the file `starting`. The watchdog is a process of
its own that waits until the last user is gone. It runs this file alone, without the rest of the package, so that it
stays small.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA: Final = "postgres"
USERS: Final = "users"
STARTING: Final = "starting"
WATCHED: Final = "watched"
LOCKS: Final = (USERS, STARTING, WATCHED)
"""Files that whoever starts the server makes, and that nobody else does: the folder may be gone."""
STOPPING: Final = 60.0
"""Seconds that a server may take to stop."""


class Postmaster(NamedTuple):
    """A server that is running."""

    pid: int
    sockets: Path
    port: str


def running(data: Path) -> Postmaster | None:
    """The server of a data folder, if it answers: a file that says so may be left from one that died."""
    try:
        pid, _, _, port, sockets, *_ = (data / "postmaster.pid").read_text().splitlines()
        server = Postmaster(int(pid), data / sockets, port)
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(server.sockets / f".s.PGSQL.{port}"))
    except (OSError, ValueError):
        return None
    return server


@contextmanager
def starting(folder: Path) -> Iterator[None]:
    """Nobody else starts or stops the server meanwhile."""
    with (folder / STARTING).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_watched(folder: Path) -> bool:
    """Whether a watchdog is there."""
    with (folder / WATCHED).open() as file:
        return not _lock(file, fcntl.LOCK_EX)


def stop_unused(folder: Path) -> None:
    """Stop the server if nobody uses it."""
    with starting(folder):
        _stop_unused(folder)


def _stop_unused(folder: Path) -> bool:
    """Whether nobody used it; to be called by who holds `starting`."""
    with (folder / USERS).open() as users:
        if not _is_last(users):
            return False
        _stop(folder / DATA)
        return True


def _is_last(users: IO[str]) -> bool:
    """A lock that excludes everybody can be had when there is no user. It cannot either while the watchdog, which has
    just been woken by the last one, still holds it: then not even a shared one can be had, or it can from now on.
    """
    while not _lock(users, fcntl.LOCK_EX):
        if _lock(users, fcntl.LOCK_SH):
            return _lock(users, fcntl.LOCK_EX)
        time.sleep(0.01)
    return True


def _lock(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stop(data: Path) -> None:
    """The fast way: open transactions are undone, what is committed is on the disk."""
    server = running(data)
    if server is None:
        return
    os.kill(server.pid, signal.SIGINT)
    end = time.monotonic() + STOPPING
    while (data / "postmaster.pid").exists() and time.monotonic() < end:
        time.sleep(0.01)
    if server.sockets != data:
        with suppress(OSError):
            server.sockets.rmdir()


def _watch(folder: Path) -> None:
    """Leave the process that started this one, and wait."""
    with (folder / WATCHED).open() as watched:
        if not _lock(watched, fcntl.LOCK_EX) or os.fork():
            return
        os.setsid()
        while True:
            with (folder / USERS).open() as users:
                fcntl.flock(users, fcntl.LOCK_EX)
            with starting(folder):
                if _stop_unused(folder):
                    fcntl.flock(watched, fcntl.LOCK_UN)  # before another may start: this process takes time to end
                    return


if __name__ == "__main__":
    with suppress(FileNotFoundError):
        _watch(Path(sys.argv[1]))
