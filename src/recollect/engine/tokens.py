"""Tokens: who may call a server. Only the SHA-256 of a secret is stored. Secrets are long and random, so a slow hash
would add nothing.
"""

from __future__ import annotations

import builtins
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from recollect.errors import InvalidRequest, NotAllowed
from recollect.limits import check_choice, check_name, check_names, check_time
from recollect.ports import Ledger
from recollect.types import SCOPES, Issued, Scope, Token

SPACES: Final = 64
"""The most spaces a token can be limited to."""
ID_BYTES: Final = 8
SECRET_BYTES: Final = 24
ID: Final = re.compile(rf"[0-9a-f]{{{2 * ID_BYTES}}}")
SECRET: Final = re.compile(rf"rc_({ID.pattern})_[0-9a-f]{{{2 * SECRET_BYTES}}}")
SESSION_BYTES: Final = 32
SESSION_LENGTH: Final = timedelta(days=7)
"""How long a dashboard session lasts. It also ends with its token."""
NO_DIGEST: Final = bytes(sha256().digest_size)
"""Compared if there is no such token, so that the check takes as long as for a real one."""


class AsyncTokens:
    """The tokens of a store: `AsyncRecollect.tokens`. Every check reads the token from the store, so a token that any
    process revokes is refused from the next call.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._required = False

    async def create(
        self,
        *,
        spaces: Sequence[str] = (),
        scope: Scope = "read",
        name: str = "",
        expires: datetime | str | None = None,
    ) -> Issued:
        """Make a token for some spaces, or for all. Only this answer contains its secret. It `expires` at a time, after
        a span such as 90d, or never.
        """
        now = datetime.now(UTC)
        check_choice("scope", scope, SCOPES)
        token = Token(
            secrets.token_hex(ID_BYTES),
            check_name("name", name) if name != "" else "",
            check_names("space", spaces, most=SPACES),
            scope,
            now,
            check_expires(expires, now),
        )
        secret = f"rc_{token.id}_{secrets.token_hex(SECRET_BYTES)}"
        await self._ledger.add_token(token, _digest(secret))
        return Issued(token, secret)

    async def check(self, secret: str) -> Token:
        """The token of a secret. Raises NotAllowed if there is none, or if it has expired or was revoked. The error
        says which only if the secret is right.
        """
        form = SECRET.fullmatch(_text("a token", secret))
        found = await self._ledger.token(form[1]) if form else None
        token, digest = found or (None, NO_DIGEST)
        right = form is not None and hmac.compare_digest(_digest(secret), digest)
        if token is None or not right:
            raise NotAllowed("this is not a token of this store: check it, or ask for another", known=False)
        return _check_valid(token)

    async def sign_in(self, token: Token) -> str:
        """Start a session with a checked token. Returns what a browser sends instead of the secret."""
        session, now = secrets.token_urlsafe(SESSION_BYTES), datetime.now(UTC)
        expires = min(token.expires_at or now + SESSION_LENGTH, now + SESSION_LENGTH)
        await self._ledger.add_session(_digest(session), token.id, now=now, expires=expires)
        return session

    async def signed_in(self, session: str) -> Token:
        """The token of a session. Raises NotAllowed if the session or its token has ended."""
        token, expires = await self._ledger.session(_digest(session)) or (None, None)
        if token is None or expires is None or expires <= datetime.now(UTC):
            raise NotAllowed("you are signed out: sign in again", known=False)
        return _check_valid(token)

    async def sign_out(self, session: str) -> None:
        await self._ledger.end_session(_digest(session))

    async def list(self, space: str | None = None) -> builtins.list[Token]:
        """All tokens, or those limited to a space, oldest first, including expired and revoked ones."""
        return [token for token in await self._ledger.tokens() if space is None or space in token.spaces]

    async def revoke(self, id: str) -> bool:
        """Revoke a token for good. Returns whether there was one. An error never quotes the id, which may be a secret
        given by mistake.
        """
        known = bool(ID.fullmatch(_text("the id of a token", id)))
        return known and await self._ledger.revoke_token(id, datetime.now(UTC))

    async def required(self) -> bool:
        """Whether a token was ever made. Servers then require one, even after all were revoked."""
        self._required = self._required or await self._ledger.any_token()
        return self._required


def _check_valid(token: Token) -> Token:
    if token.revoked_at is not None:
        raise NotAllowed("this token was revoked: ask for another", known=False)
    if token.expires_at is not None and token.expires_at <= datetime.now(UTC):
        raise NotAllowed(f"this token expired at {token.expires_at.isoformat()}: ask for another", known=False)
    return token


def check_expires(value: object, now: datetime) -> datetime | None:
    """When a token expires. Raises InvalidRequest if that is past."""
    moment = check_time("expires", value, now, ahead=True)
    if moment is not None and moment <= now:
        raise InvalidRequest(
            f"expires is {moment.isoformat()}, which is past: use a future time, or a span such as 90d"
        )
    return moment


def _text(what: str, given: object) -> str:
    """The error does not show the value, which may be a secret."""
    if not isinstance(given, str):
        raise InvalidRequest(f"{what} must be a text, not {type(given).__name__}")
    return given


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
