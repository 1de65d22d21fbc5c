"""Memories as rows and back, and the numbers that stand for names inside the file: spaces, rows, the clock."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import apsw

from recollect.stores.contents import Space, json_text
from recollect.stores.named_sql import load
from recollect.types import EmbeddingState, Memory

Q = load(__name__, "records.sql")

Columns: TypeAlias = tuple[Any, ...]
"""What a memory is in the file, in the order of the `memories` query: `Memory`'s own, without its space."""

NOWHERE: Final = 0
"""The number of every space that has no memory yet: spaces are numbered from 1, so nothing is ever found in it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Whole microseconds since 1970, UTC; a time without a zone is taken as UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def encode(memory: Memory, *, place: int | None, embedding: EmbeddingState) -> Columns:
    """A memory's columns. Its place and the state of its embedding are the store's to decide."""
    return (
        memory.id,
        memory.text,
        memory.namespace,
        memory.kind,
        memory.title,
        json_text(memory.tags) if memory.tags else "[]",
        memory.source,
        memory.thread,
        place,
        json_text(memory.metadata) if memory.metadata else "{}",
        micros(memory.created_at),
        micros(memory.updated_at),
        optional_micros(memory.occurred_at),
        optional_micros(memory.expires_at),
        memory.superseded_by,
        memory.quality,
        memory.hits,
        optional_micros(memory.last_hit_at),
        memory.used,
        optional_micros(memory.last_used_at),
        embedding,
    )


def decode(space: str, columns: Columns) -> Memory:
    (
        id, text, namespace, kind, title, tags, source, thread, place, metadata,
        created_at, updated_at, occurred_at, expires_at, superseded_by, quality, hits, last_hit_at,
        used, last_used_at, embedding,
    ) = columns  # fmt: skip
    return Memory(
        id,
        space,
        text,
        namespace,
        kind,
        title,
        () if tags == "[]" else tuple(json.loads(tags)),
        source,
        thread,
        place,
        {} if metadata == "{}" else json.loads(metadata),
        moment(created_at),
        moment(updated_at),
        optional_moment(occurred_at),
        optional_moment(expires_at),
        superseded_by,
        quality,
        hits,
        optional_moment(last_hit_at),
        used,
        optional_moment(last_used_at),
        embedding,
    )


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
    return space_number(db, name) or NOWHERE


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


def optional_micros(moment: datetime | None) -> int | None:
    return None if moment is None else micros(moment)


def optional_moment(value: int | None) -> datetime | None:
    return None if value is None else moment(value)
