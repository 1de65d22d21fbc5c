"""Which open store claimed an idempotency key, and whether its process is still alive.

An open store that claims keys holds an advisory lock on a connection of its own. The server releases the lock when the
connection ends, and that ends with the process, however it ends. A connection can also be lost while its process goes
on: the owner notices that at once and takes its lock again on a new one. So an owner is dead once its lock has been
free for `GRACE` seconds. See `claim` in ledger.sql.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

from recollect.errors import RecollectError
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Aside

Q = load(__name__, "ledger.sql")
GRACE: Final = 2.0
"""Seconds in which an owner that lost its connection has its lock again."""
PAUSES: Final = (0.1, 1.0)
"""Seconds between two tries to connect: at first, and at most; each pause is twice the one before."""


class Owner:
    """An open store as the owner of keys."""

    def __init__(self, connect: Aside) -> None:
        self._connect = connect
        self._number = secrets.randbits(63)
        self._attempt: asyncio.Future[None] | None = None
        self._holding: asyncio.Task[None] | None = None

    async def number(self) -> int:
        """The number of this owner, whose lock is held from the first call until `close`. A lost connection is
        replaced, and the owner keeps its claims. Raises BackendError while the lock cannot be taken.
        """
        if self._attempt is None:
            self._attempt = asyncio.Future()
            self._holding = asyncio.create_task(self._hold())
        await asyncio.shield(self._attempt)
        return self._number

    async def close(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.gather(self._holding, return_exceptions=True)
            self._attempt = self._holding = None

    async def _hold(self) -> None:
        """Hold the lock on one connection after the other."""
        pause, longest = PAUSES
        while attempt := self._attempt:
            try:
                async with self._connect() as db:
                    await db.execute(Q["own"], {"owner": self._number})
                    attempt.set_result(None)
                    pause = PAUSES[0]
                    async for _ in db.notifies():  # there are none: this ends with the connection
                        pass
            except RecollectError as error:
                if not attempt.done():
                    attempt.set_exception(error)
                    attempt.exception()  # for asyncio, which reports what nobody has looked at
            self._attempt = asyncio.Future()
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)
