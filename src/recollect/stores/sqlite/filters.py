"""A `Filter` as SQL over the table `memories AS m`. Values are always parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

import apsw

from recollect.stores.contents import first_after, is_unfiltered
from recollect.stores.sqlite.rows import Q, as_json, micros
from recollect.types import Filter

__all__ = ["SQL", "among_query", "is_listed", "is_unfiltered", "passing_rows", "rows_query", "where_clause"]

SQL: TypeAlias = tuple[str, list[object]]
"""A piece of a statement, and its parameters."""


def where_clause(space: int, where: Filter) -> SQL:
    """The condition that a row of `memories AS m` must meet, for rows that are found in some other way."""
    pieces = list(_pieces(space, where))
    return " AND ".join(sql for sql, _ in pieces), [value for _, values in pieces for value in values]


def rows_query(space: int, where: Filter) -> SQL:
    """A query for every row that passes: through the first tag if there is one, else through the index that SQLite
    chooses.
    """
    if not where.tags:
        condition, values = where_clause(space, where)
        return Q["rows"].format(where=condition), values
    tag, *others = where.tags
    condition, values = where_clause(space, replace(where, tags=tuple(others)))
    return Q["tagged_rows"].format(where=condition), [space, tag, *values]


def among_query(space: int, where: Filter) -> SQL:
    """A query for rows that include all that pass: those of the first tag, which an index lists without reading the
    memories, or else exactly those that pass.
    """
    return (Q["tagged"], [space, where.tags[0]]) if is_listed(where) else rows_query(space, where)


def passing_rows(db: apsw.Connection, condition: SQL, rows: Sequence[int]) -> list[tuple[int, str, bool]]:
    """Which of some rows meet a condition, their ids, and whether they are in a thread."""
    sql, values = condition
    found: list[tuple[int, str, bool]] = json.loads(
        db.execute(Q["passing"].format(where=sql), [as_json(rows), *values]).get
    )
    return found


def is_listed(where: Filter) -> bool:
    """Whether `among_query` is answered by an index alone."""
    return bool(where.tags)


def _pieces(space: int, where: Filter) -> Iterator[tuple[str, tuple[object, ...]]]:
    yield "m.space = +?", (space,)  # the plus: see records.sql
    if where.kinds:
        yield f"m.kind IN ({_marks(where.kinds)})", where.kinds
    if where.namespaces:
        yield f"m.namespace IN ({_marks(where.namespaces)})", where.namespaces
    for tag in where.tags:
        yield "EXISTS (SELECT 1 FROM tags AS t WHERE t.space = m.space AND t.tag = ? AND t.row = m.row)", (tag,)
    if where.source_prefix:
        yield from _prefix("m.source", where.source_prefix)
    if where.thread is not None:
        yield "m.thread = ?", (where.thread,)
    if where.since:
        yield "coalesce(m.occurred_at, m.created_at) >= ?", (micros(where.since),)
    if where.until:
        yield "coalesce(m.occurred_at, m.created_at) < ?", (micros(where.until),)
    if where.min_quality is not None:
        yield "(m.quality IS NULL OR m.quality >= ?)", (where.min_quality,)
    if not where.include_superseded:
        yield "m.superseded_by IS NULL", ()
    if not where.include_expired:
        yield "(m.expires_at IS NULL OR m.expires_at > ?)", (micros(where.now or datetime.now(UTC)),)


def _marks(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))


def _prefix(column: str, prefix: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A prefix as a range, which can use an index and has no wildcards."""
    yield f"{column} >= ?", (prefix,)
    end = first_after(prefix)
    if end:
        yield f"{column} < ?", (end,)
