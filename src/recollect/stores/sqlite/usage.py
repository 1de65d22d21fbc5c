"""How a space is used, and what its memories are worth by that: functions of a connection, inside the transaction of
their caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import apsw

from recollect.stores.named_sql import load
from recollect.stores.sqlite.rows import micros, moment, optional_micros, tick
from recollect.stores.usage_rows import buckets_of, leg_rows, recall_rows
from recollect.types import Bucket

Q = load(__name__, "usage.sql")


def count(db: apsw.Connection, space: int, buckets: Sequence[Bucket]) -> None:
    """No tick: how often something is asked decides nothing about what is found."""
    db.executemany(Q["count_recalls"], [(space, micros(hour), *rest) for hour, *rest in recall_rows(buckets)])
    db.executemany(Q["count_legs"], [(space, micros(hour), *rest) for hour, *rest in leg_rows(buckets)])


def since(db: apsw.Connection, space: int, start: datetime) -> list[Bucket]:
    rows = db.execute(Q["usage"], (space, micros(start)))
    return buckets_of((moment(hour), *rest) for hour, *rest in rows)


def most_useful(db: apsw.Connection, space: int, per_hit: float) -> float:
    most: float = db.execute(Q["most_useful"], (space, per_hit)).get
    return most


def is_scoring_due(db: apsw.Connection, space: int, before: datetime) -> bool:
    return bool(db.execute(Q["is_scoring_due"], (space, micros(before))).get)


def claim_scoring(db: apsw.Connection, space: int, before: datetime, now: datetime) -> str | None:
    after: str | None = db.execute(Q["claim_scoring"], (space, micros(before), micros(now))).get
    return after


def note_scoring(db: apsw.Connection, space: int, scored_at: datetime | None, after: str | None) -> None:
    db.execute(Q["note_scoring"], (space, optional_micros(scored_at), after))


def set_qualities(db: apsw.Connection, space: int, qualities: Mapping[str, float]) -> int:
    changed = len(list(db.executemany(Q["set_quality"], [(space, *one) for one in qualities.items()])))
    if changed:
        tick(db)  # filters ask for quality
    return changed
