"""Admission: so many recalls are under way at once, and the others wait before their deadlines begin.

Work that an engine cannot do in time is not done in time by beginning all of it at once: everybody would be late then.
"""

from __future__ import annotations

import asyncio
from typing import Final

from recollect.calls.gate import ROOM
from recollect.errors import BackendUnavailable

LONGEST_WAIT: Final = 30.0
"""Seconds that a recall waits for its turn."""


class Admission:
    """Lets recalls begin in the order in which they came: `async with admission`. Raises BackendUnavailable when the
    turn of one does not come.
    """

    def __init__(self, at_once: int = ROOM, longest_wait: float = LONGEST_WAIT) -> None:
        self._at_once = at_once
        self._longest_wait = longest_wait
        self._room = asyncio.Semaphore(at_once)

    async def __aenter__(self) -> None:
        if not self._room.locked():
            await self._room.acquire()
            return
        try:
            async with asyncio.timeout(self._longest_wait):
                await self._room.acquire()
        except TimeoutError:
            raise BackendUnavailable(
                f"{self._at_once} recalls are under way and more are waiting, this one for {self._longest_wait:g} s: "
                "ask again later, or ask less at once",
                backend="recollect",
            ) from None

    async def __aexit__(self, *_: object) -> None:
        self._room.release()
