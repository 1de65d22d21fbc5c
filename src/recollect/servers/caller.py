"""Who calls a server, and what it may see and do: what every door asks before it does anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recollect.engine.doctor import Check
from recollect.errors import NotAllowed
from recollect.types import Scope, Token


@dataclass(frozen=True, slots=True)
class Caller:
    """The bearer of a token; or, on a server without tokens, anyone who reaches it over loopback, and may do all."""

    token: Token | None = None

    @property
    def name(self) -> str:
        """For log lines: the token's id, never its secret."""
        return self.token.id if self.token else "loopback"

    @property
    def pinned(self) -> tuple[str, ...]:
        """The spaces of its token; none: all of them."""
        return self.token.spaces if self.token else ()

    def may(self, scope: Scope, space: str | None = None) -> bool:
        return self.token is None or self.token.may(scope, space)

    def must(self, scope: Scope, space: str | None = None) -> None:
        """Raises NotAllowed unless the caller may do this in the space, or without one, in all of them."""
        if not self.may(scope, space):
            where = "all spaces" if space is None else f"space {space!r}"
            raise NotAllowed(f"this token may not {VERBS[scope]} {where}")

    def administers(self, spaces: Iterable[str]) -> bool:
        """Whether the caller administers each of these spaces; none named: all there are."""
        return all(self.may("admin", space) for space in tuple(spaces) or (None,))

    def must_administer(self, spaces: Iterable[str]) -> None:
        """Raises NotAllowed unless the caller administers each of these spaces; none named: all there are."""
        for space in tuple(spaces) or (None,):
            self.must("admin", space)


VERBS: dict[Scope, str] = {"read": "read", "write": "write in", "admin": "administer"}


def caller_in(state: object) -> Caller:
    """The caller that the gate has found. Raises NotAllowed where there was no gate."""
    caller = getattr(state, "caller", None)
    if not isinstance(caller, Caller):
        raise NotAllowed("the caller is not known: put this behind the gate", known=False)
    return caller


def outlined(checks: Iterable[Check]) -> tuple[Check, ...]:
    """For callers that do not administer all spaces: whether each engine answers. What it reports may name paths, hosts
    and other spaces.
    """
    return tuple(Check(one.name, one.ok, "answers" if one.ok else "does not answer") for one in checks)
