"""Memories as rows and back, and the numbers that stand for spaces and ids in the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from recollect.limits import utc
from recollect.stores.contents import Space
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Database
from recollect.stores.sql_store import Codec
from recollect.types import Memory

_LISTS: Final = {"ids": "text", "hashes": "bytea", "rows": "bigint", "seeds": "text"}
"""Lists that are parameters of a statement, and their types."""


def statements(file: str) -> dict[str, str]:
    """The statements of a file, with their pieces filled in. A list is put behind a subquery, which hides its length
    from the planner: in a table without statistics it would read a whole space rather than look up many ids. Lists are
    sent in binary (`%(…)b`), which is much faster than quoting.
    """
    blocks = load(__name__, file)
    lists = {name: f"ARRAY(SELECT unnest(%({name})b::{kind}[]))" for name, kind in _LISTS.items()}
    pieces = {"memory": blocks.get("memory", ""), **lists}
    return {name: _filled(sql, pieces) for name, sql in blocks.items()}


def _filled(sql: str, pieces: Mapping[str, str]) -> str:
    for name, piece in pieces.items():
        sql = sql.replace(f"{{{name}}}", piece)
    return sql


Q = statements("records.sql")

COLUMNS: Final = {
    "id": "text",
    "text": "text",
    "namespace": "text",
    "kind": "text",
    "title": "text",
    "tags": "text[]",
    "source": "text",
    "thread": "text",
    "place": "int8",
    "metadata": "text",  # what is sent as text is read as json there
    "created_at": "timestamptz",
    "updated_at": "timestamptz",
    "occurred_at": "timestamptz",
    "expires_at": "timestamptz",
    "superseded_by": "text",
    "quality": "float8",
    "embedding": "text",
}
"""A memory's own columns of the table `memories`, in the order of the `memory` query, and how they are sent."""


class Stored(NamedTuple):
    """A memory with its row number and hash."""

    row: int
    hash: bytes
    memory: Memory


_CODEC: Final = Codec(utc, utc, list, tuple)
encode, decode = _CODEC.encode, _CODEC.decode


async def stored(db: Database, space: Space, statement: str, **values: object) -> list[Stored]:
    """The memories that a statement finds; it begins with the query `memory`."""
    found = await rows_of(db, statement, space=space.number, **values)
    return [Stored(row, hash, decode(space.name, columns)) for row, hash, *columns in found]


async def fetch(db: Database, space: Space, ids: Iterable[str]) -> dict[str, Memory]:
    """The memories with these ids, in their order; those that are not in the space are left out."""
    wanted = list(ids)
    found = {one.memory.id: one.memory for one in await stored(db, space, Q["memories"], ids=wanted)}
    return {id: found[id] for id in wanted if id in found}


async def row_numbers(db: Database, space: int, ids: Iterable[str]) -> dict[str, int]:
    """The rows of these ids; those that are not in the space are left out."""
    return dict(await rows_of(db, Q["row_numbers"], space=space, ids=list(ids)))


async def space_number(db: Database, name: str) -> int | None:
    """The number of a space, or None while it has no memory."""
    found: list[tuple[int]] = await rows_of(db, Q["space_number"], name=name)
    return found[0][0] if found else None


async def ensure_space(db: Database, name: str) -> int:
    """The number of a space, added if it is new, and entered for row security. Of two transactions that add it, the
    second waits for the first.
    """
    number = await space_number(db, name)
    if number is None:
        added: list[tuple[int]] = await rows_of(db, Q["add_space"], name=name)
        number = added[0][0] if added else await space_number(db, name)
    assert number is not None  # noqa: S101 (spaces are never removed)
    await db.execute(Q["enter_space"], {"space": number})
    return number


async def new_rows(db: Database, count: int) -> list[int]:
    return await firsts(db, Q["new_rows"], count=count)


async def rows_of(db: Database, statement: str, **values: object) -> list[Any]:
    return await (await db.execute(statement, values)).fetchall()


async def firsts(db: Database, statement: str, **values: object) -> list[Any]:
    """The first column of a statement's rows."""
    return [first for first, *_ in await rows_of(db, statement, **values)]
