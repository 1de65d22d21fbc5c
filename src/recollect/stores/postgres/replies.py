"""What requests with an idempotency key were answered with: functions of a connection, inside the transaction of their
caller.
"""

from __future__ import annotations

from datetime import datetime

from recollect.stores.contents import utc
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.rows import rows_of
from recollect.types import Reply

Q = load(__name__, "replies.sql")


async def claim(
    db: Database, space: int, key: str, fingerprint: str, owner: int, *, now: datetime, expires: datetime
) -> Reply | None:
    times = {"now": utc(now), "expires": utc(expires)}
    given = {"space": space, "key": key, "fingerprint": fingerprint, "owner": owner, **times}
    if not await rows_of(db, Q["claim"], **given):
        ((known, status, body),) = await rows_of(db, Q["reply"], space=space, key=key)
        return Reply(known, status, body)
    await db.execute(Q["prune"], {"space": space, "now": utc(now)})
    return None


async def answer(db: Database, space: int, key: str, status: int, body: bytes, owner: int, expires: datetime) -> None:
    given = {"space": space, "key": key, "status": status, "body": body, "owner": owner, "expires": utc(expires)}
    await db.execute(Q["answer"], given)


async def disclaim(db: Database, space: int, key: str, owner: int) -> None:
    await db.execute(Q["disclaim"], {"space": space, "key": key, "owner": owner})
