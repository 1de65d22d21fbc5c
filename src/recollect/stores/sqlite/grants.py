"""Which namespaces of a space others may see: functions of a connection, inside the transaction of their caller."""

from __future__ import annotations

import apsw

from recollect.stores.named_sql import load
from recollect.types import Access, Grant

Q = load(__name__, "grants.sql")


def grant(db: apsw.Connection, space: int, namespace: str, to: str, access: Access) -> None:
    db.execute(Q["grant"], (space, namespace, to, access))


def revoke(db: apsw.Connection, space: int, namespace: str, to: str) -> bool:
    db.execute(Q["revoke"], (space, namespace, to))
    return db.changes() > 0


def accept(db: apsw.Connection, space: int, namespace: str, to: str) -> bool:
    db.execute(Q["accept"], (space, namespace, to))
    return db.changes() > 0


def granted_by(db: apsw.Connection, space: int) -> list[Grant]:
    return [_grant(*found) for found in db.execute(Q["granted_by"], (space,))]


def granted_to(db: apsw.Connection, name: str, *, accepted: bool) -> list[Grant]:
    return [_grant(*found) for found in db.execute(Q["granted_to"], (name, accepted))]


def _grant(space: str, namespace: str, to: str, access: Access, accepted: int) -> Grant:
    return Grant(space, namespace, to, access, bool(accepted))
