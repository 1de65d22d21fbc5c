"""Whose turn it is: so many recalls are under way at once, and a crowd beyond that waits before its deadlines begin.

Work that an engine cannot do in time is not done in time by beginning all of it at once: everybody would be late then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from recollect.engine.guards import ROOM
from recollect.errors import BackendUnavailable

PATIENCE: Final = 30.0
"""Seconds that a recall waits for its turn."""


class Turns:
    """Lets recalls begin in the order in which they came."""

    def __init__(self, at_once: int = ROOM, patience: float = PATIENCE) -> None:
        self._at_once = at_once
        self._patience = patience
        self._room = asyncio.Semaphore(at_once)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Around a recall. Raises BackendUnavailable when its turn does not come."""
        await (self._wait() if self._room.locked() else self._room.acquire())
        try:
            yield
        finally:
            self._room.release()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._room.acquire()
        except TimeoutError:
            raise BackendUnavailable(
                f"{self._at_once} recalls are under way and more are waiting, this one for {self._patience:g} s: ask "
                "again later, or ask less at once",
                backend="recollect",
            ) from None
