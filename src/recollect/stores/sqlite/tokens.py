"""The tokens that servers are called with: functions of a connection, inside the transaction of their caller."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import apsw

from recollect.ports import SESSIONS
from recollect.stores.contents import json_text
from recollect.stores.named_sql import load
from recollect.stores.sqlite.rows import micros, moment, optional_micros, optional_moment
from recollect.types import Token

Q = load(__name__, "tokens.sql")


def add(db: apsw.Connection, token: Token, digest: bytes) -> None:
    times = (micros(token.created_at), optional_micros(token.expires_at), optional_micros(token.revoked_at))
    db.execute(Q["add_token"], (token.id, digest, token.name, json_text(token.spaces), token.scope, *times))


def find(db: apsw.Connection, id: str) -> tuple[Token, bytes] | None:
    found = db.execute(Q["token"], (id,)).fetchone()
    return (_token(*found[1:]), found[0]) if found else None


def everyone(db: apsw.Connection) -> list[Token]:
    return [_token(*columns) for columns in db.execute(Q["tokens"])]


def revoke(db: apsw.Connection, id: str, now: datetime) -> bool:
    db.execute(Q["revoke_token"], (id, micros(now)))
    revoked = db.changes() > 0
    db.execute(Q["end_sessions_of"], (id,))
    return revoked


def add_session(db: apsw.Connection, digest: bytes, token: str, now: datetime, expires: datetime) -> None:
    db.execute(Q["end_expired_sessions"], (micros(now),))
    db.execute(Q["end_oldest_sessions"], (token, SESSIONS - 1))
    db.execute(Q["add_session"], (digest, token, micros(now), micros(expires)))


def session(db: apsw.Connection, digest: bytes) -> tuple[Token, datetime] | None:
    found = db.execute(Q["session"], (digest,)).fetchone()
    return (_token(*found[1:]), moment(found[0])) if found else None


def end_session(db: apsw.Connection, digest: bytes) -> bool:
    db.execute(Q["end_session"], (digest,))
    return db.changes() > 0


def any_there(db: apsw.Connection) -> bool:
    return bool(db.execute(Q["any_token"]).get)


def _token(
    id: str, name: str, spaces: str, scope: Any, created: int, expires: int | None, revoked: int | None
) -> Token:
    times = (moment(created), optional_moment(expires), optional_moment(revoked))
    return Token(id, name, tuple(json.loads(spaces)), scope, *times)
