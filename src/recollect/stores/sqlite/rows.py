"""Memories as rows and back, a `Filter` as SQL over the table `memories AS m` (values are always parameters), and the
numbers that stand for names inside the file: spaces, generations, rows, the clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import apsw

from recollect.errors import EmbeddingMismatch
from recollect.limits import utc
from recollect.stores.contents import Space, json_text
from recollect.stores.named_sql import load
from recollect.stores.sql_store import Codec, first_after
from recollect.types import Filter, Generation, Memory

Q, GENERATIONS = load(__name__, "records.sql"), load(__name__, "generations.sql")


NOWHERE: Final = 0
"""The number of a space without memories. Spaces are numbered from 1, so it never finds anything."""
SQL: TypeAlias = tuple[str, list[object]]
"""A piece of a statement, and its parameters."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Whole microseconds since 1970, UTC."""
    return (utc(moment) - _EPOCH) // _MICROSECOND


def moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _write_tags(tags: tuple[str, ...]) -> str:
    return json_text(tags) if tags else "[]"


def _read_tags(tags: str) -> tuple[str, ...]:
    return () if tags == "[]" else tuple(json.loads(tags))


_CODEC: Final = Codec(micros, moment, _write_tags, _read_tags)
encode, decode = _CODEC.encode, _CODEC.decode


def fetch(db: apsw.Connection, space: Space, ids: Iterable[str]) -> dict[str, Memory]:
    """The memories with these ids, in their order; those that are not in the space are left out."""
    found = db.execute(Q["memories"], (space.number, as_json(ids)))
    return {columns[0]: decode(space.name, columns) for columns in found}


def row_numbers(db: apsw.Connection, space: int, ids: Iterable[str]) -> dict[str, int]:
    """The rows of these ids; those that are not in the space are left out."""
    return dict(db.execute(Q["row_numbers"], (space, as_json(ids))))


def space_number(db: apsw.Connection, name: str) -> int | None:
    """The number of a space, or None while it has no memory."""
    number: int | None = db.execute(Q["space_number"], (name,)).get
    return number


def number_of(db: apsw.Connection, name: str) -> int:
    """The number of a space, `NOWHERE` while it has no memory."""
    return db.execute(Q["space_number"], (name,)).get or NOWHERE


def ensure_space(db: apsw.Connection, name: str) -> int:
    """The number of a space, which begins here if need be."""
    number = space_number(db, name)
    return db.execute(Q["add_space"], (name,)).get if number is None else number


def tick(db: apsw.Connection) -> int:
    """Count this writing transaction; what it changes bears the number. Once per transaction."""
    seq: int = db.execute(Q["tick"]).get
    return seq


def as_json(values: Iterable[str] | Iterable[int]) -> str:
    """A list as one parameter, for `json_each`."""
    return json.dumps(list(values))


def optional_moment(value: int | None) -> datetime | None:
    return None if value is None else moment(value)


# Generations


def current(db: apsw.Connection) -> tuple[int, Generation] | None:
    """The number and the model of the current generation."""
    found = db.execute(GENERATIONS["current"]).fetchone()
    return (found[0], Generation(found[1], found[2])) if found else None


def searchable(db: apsw.Connection, wanted: Generation | None) -> int | None:
    """The number of a generation that can be searched, by default the current one; None if there is none. Raises
    EmbeddingMismatch if the wanted one is gone.
    """
    known = current(db)
    if known is None or wanted in (None, known[1]):
        return known[0] if known else None
    assert wanted is not None  # noqa: S101 (for the type checker)
    number, state = generation_state(db, wanted)
    if state == "gone":
        raise EmbeddingMismatch.between(known[1], wanted.model, wanted.dimensions)
    return number


def generation_state(db: apsw.Connection, wanted: Generation) -> tuple[int, str]:
    """The number of a generation and its state."""
    found: tuple[int, str] | None = db.execute(GENERATIONS["find"], (wanted.model, wanted.dimensions)).fetchone()
    return found or (0, "gone")


# Filters


def where_clause(space: int, where: Filter) -> SQL:
    """The condition that a row of `memories AS m` must meet, for rows that are found in some other way."""
    conditions: list[str] = []
    parameters: list[object] = []
    for condition, values in _pieces(space, where):
        conditions.append(condition)
        parameters += values
    return " AND ".join(conditions), parameters


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
