"""Who may call a server: tokens, made, checked and revoked. Of a secret only the SHA-256 is kept; for it is long and
random, a slow hash would add nothing.
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
"""How many spaces a token can be pinned to."""
ID_BYTES: Final = 8
SECRET_BYTES: Final = 24
ID: Final = re.compile(rf"[0-9a-f]{{{2 * ID_BYTES}}}")
SECRET: Final = re.compile(rf"rc_({ID.pattern})_[0-9a-f]{{{2 * SECRET_BYTES}}}")
SESSION_BYTES: Final = 32
SESSION_LENGTH: Final = timedelta(days=7)
"""How long one stays signed in to the dashboard, and no longer than the token lasts."""
NO_DIGEST: Final = bytes(sha256().digest_size)
"""What is compared where there is no token, so that this takes as long as where there is one."""


class AsyncTokens:
    """The tokens of a store: `AsyncRecollect.tokens`. Each is read anew for every check: what was revoked, by whichever
    process, is refused from the next call on.
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
        """Make a token for some spaces, or for all of them; the secret is in this answer and nowhere else. It `expires`
        at a time, or after a span such as 90d, or never.
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
        """The token that a secret belongs to. Raises NotAllowed if there is none, or if it expired or was revoked; only
        the right secret learns which.
        """
        form = SECRET.fullmatch(_text("a token", secret))
        found = await self._ledger.token(form[1]) if form else None
        token, digest = found or (None, NO_DIGEST)
        right = form is not None and hmac.compare_digest(_digest(secret), digest)
        if token is None or not right:
            raise NotAllowed("this is not a token of this store: check it, or ask for another", known=False)
        return _in_force(token)

    async def sign_in(self, token: Token) -> str:
        """Begin a session by a token that was checked; what a browser shows from now on in place of its secret."""
        session, now = secrets.token_urlsafe(SESSION_BYTES), datetime.now(UTC)
        expires = min(token.expires_at or now + SESSION_LENGTH, now + SESSION_LENGTH)
        await self._ledger.add_session(_digest(session), token.id, now=now, expires=expires)
        return session

    async def signed_in(self, session: str) -> Token:
        """The token that a session was begun with. Raises NotAllowed where the session or its token is over."""
        token, expires = await self._ledger.session(_digest(session)) or (None, None)
        if token is None or expires is None or expires <= datetime.now(UTC):
            raise NotAllowed("you are signed out: sign in again", known=False)
        return _in_force(token)

    async def sign_out(self, session: str) -> None:
        """End a session: what the browser holds opens nothing any more."""
        await self._ledger.end_session(_digest(session))

    async def list(self, space: str | None = None) -> builtins.list[Token]:
        """All tokens, or those pinned to a space, oldest first; expired and revoked ones too."""
        return [token for token in await self._ledger.tokens() if space is None or space in token.spaces]

    async def revoke(self, id: str) -> bool:
        """End a token, at once and for good; whether there was one to end. An error never repeats what was given: it
        may be a secret.
        """
        known = bool(ID.fullmatch(_text("the id of a token", id)))
        return known and await self._ledger.revoke_token(id, datetime.now(UTC))

    async def required(self) -> bool:
        """Whether a token was ever made: servers then ask for one, even if all were revoked."""
        # what is true once stays true
        self._required = self._required or await self._ledger.any_token()
        return self._required


def _in_force(token: Token) -> Token:
    if token.revoked_at is not None:
        raise NotAllowed("this token was revoked: ask for another", known=False)
    if token.expires_at is not None and token.expires_at <= datetime.now(UTC):
        raise NotAllowed(f"this token expired at {token.expires_at.isoformat()}: ask for another", known=False)
    return token


def check_expires(value: object, now: datetime) -> datetime | None:
    """When a token ends: a time to come, or a span from now."""
    moment = check_time("expires", value, now, ahead=True)
    if moment is not None and moment <= now:
        raise InvalidRequest(
            f"expires is {moment.isoformat()}, which is past: name a time to come, or a span such as 90d"
        )
    return moment


def _text(what: str, given: object) -> str:
    """Its value is not shown, for it may be a secret."""
    if not isinstance(given, str):
        raise InvalidRequest(f"{what} must be a text, not {type(given).__name__}")
    return given


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
