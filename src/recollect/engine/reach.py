"""What a handle may touch: a whole space of its own, or a namespace that another space has granted to it.

A verb asks its reach before it runs, so it is written once for both.
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

UNSAID = Draft("").namespace
"""What a draft says of its namespace where its caller says nothing."""


class Reach:
    """A whole space of one's own: every call is allowed, and nothing is narrowed."""

    namespace: str | None = None
    """The one namespace in reach; None: all of the space."""

    def __init__(self, store: Store, space: str) -> None:
        self._store = store
        self.space = check_name("space", space)
        self.caller = self.space
        """The space that recalls: they are counted there."""

    async def allow(self, wanted: Access, *ids: str) -> None:
        """Raises NotAllowed where the call is not granted, and NotFound for an id that is out of reach."""

    async def among(self, ids: Sequence[str]) -> Sequence[str]:
        """Those of some ids that are in reach."""
        return ids

    def draft(self, draft: Draft) -> Draft:
        """A draft, put where this reaches. Raises InvalidRequest if it says that it belongs elsewhere."""
        return draft

    def check_changes(self, changes: Mapping[str, object]) -> None:
        """Raises InvalidRequest for a change that would move a memory out of reach."""

    def listing(self, options: ListOptions) -> ListOptions:
        """The options of a list, narrowed to what is in reach."""
        return options

    def recalling(self, options: RecallOptions) -> RecallOptions:
        """The options of a recall, narrowed to what is in reach."""
        return options

    async def walk(self, id: str, *, depth: int, limit: int) -> Sequence[Reached]:
        """What links lead to from a memory, strongest first."""
        where = Filter(include_superseded=True, now=datetime.now(UTC))
        return await self._store.walk(self.space, [id], where, depth=depth, limit=limit)

    def missing(self, id: str) -> NotFound:
        return NotFound(f"space {self.space!r} holds no memory {id!r}")


class Granted(Reach):
    """A namespace that another space has granted to the caller. The grant is looked up before every call; what lies
    outside of the namespace is not there, whatever its id.
    """

    namespace: str

    def __init__(self, store: Store, sharing: Sharing, caller: str, owner: str, namespace: str) -> None:
        super().__init__(store, owner)
        self.namespace = check_name("namespace", namespace)
        if owner == caller:
            raise InvalidRequest(f"namespace {namespace!r} is space {caller!r}'s own: use it without `shared`")
        self._sharing = sharing
        self.caller = caller

    async def allow(self, wanted: Access, *ids: str) -> None:
        await self._sharing.may(self.caller, self.space, self.namespace, wanted)
        here = await self.among([check_name("id", id) for id in ids]) if ids else ()
        for id in ids:
            if id not in here:
                raise self.missing(id)

    async def among(self, ids: Sequence[str]) -> Sequence[str]:
        everything = replace(self._inside(), include_expired=True)
        return [*await self._store.visible(self.space, ids, everything)]

    def draft(self, draft: Draft) -> Draft:
        """An id of the caller's choice could be one that stands elsewhere in the space."""
        if draft.id is not None:
            raise InvalidRequest(f"id {draft.id!r:.80} was given, and ids in another's space are not yours to choose")
        if draft.namespace not in (UNSAID, self.namespace):
            raise self._elsewhere("namespace")
        return replace(draft, namespace=self.namespace)

    def check_changes(self, changes: Mapping[str, object]) -> None:
        self._refuse(changes, "namespace")

    def listing(self, options: ListOptions) -> ListOptions:
        self._refuse(options, "namespaces")
        return ListOptions(**options, namespaces=[self.namespace])

    def recalling(self, options: RecallOptions) -> RecallOptions:
        """A recall of the caller's that looks at this namespace alone; it looks up the grant itself."""
        self._refuse(options, "namespaces", "shared")
        return RecallOptions(**options, shared=[(self.space, self.namespace)])

    async def walk(self, id: str, *, depth: int, limit: int) -> Sequence[Reached]:
        """What somebody has linked to a memory directly: a longer way could lead through what is not granted, and
        automatic links tell of the whole space.
        """
        if depth != 1:
            raise InvalidRequest(f"depth is {depth}, and links in another's space are followed for one step: use 1")
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
            f"{name} was given, and this is about namespace {self.namespace!r} of space {self.space!r} alone"
        )
