"""What a handle may touch: its own space, or one namespace that another space has granted to it.

Every verb checks its reach before it runs, so each verb is written once for both cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from recollect.engine.sharing import Sharing
from recollect.errors import InvalidRequest, NotFound
from recollect.legs.graph import made_links
from recollect.limits import check_name
from recollect.options import ListOptions, RecallOptions
from recollect.ports import Reached, Store
from recollect.types import Access, Draft, Filter

DEFAULT_NAMESPACE = Draft("").namespace


class Reach:
    """The caller's own space: every call is allowed."""

    namespace: str | None = None
    """The only namespace in reach; None: the whole space."""

    def __init__(self, store: Store, space: str) -> None:
        self._store = store
        self.space = check_name("space", space)
        self.caller = self.space
        """The space whose usage counts this handle's recalls."""

    async def allow(self, wanted: Access, *ids: str) -> None:
        """Raises NotAllowed if the call is not granted, and NotFound for an id that is out of reach."""

    async def among(self, ids: Sequence[str]) -> Sequence[str]:
        """The ids that are in reach."""
        return ids

    def draft(self, draft: Draft) -> Draft:
        """The draft with its namespace set. Raises InvalidRequest if it names a namespace out of reach."""
        return draft

    def check_changes(self, changes: Mapping[str, object]) -> None:
        """Raises InvalidRequest for a change that would move a memory out of reach."""

    def listing(self, options: ListOptions) -> ListOptions:
        return options

    def recalling(self, options: RecallOptions) -> RecallOptions:
        return options

    async def walk(self, id: str, *, depth: int, limit: int) -> Sequence[Reached]:
        """The memories that links lead to, strongest first."""
        where = Filter(include_superseded=True, now=datetime.now(UTC))
        return await self._store.walk(self.space, [id], where, depth=depth, limit=limit)

    def missing(self, id: str) -> NotFound:
        return NotFound(f"space {self.space!r} holds no memory {id!r}")


class Granted(Reach):
    """A namespace that another space has granted to the caller. The grant is read before every call. A memory outside
    the namespace is never found, even by its id.
    """

    namespace: str

    def __init__(self, store: Store, sharing: Sharing, caller: str, owner: str, namespace: str) -> None:
        super().__init__(store, owner)
        self.namespace = check_name("namespace", namespace)
        if owner == caller:
            raise InvalidRequest(f"namespace {namespace!r} belongs to space {caller!r} itself: use it without `shared`")
        self._sharing = sharing
        self.caller = caller

    async def allow(self, wanted: Access, *ids: str) -> None:
        await self._sharing.check_granted(self.caller, self.space, self.namespace, wanted)
        here = await self.among([check_name("id", id) for id in ids]) if ids else ()
        for id in ids:
            if id not in here:
                raise self.missing(id)

    async def among(self, ids: Sequence[str]) -> Sequence[str]:
        everything = replace(self._inside(), include_expired=True)
        return [*await self._store.visible(self.space, ids, everything)]

    def draft(self, draft: Draft) -> Draft:
        """The caller may not choose an id, which could belong to a memory elsewhere in the space."""
        if draft.id is not None:
            raise InvalidRequest(f"id {draft.id!r:.80} cannot be set in another space: leave it out")
        if draft.namespace not in (DEFAULT_NAMESPACE, self.namespace):
            raise self._elsewhere("namespace")
        return replace(draft, namespace=self.namespace)

    def check_changes(self, changes: Mapping[str, object]) -> None:
        self._refuse(changes, "namespace")

    def listing(self, options: ListOptions) -> ListOptions:
        self._refuse(options, "namespaces")
        return ListOptions(**options, namespaces=[self.namespace])

    def recalling(self, options: RecallOptions) -> RecallOptions:
        """The recall runs as the caller's own, over this namespace only. It checks the grant itself."""
        self._refuse(options, "namespaces", "shared")
        return RecallOptions(**options, shared=[(self.space, self.namespace)])

    async def walk(self, id: str, *, depth: int, limit: int) -> Sequence[Reached]:
        """Only links that a person or agent made, one step away. A longer path could pass through memories that are not
        granted, and automatic links reveal what else the space holds.
        """
        if depth != 1:
            raise InvalidRequest(f"depth is {depth}, but links in another space can only be followed one step: use 1")
        edges = [edge async for edge in self._store.edges(self.space, [id])]
        return await made_links(self._store, edges, self.space, [id], self._inside(), limit=limit)

    def missing(self, id: str) -> NotFound:
        return NotFound(f"namespace {self.namespace!r} of space {self.space!r} holds no memory {id!r}")

    def _inside(self) -> Filter:
        return Filter(namespaces=(self.namespace,), include_superseded=True, now=datetime.now(UTC))

    def _refuse(self, options: Mapping[str, object], *names: str) -> None:
        for name in names:
            if name in options:
                raise self._elsewhere(name)

    def _elsewhere(self, name: str) -> InvalidRequest:
        return InvalidRequest(
            f"{name} cannot be given here: this handle only reaches namespace {self.namespace!r} of space "
            f"{self.space!r}"
        )
