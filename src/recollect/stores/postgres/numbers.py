"""The numbers of spaces, remembered, and those of new rows, handed out in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from recollect.stores.postgres.bulk import MANY
from recollect.stores.postgres.connections import Connections
from recollect.stores.postgres.rows import new_rows, space_number

NOWHERE: Final = 0
"""The number of every space that has no memory yet: spaces are numbered from 1, so nothing is ever found in it."""


class Numbers:
    """What this process knows of the numbers in a database."""

    def __init__(self, connections: Callable[[], Connections]) -> None:
        self.connections = connections
        self._spaces: dict[str, int] = {}
        self._in_order = asyncio.Lock()

    async def of(self, space: str) -> int:
        """The number that stands for a space. It never changes, and is remembered once there is one."""
        if space not in self._spaces:
            number = await self.connections().read(lambda db: space_number(db, space), share="rows")
            if number is None:
                return NOWHERE
            self._spaces[space] = number
        return self._spaces[space]

    def remember(self, space: str, number: int) -> None:
        self._spaces[space] = number

    async def for_rows(self, count: int) -> Sequence[int]:
        """Numbers for the rows of many records, in the order in which they are asked for, though batches are stored at
        the same time: what depends on the order of rows is then the same in every store. None for a few, which are
        numbered when they are stored.
        """
        if count < MANY:
            return ()
        async with self._in_order:
            return await self.connections().write(lambda db: new_rows(db, count))
