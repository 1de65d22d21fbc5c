"""Stops a private Postgres when its last user is gone, even if that user was killed.

Each user of the server holds a shared lock on the file `users` in its folder, which the system releases when the
process ends. Starting or stopping the server takes a lock on `starting`. The watchdog is a separate process that waits
for the last user to leave. It runs this file alone, without the rest of the package, to stay small.
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
"""Created when the server is started, and only then: later the folder may be gone."""
PATIENCE: Final = 5.0
"""Seconds a server has for a fast shutdown."""
CHECKPOINT: Final = 60.0
"""Seconds it has to write its checkpoint, which makes the next start faster."""
IMMEDIATE: Final = 7.0
"""Seconds it has for an immediate shutdown. It kills lingering children after five."""
ORPHANS: Final = 2.0
"""Seconds that processes without a postmaster have to end."""
SHUTTING_DOWN: Final = 3
IN_CRASH_RECOVERY: Final = 4
"""Two values of the state in `pg_control`: four bytes at offset 16."""


class Postmaster(NamedTuple):
    pid: int
    sockets: Path
    port: str
    stopping: bool


def running(data: Path) -> Postmaster | None:
    """The server of a data folder if it accepts connections; `postmaster.pid` may be left from one that died."""
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
    """Hold the lock for starting and stopping the server."""
    with (folder / STARTING).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_watched(folder: Path) -> bool:
    """Whether a watchdog is running."""
    with (folder / WATCHED).open() as file:
        return not _lock(file, fcntl.LOCK_EX)


def stop_unused(folder: Path) -> None:
    with starting(folder):
        _stop_unused(folder)


def _stop_unused(folder: Path) -> bool:
    """Stop the server if it has no users, and say whether it had none. The caller holds `starting`."""
    with (folder / USERS).open() as users:
        if not _is_last(users):
            return False
        stop(folder / DATA)
        return True


def _is_last(users: IO[str]) -> bool:
    """Whether there are no other users: an exclusive lock succeeds. If it fails and a shared one fails too, the
    watchdog, just woken by the last user, still holds it: try again.
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
    """Stop the server and all its processes, whatever state it is in: fast shutdown, then immediate, then kill. Each
    is safe, because what is committed is on disk.
    """
    server = running(data)
    if server:
        _stop_postmaster(server.pid, data)
        if server.sockets != data:
            with suppress(OSError):
                server.sockets.rmdir()
    _end_orphans(data)


def _stop_postmaster(pid: int, data: Path) -> None:
    """Fast shutdown, then immediate, then kill. During crash recovery Postgres 18 never completes a fast shutdown, so
    it gets the immediate one right away.
    """
    if not _send_signal(pid, signal.SIGINT):
        return
    begin = time.monotonic()
    while _is_running(pid, data):
        state, waited = _state(data), time.monotonic() - begin
        if state == IN_CRASH_RECOVERY or waited > (CHECKPOINT if state == SHUTTING_DOWN else PATIENCE):
            break
        time.sleep(0.01)
    else:
        return
    if _send_signal(pid, signal.SIGQUIT) and not _wait(lambda: not _is_running(pid, data), IMMEDIATE):
        _send_signal(pid, signal.SIGKILL)


def _end_orphans(data: Path) -> None:
    """End processes whose postmaster was killed. By themselves they end only when they next wait for something."""
    for number in (signal.SIGQUIT, signal.SIGKILL):
        left = processes(data)
        for pid in left:
            _send_signal(pid, number)
        if not left or _wait(lambda: not processes(data), ORPHANS):
            return


def processes(data: Path) -> list[int]:
    """The PIDs of a data folder's server, found by their working directory. Without /proc none are found, and the next
    server waits until they have ended.
    """
    found = []
    folder = data.resolve()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if process.joinpath("cwd").readlink() == folder and process.joinpath("comm").read_text() == "postgres\n":
                found.append(int(process.name))
    return found


def _is_running(pid: int, data: Path) -> bool:
    """A postmaster that stops removes its file; one that was killed leaves it."""
    return (data / "postmaster.pid").exists() and _send_signal(pid, 0)


def _state(data: Path) -> int:
    """The state in `pg_control`."""
    try:
        with (data / "global" / "pg_control").open("rb") as file:
            return int.from_bytes(file.read(20)[16:], sys.byteorder)
    except OSError:
        return SHUTTING_DOWN  # unknown: allow the longer time


def _send_signal(pid: int, number: int) -> bool:
    """Send a signal, and say whether the process was there."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):  # it has ended, and its PID may be reused
        return False
    return True


def _wait(until: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _watch(folder: Path) -> None:
    """Become a daemon, wait for the last user to leave, and stop the server."""
    with (folder / WATCHED).open() as watched:
        if not _lock(watched, fcntl.LOCK_EX) or os.fork():
            return
        os.setsid()
        while True:
            with (folder / USERS).open() as users:
                fcntl.flock(users, fcntl.LOCK_EX)
            with starting(folder):
                if _stop_unused(folder):
                    fcntl.flock(watched, fcntl.LOCK_UN)  # now, because this process takes time to end
                    return


if __name__ == "__main__":
    with suppress(FileNotFoundError):
        _watch(Path(sys.argv[1]))
