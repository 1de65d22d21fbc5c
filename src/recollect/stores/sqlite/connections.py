"""Threads and connections: many readers, each read one snapshot, and one writer. Driver errors are translated here.

SQLite steps without the interpreter's lock, so reads in worker threads run beside each other and beside the event
loop. Several processes may share the file: a read sees whatever was committed when it began.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import apsw

from recollect.errors import BackendError, BackendUnavailable
from recollect.stores.sqlite import closing, migrations
from recollect.stores.sqlite.transactions import writing

T = TypeVar("T")

READERS = min(os.cpu_count() or 1, 8) + 1
"""Concurrent reads: one per core, and one more because a read may wait for the disk. With more, searches of one recall
compete for the cores. Each reader has its own cache, and more than nine would wait for the interpreter."""

_MIB = 1 << 20
_ALONE = apsw.SQLITE_OPEN_NOMUTEX
"""One thread at a time uses a connection, so SQLite's own mutexes are off: they took a tenth of a search's time."""
_READER = _ALONE | apsw.SQLITE_OPEN_READONLY
_WRITER = _ALONE | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class Connections:
    """One store file, opened. Work is a function of a connection; it runs in a worker thread, inside a transaction."""

    def __init__(
        self,
        path: Path,
        *,
        readers: int = READERS,
        busy_seconds: float = 10.0,
        prepare: Callable[[apsw.Connection], None] | None = None,
    ) -> None:
        """`prepare` registers the functions that our SQL calls on each new connection."""
        self.path = path.absolute()  # the process may go to another folder
        self._prepare = prepare
        self._limit = readers
        self._busy_milliseconds = int(busy_seconds * 1000)
        self._file: _File | None = None
        self._idle: list[apsw.Connection] = []
        self._readers: ThreadPoolExecutor | None = None
        self._writer: tuple[ThreadPoolExecutor, apsw.Connection] | None = None

    async def open(self) -> None:
        """Open the file, creating or migrating it as needed. A file that is not a store is not touched."""
        if self._writer:
            return
        thread = ThreadPoolExecutor(1, thread_name_prefix="recollect-write")
        try:
            db = await asyncio.wrap_future(thread.submit(self.translated, self._open_file))
        except BaseException:
            thread.shutdown(wait=False)
            raise
        self._writer = thread, db
        self._readers = ThreadPoolExecutor(self._limit, thread_name_prefix="recollect-read")

    async def close(self) -> None:
        """Wait for running calls, then close all connections. The writer is last: it empties the log."""
        readers, writer = self._readers, self._writer
        self._readers = self._writer = None
        if readers and writer:
            await asyncio.to_thread(self._shut, readers, *writer)

    async def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` on one snapshot of the store. Cancelling the wait interrupts the work."""
        if not self._readers:
            raise self._closed()
        reading = _Reading(self, work)
        self._readers.submit(reading.run)
        try:
            return await reading.answer
        except asyncio.CancelledError:
            reading.abandon()
            raise

    async def read_now(self, work: Callable[[apsw.Connection], T]) -> T:
        """Read a row or two by key on the event loop, which is much faster than asking a thread. If the file is locked,
        as during crash recovery, a thread does it.
        """
        if not self._readers:
            raise self._closed()
        try:
            return self.translated(lambda: self._run_now(work))
        except BackendUnavailable:
            return await self.read(work)

    async def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` in one transaction, durable on return; an error rolls it back. Cancelling the wait does not stop a
        write that has begun. Raises BackendUnavailable if the file was removed or replaced.
        """
        if not self._writer:
            raise self._closed()
        thread, db = self._writer

        def run() -> T:
            self._check_file()
            with writing(db):
                first = closing.note_change(db)
                answer = work(db)
            if first:
                closing.take_over(db)
            return answer

        return await asyncio.wrap_future(thread.submit(self.translated, run))

    async def alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` on a closed store, on a separate connection and outside a transaction."""

        def run() -> T:
            db = self._connect(_WRITER, cache_mib=8)
            try:
                return work(db)
            finally:
                db.close()

        return await asyncio.to_thread(self.translated, run)

    async def check(self) -> None:
        """Raise unless the store can be read and the file is still in place."""
        await self.read(lambda _: self._check_file())

    def borrow(self) -> apsw.Connection:
        """The idle reader that was used last, whose cache is warm, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            self._check_file()  # a new connection must not see another store than the others do
            return self._connect(_READER, cache_mib=8)

    def give_back(self, db: apsw.Connection) -> None:
        self._idle.append(db)

    def _run_now(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work`, failing at once if the file is locked."""
        db = self.borrow()
        db.set_busy_timeout(0)
        try:
            return work(db)
        finally:
            db.set_busy_timeout(self._busy_milliseconds)
            self.give_back(db)

    def _open_file(self) -> apsw.Connection:
        folder = self.path.parent
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder")
        folder.mkdir(parents=True, exist_ok=True)
        migrations.inspect(self.path)
        torn = closing.lost_log(self.path)
        db = self._connect(_WRITER, cache_mib=64)
        try:
            migrations.prepare(db, self.path)
            if torn:
                closing.note_lost_log(db, self.path)
            self._file = _File.at(self.path)
        except BaseException:
            db.close()
            raise
        return db

    def _connect(self, flags: int, *, cache_mib: int) -> apsw.Connection:
        db = apsw.Connection(str(self.path), flags=flags, statementcachesize=256)
        db.set_busy_timeout(self._busy_milliseconds)
        db.pragma("synchronous", "full")
        db.pragma("temp_store", "memory")
        db.pragma("mmap_size", 1024 * _MIB)
        db.pragma("cache_size", -1024 * cache_mib)
        if self._prepare:
            self._prepare(db)
        return db

    def _shut(self, readers: ThreadPoolExecutor, thread: ThreadPoolExecutor, writer: apsw.Connection) -> None:
        readers.shutdown()
        thread.shutdown()
        for db in self._idle:
            db.close()
        self._idle.clear()
        if self._file is not None and self._file.is_there():
            closing.close(writer)
        writer.close()

    def _check_file(self) -> None:
        """Raise if the file was removed or replaced: SQLite would go on writing to the old one."""
        if self._file is not None and not self._file.is_there():
            raise BackendUnavailable(
                f"{self.path} was removed or replaced while it was open: open it again", backend="sqlite"
            )

    def _closed(self) -> BackendError:
        return BackendError(f"{self.path} is not open: open the store first", backend="sqlite")

    def translated(self, run: Callable[[], T]) -> T:
        """Call `run`, translating SQLite's errors into ours."""
        try:
            return run()
        except apsw.Error as error:
            raise translate(error, self.path) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise BackendError(f"{error.filename or self.path} cannot be used: {reason}", backend="sqlite") from error


class _File(NamedTuple):
    """The identity of the file at a path."""

    path: Path
    device: int
    number: int

    @classmethod
    def at(cls, path: Path) -> _File:
        found = path.stat()
        return cls(path, found.st_dev, found.st_ino)

    def is_there(self) -> bool:
        try:
            return _File.at(self.path) == self
        except (FileNotFoundError, NotADirectoryError):
            return False


class _Reading(Generic[T]):
    """One read in a worker thread. It passes its answer to the event loop, and can be interrupted while it holds its
    connection.
    """

    def __init__(self, connections: Connections, work: Callable[[apsw.Connection], T]) -> None:
        self._connections = connections
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[T] = self._loop.create_future()
        self._lock = threading.Lock()
        self._db: apsw.Connection | None = None

    def run(self) -> None:
        if self.answer.cancelled():  # before its turn came
            return
        with suppress(RuntimeError):  # the event loop is closed: nobody waits
            try:
                answer = self._connections.translated(self._read)
            except BaseException as error:  # noqa: BLE001 (the caller gets it)
                self._loop.call_soon_threadsafe(self._tell, self.answer.set_exception, error)
            else:
                self._loop.call_soon_threadsafe(self._tell, self.answer.set_result, answer)

    def abandon(self) -> None:
        with self._lock:
            if self._db:
                self._db.interrupt()

    def _read(self) -> T:
        db = self._connections.borrow()
        # An open cursor is the snapshot: while it stands every statement of this connection reads the same state,
        # and an interrupt stops not only the statement that is running but also those that would follow.
        snapshot = db.execute("SELECT 1 FROM sqlite_schema")
        self._hold(db)
        try:
            return self._work(db)
        finally:
            self._hold(None)
            snapshot.close()
            self._connections.give_back(db)

    def _tell(self, how: Callable[[Any], None], what: object) -> None:
        if not self.answer.done():
            how(what)

    def _hold(self, db: apsw.Connection | None) -> None:
        with self._lock:
            self._db = db


def translate(error: apsw.Error, path: Path) -> BackendError:
    """SQLite's error as ours."""
    kind, message = next((entry for error_type, entry in _MEANINGS.items() if isinstance(error, error_type)), _OTHER)
    return kind(message.format(path=path, error=str(error).rstrip(".")), backend="sqlite")


_OTHER: tuple[type[BackendError], str] = (BackendError, "SQLite failed on {path}: {error}")
_MEANINGS: dict[type[apsw.Error], tuple[type[BackendError], str]] = {
    apsw.BusyError: (BackendUnavailable, "{path} is being written by another process: try again in a moment"),
    apsw.LockedError: (BackendUnavailable, "{path} is being written by another process: try again in a moment"),
    apsw.InterruptError: (BackendUnavailable, "a read of {path} was cancelled"),
    apsw.FullError: (
        BackendUnavailable,
        "the disk that holds {path} is full: nothing was stored; free some space and try again",
    ),
    apsw.IOError: (
        BackendUnavailable,
        "{path} could not be read or written ({error}): nothing was stored; check the disk and try again",
    ),
    apsw.NoMemError: (BackendUnavailable, "SQLite ran out of memory on {path}: try again with a smaller batch"),
    apsw.ReadOnlyError: (BackendError, "{path} cannot be written: check the permissions of the file and its folder"),
    apsw.PermissionsError: (BackendError, "{path} cannot be read: check the permissions of the file and its folder"),
    apsw.CantOpenError: (BackendError, "{path} cannot be opened: check the permissions of the file and its folder"),
    apsw.NotADBError: (BackendError, "{path} is not a Recollect store: name another file"),
    apsw.CorruptError: (BackendError, "{path} is damaged ({error}): restore it from a backup or an export"),
}
