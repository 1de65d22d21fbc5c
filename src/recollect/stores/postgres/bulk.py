"""Writes many rows into a table: with COPY where possible, else with INSERT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from psycopg import AsyncConnection, AsyncCursor

Database: TypeAlias = AsyncConnection[Any]
"""A connection inside a transaction."""
Aside: TypeAlias = Callable[[], AbstractAsyncContextManager[Database]]
"""Gives a connection outside the pool, in autocommit mode and without a statement timeout."""
Rows: TypeAlias = Sequence[Sequence[Any]]

MANY: Final = 20
"""Rows from which COPY is faster."""
VALUES_AT_ONCE: Final = 10_000
"""Values per INSERT: the protocol counts them in 16 bits."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table and the columns that are written, with their types. `copied` encodes all rows for COPY at once, where
    that is faster than row by row.
    """

    name: str
    columns: Mapping[str, str]
    copied: Callable[[Rows], bytes] | None = None

    def insert(self, rows: int) -> str:
        row = f"({', '.join(['%s'] * len(self.columns))})"
        return f"INSERT INTO {self._target} VALUES {', '.join([row] * rows)}"  # noqa: S608 (our own names)

    @property
    def copy(self) -> str:
        return f"COPY {self._target} FROM STDIN (FORMAT BINARY)"

    @property
    def _target(self) -> str:
        return f"{self.name} ({', '.join(self.columns)})"


async def write_rows(db: Database, table: Table, rows: Rows) -> None:
    if not rows:
        return
    async with db.cursor() as cursor:
        if len(rows) < MANY or await _is_secured(cursor, table):
            await _insert(cursor, table, rows)
        else:
            await _copy(cursor, table, rows)


async def _copy(cursor: AsyncCursor[Any], table: Table, rows: Rows) -> None:
    async with cursor.copy(table.copy) as copy:
        if table.copied:
            await copy.write(table.copied(rows))
            return
        copy.set_types([*table.columns.values()])
        for row in rows:
            await copy.write_row(row)


async def _insert(cursor: AsyncCursor[Any], table: Table, rows: Rows) -> None:
    at_once = VALUES_AT_ONCE // len(table.columns)
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        await cursor.execute(table.insert(len(some)), [value for row in some for value in row])


async def _is_secured(cursor: AsyncCursor[Any], table: Table) -> bool:
    """Whether row security applies to this role here: COPY does not work then."""
    await cursor.execute("SELECT row_security_active(%s)", [table.name])
    return any(secured for (secured,) in await cursor.fetchall())
