"""Who calls a server: what every door asks before it does anything."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.errors import NotAllowed
from recollect.types import Scope, Token


@dataclass(frozen=True, slots=True)
class Caller:
    """The bearer of a token; or, on a server without tokens, whoever reaches it over loopback, and may do all."""

    token: Token | None = None

    @property
    def name(self) -> str:
        """For log lines: the token's id, never its secret."""
        return self.token.id if self.token else "loopback"

    def may(self, scope: Scope, space: str | None = None) -> bool:
        return self.token is None or self.token.may(scope, space)

    def must(self, scope: Scope, space: str | None = None) -> None:
        """Raises NotAllowed unless the caller may do this in the space, or without one, in all of them."""
        if not self.may(scope, space):
            where = "all spaces" if space is None else f"space {space!r}"
            raise NotAllowed(f"this token does not allow to {VERBS[scope]} {where}")


VERBS: dict[Scope, str] = {"read": "read", "write": "write in", "admin": "administer"}
