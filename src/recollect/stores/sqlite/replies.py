"""What requests with an idempotency key were answered with: functions of a connection, inside the transaction of their
caller.
"""

from __future__ import annotations

from datetime import datetime

import apsw

from recollect.stores.named_sql import load
from recollect.stores.sqlite.rows import micros
from recollect.types import Reply

Q = load(__name__, "replies.sql")


def claim(
    db: apsw.Connection, space: int, key: str, fingerprint: str, *, now: datetime, expires: datetime
) -> Reply | None:
    if db.execute(Q["claim"], (space, key, fingerprint, micros(now), micros(expires))).fetchone() is None:
        return Reply(*db.execute(Q["reply"], (space, key)).get)
    db.execute(Q["prune"], (space, micros(now)))
    return None


def answer(db: apsw.Connection, space: int, key: str, status: int, body: bytes, expires: datetime) -> None:
    db.execute(Q["answer"], (space, key, status, body, micros(expires)))


def disclaim(db: apsw.Connection, space: int, key: str) -> None:
    db.execute(Q["disclaim"], (space, key))
