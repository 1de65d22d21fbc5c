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
    from collections.abc import Callable, Iterator

DATA: Final = "postgres"
USERS: Final = "users"
STARTING: Final = "starting"
WATCHED: Final = "watched"
LOCKS: Final = (USERS, STARTING, WATCHED)
"""Files that whoever starts the server makes, and that nobody else does: the folder may be gone."""
PATIENCE: Final = 5.0
"""Seconds that a server has to stop by itself."""
CHECKPOINT: Final = 60.0
"""Seconds that it has while it writes down what is only in its memory, which saves time at the next start."""
IMMEDIATE: Final = 7.0
"""Seconds that it has when it is told to leave everything as it is. It kills children that linger after five."""
ORPHANS: Final = 2.0
"""Seconds that processes have whose postmaster is gone."""
SHUTTING_DOWN: Final = 3
IN_CRASH_RECOVERY: Final = 4
"""Two of the states in `pg_control`, four bytes after the first sixteen."""


class Postmaster(NamedTuple):
    """A server that is running."""

    pid: int
    sockets: Path
    port: str
    stopping: bool


def running(data: Path) -> Postmaster | None:
    """The server of a data folder, if it answers: a file that says so may be left from one that died."""
    try:
        pid, _, _, port, sockets, _, _, status = (data / "postmaster.pid").read_text().splitlines()
        server = Postmaster(int(pid), data / sockets, port, status.strip() == "stopping")
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
        stop(folder / DATA)
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


def stop(data: Path) -> None:
    """Stop the server and see that no process of it is left, whatever state it is in. What is committed is on the disk,
    so each step is safe: undo open transactions and write a checkpoint; leave at once; be killed.
    """
    server = running(data)
    if server:
        _ask(server.pid, data)
        if server.sockets != data:
            with suppress(OSError):
                server.sockets.rmdir()
    _end_orphans(data)


def _ask(pid: int, data: Path) -> None:
    """Ask a postmaster to stop, then to stop at once, then kill it. During crash recovery Postgres 18 takes the first
    request and never ends, so it gets the second one right away.
    """
    if not _is_told(pid, signal.SIGINT):
        return
    begin = time.monotonic()
    while _is_there(pid, data):
        state, waited = _state(data), time.monotonic() - begin
        if state == IN_CRASH_RECOVERY or waited > (CHECKPOINT if state == SHUTTING_DOWN else PATIENCE):
            break
        time.sleep(0.01)
    else:
        return
    if _is_told(pid, signal.SIGQUIT) and not _wait(lambda: not _is_there(pid, data), IMMEDIATE):
        _is_told(pid, signal.SIGKILL)


def _end_orphans(data: Path) -> None:
    """A server process whose postmaster was killed goes by itself, but only when it next waits for something."""
    for number in (signal.SIGQUIT, signal.SIGKILL):
        left = processes(data)
        for pid in left:
            _is_told(pid, number)
        if not left or _wait(lambda: not processes(data), ORPHANS):
            return


def processes(data: Path) -> list[int]:
    """The processes of a data folder's server, which all work inside it, whether or not their postmaster lives. Where
    there is no /proc none are found, and the next server waits until they have gone.
    """
    found = []
    folder = data.resolve()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it is gone, or somebody else's
            if process.joinpath("cwd").readlink() == folder and process.joinpath("comm").read_text() == "postgres\n":
                found.append(int(process.name))
    return found


def _is_there(pid: int, data: Path) -> bool:
    """A postmaster that stops removes its file; one that was killed leaves it."""
    return (data / "postmaster.pid").exists() and _is_told(pid, 0)


def _state(data: Path) -> int:
    """What the server last wrote down about itself."""
    try:
        with (data / "global" / "pg_control").open("rb") as file:
            return int.from_bytes(file.read(20)[16:], sys.byteorder)
    except OSError:
        return SHUTTING_DOWN  # unknown: be patient


def _is_told(pid: int, number: int) -> bool:
    """Whether a signal reached a process."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):  # it is gone, and its PID may be somebody else's
        return False
    return True


def _wait(until: Callable[[], bool], seconds: float) -> bool:
    """Whether something came true in time."""
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


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
