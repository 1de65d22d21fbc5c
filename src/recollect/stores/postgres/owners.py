"""Which open store claimed an idempotency key, and whether its process is still alive.

An open store that claims keys holds an advisory lock on a connection of its own. The server releases the lock when the
connection ends, and that ends with the process, however it ends: an owner without its lock is dead. See `claim` in
ledger.sql.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from typing import Final

import psycopg

from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Aside, Database

Q = load(__name__, "ledger.sql")
PATIENCE: Final = 5.0
"""Seconds after which a connection that does not answer counts as lost."""


class Owner:
    """An open store as the owner of keys."""

    def __init__(self, connect: Aside) -> None:
        self._connect = connect
        self._number = secrets.randbits(63)
        self._line = AsyncExitStack()
        self._db: Database | None = None
        self._turn = asyncio.Lock()

    async def number(self) -> int:
        """The number of this owner, whose lock is held from the first call until `close`. A lost connection is
        replaced, and the owner keeps its claims.
        """
        async with self._turn:
            if self._db is None or not await _answers(self._db):
                await self._line.aclose()
                self._db = await self._line.enter_async_context(self._connect())
                await self._db.execute(Q["own"], {"owner": self._number})
        return self._number

    async def close(self) -> None:
        self._db = None
        await self._line.aclose()


async def _answers(db: Database) -> bool:
    try:
        async with asyncio.timeout(PATIENCE):
            await db.execute("SELECT 1")
    except (psycopg.Error, TimeoutError):
        return False
    return True
