"""The pool of connections to one server: how they are made, lent and closed.

The pool is the only gate in front of the server. A call waits here for a connection, at most `acquire_timeout` seconds.
What it needs the connection for decides how much of the pool it may use:

- `search` leaves one connection free, so that many searches at once do not delay recalls that only read rows.
- `rows`, reading the rows that a search found, may use the whole pool.
- `other`, above all writes, may use half of it, so that recalls never wait behind slow writes.

If the server cannot be reached, the wait ends at once with the reason. Every answer has a time limit.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from pgvector.psycopg.vector import register_vector_info
from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.types import TypeInfo
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from recollect.errors import BackendError, BackendUnavailable
from recollect.settings import PostgresSettings
from recollect.stores.postgres.failures import BACKEND, Place, Unanswered, translate
from recollect.stores.sql_store import Share

T = TypeVar("T")
Types: TypeAlias = Sequence[TypeInfo]
Address: TypeAlias = Callable[[], Awaitable[str]]
"""Returns the DSN to connect to. For a private server, it starts the server first if it is not running."""

WARM: Final = 3
"""Connections kept open: one for each lane of a recall."""
GRACE: Final = 5.0
"""Seconds a server has to cancel a statement itself before we close the connection."""
RECONNECT_SECONDS: Final = 0.5
"""Seconds before a failed connection is tried again, once."""
DEFAULTS: Final[Mapping[str, str | int]] = {
    "application_name": "recollect",
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Connection parameters that apply unless the URL sets them."""

# The pool logs lost connections. Callers get an error already, so keep Python from printing the log as well.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Connection(AsyncConnection[TupleRow]):
    """A connection that gives up on a server that hangs."""

    patience: float | None = None
    given_up = False
    share: Share = "rows"

    async def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Wait for the answer to one statement, at most `patience` seconds."""
        timer = self.patience and asyncio.get_running_loop().call_later(self.patience, self._give_up)
        try:
            return await super().wait(gen, *args, **kwargs)
        except psycopg.OperationalError as error:
            if self.given_up:
                raise Unanswered(f"no answer within {self.patience:g} s") from error
            raise
        finally:
            if timer:
                timer.cancel()

    def _give_up(self) -> None:
        """Close the socket. Cancelling through the driver would wait for the server to answer."""
        self.given_up = True
        line = socket.socket(fileno=self.pgconn.socket)
        line.shutdown(socket.SHUT_RDWR)
        line.detach()  # the driver closes it


async def connect(dsn: str, types: Types = ()) -> Connection:
    """A connection outside the pool, in autocommit mode."""
    db = await Connection.connect(_with_defaults(dsn), autocommit=True, prepare_threshold=None)
    register(db, types)
    return db


def register(db: AsyncConnection[Any], types: Types) -> None:
    """Register pgvector's types by their known OIDs, which saves a query."""
    for info in types:
        if info.name == "vector":
            register_vector_info(db, info)
        else:
            register_halfvec_info(db, info)


class Pool:
    """At most `pool_size` connections, lent one at a time."""

    def __init__(self, address: Address, place: Place, settings: PostgresSettings, types: Types) -> None:
        self._address = address
        self._place = place
        self._settings = settings
        self._types = types
        self._lent = 0
        self._failure: psycopg.Error | BackendError | None = None
        self._waiting: set[asyncio.Timeout] = set()
        size = settings.pool_size
        self._most: dict[Share, int] = {"search": max(size - 1, 1), "rows": size, "other": max(size // 2, 1)}
        self._shares = {share: asyncio.Semaphore(most) for share, most in self._most.items()}
        self._pool = AsyncConnectionPool(
            self._conninfo,
            connection_class=Connection,
            kwargs={"autocommit": True, "prepare_threshold": None},
            configure=self._configure,
            min_size=min(WARM, size),
            max_size=size,
            timeout=settings.acquire_timeout,
            reconnect_timeout=RECONNECT_SECONDS,
            reconnect_failed=self._explain,
            open=False,
        )

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close()

    async def acquire(self, begin: str, share: Share) -> Connection:
        """A connection with a transaction begun, which also shows that it still works. Always give it back."""
        db = await self._get(share)
        try:
            await db.execute(begin)
        except BaseException:
            await self.give_back(db)
            raise
        return db

    async def renew(self) -> None:
        """Replace idle connections that were lost. Restarts a private server that was killed."""
        await self._address()
        await self._pool.check()

    async def give_back(self, db: Connection) -> None:
        """Roll back and return a connection to the pool, which replaces it if it is closed."""
        try:
            if not db.closed and db.info.transaction_status is not TransactionStatus.IDLE:
                async with asyncio.timeout(GRACE):
                    await db.execute("ROLLBACK")
        except (psycopg.Error, TimeoutError):
            await db.close()
        finally:
            self._lent -= 1
            self._shares[db.share].release()
            await self._pool.putconn(db)

    async def _get(self, share: Share) -> Connection:
        scope = asyncio.timeout(self._settings.acquire_timeout)
        self._waiting.add(scope)
        try:
            async with scope:
                await self._shares[share].acquire()
                try:
                    db = await self._pool.getconn()
                except BaseException:
                    self._shares[share].release()
                    raise
        except PoolClosed as error:
            raise closed(self._place) from error
        except (PoolTimeout, TimeoutError) as error:
            raise self._no_connection(share) from self._failure or error
        finally:
            self._waiting.discard(scope)
        self._failure = None
        self._lent += 1
        db.share = share
        return db

    def _no_connection(self, share: Share) -> BackendError:
        if isinstance(self._failure, BackendError):
            return self._failure
        if self._failure:
            return translate(self._failure, self._place)
        seconds, most = self._settings.acquire_timeout, self._most[share]
        if not self._lent:
            return BackendUnavailable(f"{self._place} accepted no connection within {seconds:g} s", backend=BACKEND)
        return BackendUnavailable(
            f"all {most} connections to {self._place} that this call may use were in use for {seconds:g} s: "
            "raise [postgres] pool_size, or make fewer calls at once",
            backend=BACKEND,
        )

    async def _conninfo(self) -> str:
        return _with_defaults(await self._address())

    async def _configure(self, db: Connection) -> None:
        db.patience = self._settings.statement_timeout + GRACE
        register(db, self._types)

    async def _explain(self, _pool: object) -> None:
        """Called when no connection could be made. If none is lent either, fail all waiting calls with the reason."""
        try:
            await (await connect(await self._address())).close()
        except (psycopg.Error, BackendError) as error:
            self._failure = error
            if not self._lent:
                now = asyncio.get_running_loop().time()
                for scope in self._waiting:
                    scope.reschedule(now)
        else:
            await self._pool.check()  # the server is back: let the pool grow again


def closed(place: Place) -> BackendError:
    return BackendError(f"the store in {place} is not open: open it first", backend=BACKEND)


def _with_defaults(dsn: str) -> str:
    return make_conninfo(dsn, **{key: value for key, value in DEFAULTS.items() if key not in conninfo_to_dict(dsn)})
