"""What requests with an idempotency key were answered with: functions of a connection, inside the transaction of their
caller.
"""

from __future__ import annotations

from datetime import datetime

import apsw

from recollect.stores.named_sql import load
from recollect.stores.sqlite.owners import Owner
from recollect.stores.sqlite.rows import micros
from recollect.types import Reply

Q = load(__name__, "replies.sql")


def claim(
    db: apsw.Connection, space: int, key: str, fingerprint: str, owner: Owner, *, now: datetime, expires: datetime
) -> Reply | None:
    _free(db, space, key, owner)
    claimed = (space, key, fingerprint, micros(now), micros(expires), owner.name())
    if db.execute(Q["claim"], claimed).fetchone() is None:
        return Reply(*db.execute(Q["reply"], (space, key)).get)
    db.execute(Q["prune"], (space, micros(now)))
    return None


def answer(
    db: apsw.Connection, space: int, key: str, status: int, body: bytes, owner: Owner, expires: datetime
) -> None:
    db.execute(Q["answer"], (space, key, status, body, micros(expires), owner.name()))


def disclaim(db: apsw.Connection, space: int, key: str, owner: str) -> None:
    db.execute(Q["disclaim"], (space, key, owner))


def _free(db: apsw.Connection, space: int, key: str, owner: Owner) -> None:
    """Let go of a key whose owner is dead."""
    name: str | None = db.execute(Q["under_way"], (space, key)).get
    if name is not None and owner.is_dead(name):
        disclaim(db, space, key, name)
