"""What external indexes have still to be told. The entries are written by triggers: see the schema."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import apsw

from recollect.ports import Entry, Lag
from recollect.stores.named_sql import load
from recollect.stores.sqlite.rows import as_json, micros, moment
from recollect.types import Leg

Q = load(__name__, "outbox.sql")


def feed(db: apsw.Connection, index: str, leg: Leg) -> None:
    """Tell an index of every change; the first time of everything there is."""
    if db.execute(Q["feed"], (index, leg)).fetchone():
        enter_all(db, index)


def enter_all(db: apsw.Connection, index: str) -> None:
    db.execute(Q["enter_all"], (index,))


def enter(db: apsw.Connection, space: int, index: str, ids: Sequence[str]) -> None:
    db.execute(Q["enter"], (index, space, as_json(ids)))


def waiting(db: apsw.Connection, index: str, limit: int) -> list[Entry]:
    return [Entry(*found) for found in db.execute(Q["waiting"], (index, limit))]


def delivered(db: apsw.Connection, index: str, entries: Sequence[Entry]) -> None:
    db.execute(Q["delivered"], (index, as_json(entry.number for entry in entries)))


def lag(db: apsw.Connection, index: str) -> Lag:
    waiting, since = db.execute(Q["lag"], (index,)).get
    return Lag(waiting, None if since is None else moment(since))


def lease(db: apsw.Connection, index: str, holder: str, seconds: float) -> bool:
    now = datetime.now(UTC)
    until = now + timedelta(seconds=seconds)
    return db.execute(Q["lease"], (index, holder, micros(until), micros(now))).fetchone() is not None


def release(db: apsw.Connection, index: str, holder: str) -> None:
    db.execute(Q["release"], (index, holder))
