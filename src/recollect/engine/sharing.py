"""Grants: a space offers a namespace to another space, which sees it after accepting. Either side can end it."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from recollect.calls.gate import Gate
from recollect.errors import InvalidRequest, NotAllowed
from recollect.ports import Ledger
from recollect.types import Access, Grant

MAX_OWNERS = 16
"""How many spaces may share with one space. Each of its recalls searches all of them."""

MAX_OFFERS = 1000
"""How many unaccepted offers a space may have. They count against the space that makes them, not the one it names."""

NO_GRANTS_SECONDS = 1.0
"""How long recalls skip reading grants after a space had none. A grant that another process accepts shows up after this
time; a revoked one disappears at once.
"""
NO_GRANTS_SPACES = 10_000
"""How many spaces without grants are cached."""

Visible: TypeAlias = Mapping[str, tuple[str, ...]]
"""Shared namespaces by owner. Never an empty tuple, which would mean every namespace."""

FindVisible: TypeAlias = Callable[[], Coroutine[Any, Any, Visible]] | None
"""Reads what a recall may see of other spaces. None: nothing."""


class Sharing:
    """What one space may see of others. Grants are read for every call, so a revoked one is gone from the next call."""

    def __init__(self, ledger: Ledger, gate: Gate) -> None:
        self._ledger = ledger
        self._gate = gate
        self.no_grants_until: dict[str, float] = {}
        """Spaces that nothing is granted to, and until when (monotonic clock) their recalls need not look again."""

    async def check_granted(self, space: str, owner: str, namespace: str, wanted: Access) -> None:
        """Raises NotAllowed if the namespace of another space is not granted, whether it exists or not."""
        granted = [g.access for g in await self._granted(space) if (g.space, g.namespace) == (owner, namespace)]
        if not granted:
            raise _not_granted(space, owner, namespace)
        if wanted == "write" and granted != ["write"]:
            raise NotAllowed(
                f"space {space!r} may only read namespace {namespace!r} of space {owner!r}: "
                "ask its owner to grant access 'write'"
            )

    async def visible_to(self, space: str, named: Sequence[tuple[str, str]] | None) -> FindVisible:
        """How to read what a recall may see of other spaces: everything granted, or the granted namespaces it names.
        Raises NotAllowed for a named namespace that is not granted.
        """
        if named is None:
            return lambda: self._visible(space)
        if not named:
            return None
        granted = {(g.space, g.namespace) for g in await self._granted(space)}
        for owner, namespace in named:
            if (owner, namespace) not in granted:
                raise _not_granted(space, owner, namespace)

        async def chosen() -> Visible:
            return by_owner(named)

        return chosen

    def forget_no_grants(self, space: str) -> None:
        """Read the grants of a space again at its next recall, because it accepted one."""
        self.no_grants_until.pop(space, None)

    async def _visible(self, space: str) -> Visible:
        granted = await self._granted(space)
        if not granted:
            if len(self.no_grants_until) >= NO_GRANTS_SPACES:
                self.no_grants_until.clear()
            self.no_grants_until[space] = time.monotonic() + NO_GRANTS_SECONDS
        return by_owner([(grant.space, grant.namespace) for grant in granted])

    async def _granted(self, space: str) -> Sequence[Grant]:
        return await self._gate.call(lambda: self._ledger.granted_to(space), space)


def check_offer(grant: Grant, known: Sequence[Grant]) -> Grant:
    """The grant to store: accepted if the same offer was accepted before. Raises InvalidRequest."""
    if grant.to == grant.space:
        raise InvalidRequest(f"space {grant.space!r} already sees its own namespaces: grant them to another space")
    accepted = {(one.namespace, one.to): one.accepted for one in known}
    waiting = sum(not one for one in accepted.values())
    if (grant.namespace, grant.to) not in accepted and waiting >= MAX_OFFERS:
        raise InvalidRequest(
            f"space {grant.space!r} has {waiting:,} offers that were not accepted: revoke some of them first"
        )
    return replace(grant, accepted=accepted.get((grant.namespace, grant.to), False))


def check_acceptable(offered: Grant, granted: Sequence[Grant]) -> None:
    """Raises InvalidRequest if too many spaces already share with this one."""
    others = {one.space for one in granted} - {offered.space}
    if len(others) >= MAX_OWNERS:
        raise InvalidRequest(
            f"{len(others)} spaces already share with space {offered.to!r}, which is the most allowed: refuse one of "
            "their grants first"
        )


def by_owner(named: Sequence[tuple[str, str]]) -> Visible:
    owners: dict[str, tuple[str, ...]] = {}
    for owner, namespace in named:
        owners[owner] = (*owners.get(owner, ()), namespace)
    return owners


def _not_granted(space: str, owner: str, namespace: str) -> NotAllowed:
    return NotAllowed(
        f"space {space!r} may not see namespace {namespace!r} of space {owner!r}: its owner can grant it, and this "
        "space can then accept the grant"
    )
