"""How a space is used, and what its memories are worth by that: functions of a connection, inside the transaction of
their caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from recollect.stores.contents import utc
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.rows import firsts, optional_utc, rows_of, statements
from recollect.stores.usage_rows import buckets_of, leg_rows, recall_rows
from recollect.types import Bucket

Q = statements("usage.sql")
RECALLS: Final = ("hours", "recalls", "degraded", "failed")
LEGS: Final = ("leg_hours", "legs", "hits", "searches", "ms", "late", "leg_failed", "skipped")


async def count(db: Database, space: int, buckets: Sequence[Bucket]) -> None:
    columns = _columns(RECALLS, recall_rows(buckets)) | _columns(LEGS, leg_rows(buckets))
    await db.execute(Q["count"], {"space": space, **columns})


async def since(db: Database, space: int, start: datetime) -> list[Bucket]:
    rows = await rows_of(db, Q["usage"], space=space, since=utc(start))
    return buckets_of((utc(hour), *rest) for hour, *rest in rows)


async def most_useful(db: Database, space: int, per_hit: float) -> float:
    most: float = (await firsts(db, Q["most_useful"], space=space, per_hit=per_hit))[0]
    return most


async def claim_scoring(db: Database, space: int, before: datetime, now: datetime) -> str | None:
    found = await firsts(db, Q["claim_scoring"], space=space, before=utc(before), now=utc(now))
    return found[0] if found else None


async def note_scoring(db: Database, space: int, scored_at: datetime | None, after: str | None) -> None:
    values = {"space": space, "scored_at": optional_utc(scored_at), "after": after}
    await db.execute(Q["note_scoring"], values)


async def set_qualities(db: Database, space: int, qualities: Mapping[str, float]) -> int:
    given = {"ids": list(qualities), "qualities": list(qualities.values())}
    return (await db.execute(Q["set_qualities"], {"space": space, **given})).rowcount


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Rows as one list for each column."""
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
