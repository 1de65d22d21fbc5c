"""The numbers of spaces, cached, and the numbers of new rows, handed out in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from recollect.stores.postgres.bulk import MANY
from recollect.stores.postgres.connections import Connections
from recollect.stores.postgres.rows import new_rows, space_number

NOWHERE: Final = 0
"""The number of a space without memories. Spaces are numbered from 1, so it never finds anything."""


class Numbers:
    """The numbers that stand for spaces and rows in one database."""

    def __init__(self, connections: Callable[[], Connections]) -> None:
        self.connections = connections
        self._spaces: dict[str, int] = {}
        self._in_order = asyncio.Lock()

    async def of(self, space: str) -> int:
        """The number of a space, which never changes."""
        if space not in self._spaces:
            number = await self.connections().read(lambda db: space_number(db, space), share="rows")
            if number is None:
                return NOWHERE
            self._spaces[space] = number
        return self._spaces[space]

    def remember(self, space: str, number: int) -> None:
        self._spaces[space] = number

    async def for_rows(self, count: int) -> Sequence[int]:
        """Row numbers for many records, in the order of the calls even if batches are stored concurrently, so that
        every store orders rows alike. Empty for a few records, which are numbered when they are stored.
        """
        if count < MANY:
            return ()
        async with self._in_order:
            return await self.connections().write(lambda db: new_rows(db, count))
