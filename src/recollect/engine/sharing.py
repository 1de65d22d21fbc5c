"""Grants: a space offers a namespace to another one, which sees it once it accepts; either side can end it."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from recollect.calls.gate import Gate
from recollect.errors import InvalidRequest, NotAllowed
from recollect.ports import Ledger
from recollect.types import Access, Grant

OWNERS = 16
"""How many spaces one space may accept something from: its recalls search each of them."""

OFFERS = 1000
"""How many offers of a space may wait to be accepted. They count for the space that makes them, so nobody can use up
another's.
"""

ALONE_SECONDS = 1.0
"""How long it is remembered that nobody shares anything with a space, so that its recalls need not ask each time. What
another process accepts is seen after that; what is taken back is out of reach at once.
"""
ALONE_SPACES = 10_000
"""How many spaces that is remembered for."""

Visible: TypeAlias = Mapping[str, tuple[str, ...]]
"""Namespaces of others by the space they belong to; never an empty tuple, which would mean all there are."""

Looking: TypeAlias = Callable[[], Coroutine[Any, Any, Visible]] | None
"""How a recall learns what it may see of others'."""


class Sharing:
    """What one space may see of others. A grant is read anew for every call that depends on it, so that what was taken
    back is out of reach from the next call on.
    """

    def __init__(self, ledger: Ledger, gate: Gate) -> None:
        self._ledger = ledger
        self._gate = gate
        self._alone: dict[str, float] = {}

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

    def look_again(self, space: str) -> None:
        """Something was accepted: the next recall of the space looks for it."""
        self._alone.pop(space, None)

    async def _visible(self, space: str) -> Visible:
        granted = await self._granted(space)
        if not granted:
            if len(self._alone) >= ALONE_SPACES:
                self._alone.clear()
            self._alone[space] = time.monotonic() + ALONE_SECONDS
        return by_owner([(grant.space, grant.namespace) for grant in granted])

    async def _granted(self, space: str) -> Sequence[Grant]:
        return await self._gate.call(lambda: self._ledger.granted_to(space), space)


def check_offer(grant: Grant, known: Sequence[Grant]) -> Grant:
    """A grant as it will stand beside those that its space has made: accepted, if an earlier one was. Raises
    InvalidRequest where it makes no sense, or too many others wait.
    """
    if grant.to == grant.space:
        raise InvalidRequest(f"space {grant.space!r} sees its own namespaces already: grant them to another space")
    accepted = {(one.namespace, one.to): one.accepted for one in known}
    waiting = sum(not one for one in accepted.values())
    if (grant.namespace, grant.to) not in accepted and waiting >= OFFERS:
        raise InvalidRequest(
            f"{waiting:,} offers of space {grant.space!r} were not accepted yet: revoke some of them first"
        )
    return replace(grant, accepted=accepted.get((grant.namespace, grant.to), False))


def check_acceptable(offered: Grant, granted: Sequence[Grant]) -> None:
    """Raises InvalidRequest if too many other spaces share with this one already."""
    others = {one.space for one in granted} - {offered.space}
    if len(others) >= OWNERS:
        raise InvalidRequest(
            f"{len(others)} spaces share with space {offered.to!r} already, and no more than that may: refuse what one "
            "of them shares first"
        )


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
