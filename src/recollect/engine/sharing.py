"""Who may see what of whose: a namespace is offered to another space by its owner, is seen from when that space accepts
it, and either side ends it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias, get_args

from recollect.engine.guards import Guard
from recollect.errors import InvalidRequest, NotAllowed
from recollect.limits import check_choice, check_name
from recollect.ports import Grants
from recollect.types import Access, Grant

OWNERS = 16
"""From how many spaces one space may accept something: each of them is a search more for its recalls."""

OFFERS = 1000
"""How many offers a space may have out that were not accepted yet. They count for the space that makes them, so that
nobody uses up another's.
"""

ALONE_SECONDS = 1.0
"""How long it is remembered that nobody shares anything with a space, so that the many of which this is true do not ask
with each recall. What another process accepts is seen after that; what is taken back is out of reach at once.
"""
ALONE_SPACES = 10_000
"""Of how many spaces that is remembered."""

Visible: TypeAlias = Mapping[str, tuple[str, ...]]
"""Namespaces of others by the space they belong to; never an empty tuple, which would mean all there are."""

Looking: TypeAlias = Callable[[], Coroutine[Any, Any, Visible]] | None
"""How a recall learns what it may see of others'."""


class Sharing:
    """The grants of a store. A grant is read anew for every call that depends on it, so that what was taken back is out
    of reach from the next call on.
    """

    def __init__(self, grants: Grants, guard: Guard) -> None:
        self._grants = grants
        self._guard = guard
        self._alone: dict[str, float] = {}

    async def grant(self, space: str, namespace: str, to: str, access: Access) -> Grant:
        """Offer another space to see a namespace, or also to change it; or change the access of what was granted."""
        check_choice("access", access, get_args(Access))
        check_name("namespace", namespace)
        check_name("space", to)
        if to == space:
            raise InvalidRequest(f"space {space!r} sees its own namespaces already: grant them to another space")
        known = {(grant.namespace, grant.to): grant.accepted for grant in await self._grants.granted_by(space)}
        waiting = sum(not accepted for accepted in known.values())
        if (namespace, to) not in known and waiting >= OFFERS:
            raise InvalidRequest(
                f"{waiting:,} offers of space {space!r} were not accepted yet: revoke some of them first"
            )
        await self._grants.grant(space, namespace, to, access)
        return Grant(space, namespace, to, access, known.get((namespace, to), False))

    async def revoke(self, space: str, namespace: str, to: str) -> bool:
        """Take a grant or an offer back; whether there was one."""
        return await self._grants.revoke(space, check_name("namespace", namespace), check_name("space", to))

    async def accept(self, space: str, owner: str, namespace: str) -> bool:
        """See what another space offers to this one; whether there is such an offer."""
        check_name("space", owner)
        check_name("namespace", namespace)
        others = {known.space for known in await self._grants.granted_to(space)} - {owner}
        if len(others) >= OWNERS:
            raise InvalidRequest(
                f"{len(others)} spaces share with space {space!r} already, and no more than that may: refuse what one "
                "of them shares first"
            )
        accepted = await self._grants.accept(owner, namespace, space)
        self._alone.pop(space, None)
        return accepted

    async def refuse(self, space: str, owner: str, namespace: str) -> bool:
        """End a grant or an offer to this space; whether there was one. Nobody else's is in its reach."""
        return await self._grants.revoke(check_name("space", owner), check_name("namespace", namespace), space)

    async def grants(self, space: str) -> list[Grant]:
        """What a space lets others see or offers them; what others let it see; what they offer it."""
        return [
            *await self._grants.granted_by(space),
            *await self._grants.granted_to(space),
            *await self._grants.offered_to(space),
        ]

    async def may(self, space: str, owner: str, namespace: str, wanted: Access) -> None:
        """Raises NotAllowed where a namespace of another space is not granted, whether there is one or not."""
        granted = [g.access for g in await self._granted(space) if (g.space, g.namespace) == (owner, namespace)]
        if not granted:
            raise _unseen(space, owner, namespace)
        if wanted == "write" and granted != ["write"]:
            raise NotAllowed(
                f"space {space!r} may only read namespace {namespace!r} of space {owner!r}: that space can grant it "
                "with access 'write'"
            )

    async def looking(self, space: str, named: Sequence[tuple[str, str]] | None) -> Looking:
        """How a recall learns what it may see of others': all that is granted, or of that what is named. None: it is to
        look at nothing of others'. Raises NotAllowed where something is named that is not granted.
        """
        if named is None:
            alone = self._alone.get(space, 0.0) > time.monotonic()
            return None if alone else lambda: self._visible(space)
        if not named:
            return None
        granted = {(g.space, g.namespace) for g in await self._granted(space)}
        for owner, namespace in named:
            if (owner, namespace) not in granted:
                raise _unseen(space, owner, namespace)

        async def chosen() -> Visible:
            return by_owner(named)

        return chosen

    async def _visible(self, space: str) -> Visible:
        granted = await self._granted(space)
        if not granted:
            if len(self._alone) >= ALONE_SPACES:
                self._alone.clear()
            self._alone[space] = time.monotonic() + ALONE_SECONDS
        return by_owner([(grant.space, grant.namespace) for grant in granted])

    async def _granted(self, space: str) -> Sequence[Grant]:
        return await self._guard.call(lambda: self._grants.granted_to(space))


def by_owner(named: Sequence[tuple[str, str]]) -> Visible:
    """Namespaces of others, by their spaces."""
    owners: dict[str, tuple[str, ...]] = {}
    for owner, namespace in named:
        owners[owner] = (*owners.get(owner, ()), namespace)
    return owners


def _unseen(space: str, owner: str, namespace: str) -> NotAllowed:
    return NotAllowed(
        f"space {space!r} may not see namespace {namespace!r} of space {owner!r}: that space can grant it, and this "
        "one then accepts it"
    )
