"""Which namespaces of a space others may see: functions of a connection, inside the transaction of their caller."""

from __future__ import annotations

from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.rows import rows_of
from recollect.types import Access, Grant

Q = load(__name__, "grants.sql")


async def grant(db: Database, space: int, namespace: str, to: str, access: Access) -> None:
    await db.execute(Q["grant"], {"space": space, "namespace": namespace, "to": to, "access": access})


async def revoke(db: Database, space: int, namespace: str, to: str) -> bool:
    return (await db.execute(Q["revoke"], {"space": space, "namespace": namespace, "to": to})).rowcount > 0


async def accept(db: Database, space: int, namespace: str, to: str) -> bool:
    return (await db.execute(Q["accept"], {"space": space, "namespace": namespace, "to": to})).rowcount > 0


async def granted_by(db: Database, space: int) -> list[Grant]:
    return [Grant(*found) for found in await rows_of(db, Q["granted_by"], space=space)]


async def granted_to(db: Database, name: str, *, accepted: bool) -> list[Grant]:
    return [Grant(*found) for found in await rows_of(db, Q["granted_to"], to=name, accepted=accepted)]
