"""One database, opened: a transaction around each read and each write.

Nothing is kept in a session, so a pooler such as pgbouncer may run each transaction in another one: the statement that
begins a transaction also sets what it needs. A cancelled call returns at once; a separate task asks the server to stop,
because a server that hangs would hold up the caller.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection, IsolationLevel, errors
from psycopg.types import TypeInfo

from recollect.errors import BackendError, BackendUnavailable
from recollect.settings import PostgresSettings
from recollect.stores.named_sql import load
from recollect.stores.postgres import letters, migrations
from recollect.stores.postgres.failures import BACKEND, Place, Unanswered, is_lost, translate
from recollect.stores.postgres.pool import Address, Pool, Types, closed, connect
from recollect.stores.sql_store import Share
from recollect.types import Migration

T = TypeVar("T")
Work: TypeAlias = Callable[[AsyncConnection[Any]], Awaitable[T]]

Q = load(__name__, "connections.sql")
ATTEMPTS: Final = 8
"""Transactions per call, at most. Five were too few for five writers that store and forget the same text."""
PAUSE: Final = 0.02
"""Longest pause before a write that collided is retried, in seconds; doubled each time."""
_log = logging.getLogger(__name__)
COLLISIONS: Final = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation)


class Connections:
    """Work is an async function of a connection; it runs inside a transaction."""

    def __init__(self, dsn: str, settings: PostgresSettings, private: Address | None = None) -> None:
        """`private` is the address of a server that only we use: it may move, and we may migrate its schema."""
        self.place = Place(dsn)
        self.settings = settings
        self._private = private is not None
        self._address = private or _always(dsn)
        self._pool: Pool | None = None
        self._types: Types = ()
        self._path = ""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._snapshot: str | None = None

    async def open(self, *, create: bool) -> None:
        """Open the database. With `create`, make a store if there is none."""
        if self._pool:
            return
        async with self._alone() as db:
            await migrations.prepare(db, self.place, self.settings.schema, create=create, private=self._private)
            found = await (await db.execute(Q["surroundings"])).fetchall()
            for remark in await letters.remarks(db):
                _log.warning("%s: %s", self.place, remark)
        self._types = [TypeInfo(*row[:3]) for row in found]
        self._path = ", ".join((self.settings.schema, *found[0][3:]))
        pool = Pool(self._address, self.place, self.settings, self._types)
        await pool.open()
        self._pool = pool

    async def migrate(self, *, dry_run: bool, row_security: bool = False) -> Migration:
        """Migrate the database to the newest version; what was done, or would be."""
        schema = self.settings.schema
        async with self._alone() as db:
            plan = await migrations.plan(db, self.place, schema, row_security=row_security)
            if plan.steps and not dry_run:
                await migrations.migrate(db, self.place, schema, row_security=row_security)
        return plan

    async def close(self) -> None:
        """Wait for running calls, then close the pool."""
        pool, self._pool = self._pool, None
        if pool:
            while self._tasks:
                await asyncio.wait(self._tasks)
            await pool.close()

    async def read(self, work: Work[T], *, space: int | None = None, share: Share = "other") -> T:
        """Run `work` on one snapshot of the store. Cancelling the wait stops the work."""
        return await self._run(self._begin("read", space), work, share)

    async def write(self, work: Work[T], *, space: int | None = None) -> T:
        """Run `work` in one transaction, durable on return; an error, or cancelling the wait, undoes all of it."""
        return await self._run(self._begin("write", space), work, "other", commit=True)

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A connection outside the pool, for work that is slow or cannot run in a transaction."""
        self._opened()
        async with self._alone() as db:
            await db.execute(Q["session"].format(path=self._path))
            yield db

    @asynccontextmanager
    async def frozen(self) -> AsyncIterator[Connections]:
        """The same database, reading from one snapshot: later writes are not seen."""
        async with self.autocommit() as db:
            await db.execute(Q["freeze"])
            row = await (await db.execute(Q["export_snapshot"])).fetchone()
            still = copy(self)
            still._snapshot = row[0] if row else None
            yield still

    async def _commit(self, db: AsyncConnection[Any]) -> None:
        try:
            done = (await db.execute("COMMIT")).statusmessage
        except psycopg.OperationalError as error:
            if not is_lost(error) and not isinstance(error, Unanswered):
                raise
            raise BackendUnavailable(
                f"the connection to {self.place} was lost while a change was being stored, so it may or may not "
                "be stored: run it again, which is safe because stored memories are recognised",
                backend=BACKEND,
            ) from error
        if done != "COMMIT":
            raise BackendError(f"a change was not stored in {self.place}: an error in it was ignored", backend=BACKEND)

    async def _run(self, begin: str, work: Work[T], share: Share, *, commit: bool = False) -> T:
        """Run in a separate task, and cancel it if the caller is cancelled."""
        task = self._start(self._repeated(self._opened(), begin, work, share, commit=commit))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            task.add_done_callback(_ignore_failure)
            raise
        except psycopg.Error as error:
            raise translate(error, self.place) from error

    async def _repeated(self, pool: Pool, begin: str, work: Work[T], share: Share, *, commit: bool) -> T:
        """Run a transaction, and retry it where that helps. Nothing else retries.

        A collision with another writer (a deadlock, or a row that both add) is retried after a pause, up to `ATTEMPTS`
        times: the retry sees what the other stored. A connection lost before COMMIT is replaced and the work retried
        once: the server rolled it back. A lost COMMIT is not retried, because the change may be stored.
        """
        attempt, lost = 1, False
        while True:
            try:
                return await self._once(pool, begin, work, share, commit=commit)
            except COLLISIONS:
                if attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(random.uniform(0, PAUSE * 2**attempt))  # noqa: S311 (nothing secret)
            except psycopg.OperationalError as error:
                if lost or attempt == ATTEMPTS or not is_lost(error):
                    raise
                lost = True
                await pool.renew()
            attempt += 1

    async def _once(self, pool: Pool, begin: str, work: Work[T], share: Share, *, commit: bool) -> T:
        db = await pool.acquire(begin, share)
        try:
            answer = await work(db)
            if commit:
                await self._commit(db)
        finally:
            self._start(pool.give_back(db))  # a read need not wait for its ROLLBACK
        return answer

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _opened(self) -> Pool:
        if not self._pool:
            raise closed(self.place)
        return self._pool

    def _begin(self, mode: str, space: int | None) -> str:
        """The statements that begin a transaction and configure it, in one round trip."""
        local = Q["local"].format(
            path=self._path,
            timeout=max(1, round(self.settings.statement_timeout * 1000)),
            space="" if space is None else space,
        )
        if self._snapshot:
            return ";\n".join([Q[mode], Q["use_snapshot"].format(snapshot=self._snapshot), local])
        return ";\n".join([Q[mode], local, *([Q["before_snapshot"]] if mode == "read" else [])])

    def _alone(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        return _alone(self._address, self._types, self.place)


@asynccontextmanager
async def _alone(address: Address, types: Types, place: Place) -> AsyncIterator[AsyncConnection[Any]]:
    try:
        async with await connect(await address(), types) as db:
            await db.set_isolation_level(IsolationLevel.READ_COMMITTED)
            yield db
    except psycopg.Error as error:
        raise translate(error, place) from error


def _always(dsn: str) -> Address:
    async def address() -> str:
        return dsn

    return address


def _ignore_failure(task: asyncio.Task[Any]) -> None:
    """Keep asyncio from reporting the failure of a task whose caller has gone."""
    if not task.cancelled():
        task.exception()
