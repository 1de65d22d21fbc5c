"""The tokens that servers are called with: functions of a connection, inside the transaction of their caller."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recollect.ports import SESSIONS
from recollect.stores.contents import utc
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.rows import firsts, optional_utc, rows_of
from recollect.types import Token

Q = load(__name__, "tokens.sql")


async def add(db: Database, token: Token, digest: bytes) -> None:
    columns = {
        "id": token.id,
        "digest": digest,
        "name": token.name,
        "spaces": list(token.spaces),
        "scope": token.scope,
        "created_at": utc(token.created_at),
        "expires_at": optional_utc(token.expires_at),
        "revoked_at": optional_utc(token.revoked_at),
    }
    await db.execute(Q["add_token"], columns)


async def find(db: Database, id: str) -> tuple[Token, bytes] | None:
    for digest, *columns in await rows_of(db, Q["token"], id=id):
        return _token(*columns), digest
    return None


async def everyone(db: Database) -> list[Token]:
    return [_token(*columns) for columns in await rows_of(db, Q["tokens"])]


async def revoke(db: Database, id: str, now: datetime) -> bool:
    revoked = (await db.execute(Q["revoke_token"], {"id": id, "now": utc(now)})).rowcount > 0
    await db.execute(Q["end_sessions_of"], {"id": id})
    return revoked


async def add_session(db: Database, digest: bytes, token: str, now: datetime, expires: datetime) -> None:
    await db.execute(Q["end_expired_sessions"], {"now": utc(now)})
    await db.execute(Q["end_oldest_sessions"], {"token": token, "kept": SESSIONS - 1})
    columns = {"digest": digest, "token": token, "now": utc(now), "expires": utc(expires)}
    await db.execute(Q["add_session"], columns)


async def session(db: Database, digest: bytes) -> tuple[Token, datetime] | None:
    for expires, *columns in await rows_of(db, Q["session"], digest=digest):
        return _token(*columns), utc(expires)
    return None


async def end_session(db: Database, digest: bytes) -> bool:
    return (await db.execute(Q["end_session"], {"digest": digest})).rowcount > 0


async def any_there(db: Database) -> bool:
    return bool((await firsts(db, Q["any_token"]))[0])


def _token(
    id: str,
    name: str,
    spaces: list[str],
    scope: Any,
    created: datetime,
    expires: datetime | None,
    revoked: datetime | None,
) -> Token:
    return Token(id, name, tuple(spaces), scope, utc(created), optional_utc(expires), optional_utc(revoked))
