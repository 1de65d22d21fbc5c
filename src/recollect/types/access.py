"""Who may do what: tokens, grants between spaces, and answers kept under an idempotency key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

Access: TypeAlias = Literal["read", "write"]
Scope: TypeAlias = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
"""What a token allows, each with all that is before it."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A namespace of a space that another one may see, or also change; an offer until that one has accepted it."""

    space: str
    namespace: str
    to: str
    access: Access = "read"
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """Who may do what through a server: the spaces it is pinned to (none named: all of them) and its scope. The secret
    itself is shown once, when the token is made, and kept nowhere.
    """

    id: str
    name: str
    spaces: tuple[str, ...]
    scope: Scope
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def may(self, scope: Scope, space: str | None = None) -> bool:
        """Whether it allows this in a space, or without one, in all of them."""
        here = not self.spaces or (space is not None and space in self.spaces)
        return here and SCOPES.index(scope) <= SCOPES.index(self.scope)


class Issued(NamedTuple):
    """A token that was just made, and the only time that its secret is shown; its repr does not show it."""

    token: Token
    secret: str

    def __repr__(self) -> str:
        return f"Issued(token={self.token!r}, secret='…')"


@dataclass(frozen=True, slots=True)
class Reply:
    """What an idempotency key stands for: which request, and what it was answered with; no status while it is still
    under way.
    """

    fingerprint: str
    status: int | None = None
    body: bytes = b""
