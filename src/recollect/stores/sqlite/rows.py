"""Memories as rows and back, and the numbers that stand for names inside the file: spaces, rows, the clock."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import apsw

from recollect.limits import utc
from recollect.stores.contents import Space, json_text
from recollect.stores.named_sql import load
from recollect.stores.sql_store import Codec
from recollect.types import Memory

Q = load(__name__, "records.sql")


NOWHERE: Final = 0
"""The number of a space without memories. Spaces are numbered from 1, so it never finds anything."""
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


def optional_moment(value: int | None) -> datetime | None:
    return None if value is None else moment(value)
