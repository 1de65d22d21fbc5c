"""What a store may leave out, and still be one.

A store that does not do all of it says in `capabilities` which of these it has:

    class MyStore:
        capabilities = frozenset({"words", "usage"})

Memories, filters and vectors are every store's. A spec that calls for what a store leaves out is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from recollect.ports import Store

CAPABILITIES: Final[Mapping[str, frozenset[str]]] = {
    "words": frozenset({"search_words"}),
    "links": frozenset({"link", "link_nearest", "unlink", "unlinked", "walk", "edges"}),
    "outbox": frozenset({"feed", "enter", "waiting", "delivered", "lag", "lease", "release"}),
    "usage": frozenset(
        {"count_usage", "usage", "note_uses", "uses", "most_useful", "claim_scoring", "note_scoring", "set_qualities"}
    ),
    "grants": frozenset({"grant", "revoke", "accept", "granted_by", "granted_to", "offered_to"}),
    "tokens": frozenset(
        {"add_token", "token", "tokens", "revoke_token", "any_token", "add_session", "session", "end_session"}
    ),
    "replies": frozenset({"claim", "reply", "disclaim"}),
}
"""The calls that belong to each."""
_CAPABILITY_OF: Final = {call: capability for capability, calls in CAPABILITIES.items() for call in calls}


class LeftOut(Exception):
    """A spec called for something that the store does not claim to do."""


class _Declared:
    """A store, or a part of it, that answers only the calls of its capabilities."""

    def __init__(self, inner: Any, capabilities: frozenset[str]) -> None:
        self._inner = inner
        self.capabilities = capabilities

    def __getattr__(self, name: str) -> Any:
        capability = _CAPABILITY_OF.get(name)
        if capability and capability not in self.capabilities:
            raise LeftOut(f"the store leaves out {capability}, which has {name}()")
        inner = getattr(self._inner, name)
        return _Declared(inner, self.capabilities) if name == "ledger" else inner


def declared(store: Store) -> Store:
    """The store, kept to what it declares. Raises ValueError for a capability that there is not."""
    capabilities = frozenset(getattr(store, "capabilities", CAPABILITIES))
    if unknown := capabilities - CAPABILITIES.keys():
        raise ValueError(f"the store declares {sorted(unknown)}; there are only {', '.join(CAPABILITIES)}")
    return store if capabilities == CAPABILITIES.keys() else cast("Store", _Declared(store, capabilities))


def offers(store: Store, capability: str) -> bool:
    """Whether a store declares this capability; one that declares nothing has them all."""
    return capability in getattr(store, "capabilities", CAPABILITIES)
