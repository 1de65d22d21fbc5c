"""The verbs inside a namespace of another space, as far as that space has granted it."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from recollect.engine.engine import LIST_MOST, Engine
from recollect.engine.sizes import read_all
from recollect.errors import InvalidRequest, NotFound
from recollect.legs.graph import made_links
from recollect.limits import check_name, check_number
from recollect.options import ListOptions, RecallOptions
from recollect.types import Access, Draft, Edge, Filter, Memory, Neighbor, Page, Recall, Remembered

UNSAID = Draft("").namespace
"""What a draft says of its namespace where its caller says nothing."""


class Guest:
    """One space's access to a namespace of another. The grant is looked at before every call; what lies outside of the
    namespace is not there for it, whatever its id.
    """

    def __init__(self, engine: Engine, caller: str, owner: str, namespace: str) -> None:
        self.owner = check_name("space", owner)
        self.namespace = check_name("namespace", namespace)
        if owner == caller:
            raise InvalidRequest(f"namespace {namespace!r} is space {caller!r}'s own: use it without `shared`")
        self._engine = engine
        self._caller = caller

    async def remember(self, draft: Draft) -> Remembered:
        await self._may("write")
        return await self._engine.remember(self.owner, self._inside(draft))

    async def recall(self, text: str, options: RecallOptions) -> Recall:
        self._elsewhere(options, "namespaces", "shared")
        return await self._engine.recall(
            self._caller, text, RecallOptions(**options, shared=[(self.owner, self.namespace)])
        )

    async def get(self, id: str) -> Memory:
        await self._may("read")
        await self._holds(id)
        return await self._engine.get(self.owner, id)

    async def list(self, options: ListOptions, *, limit: int, after: str | None) -> Page:
        await self._may("read")
        self._elsewhere(options, "namespaces")
        inside = ListOptions(**options, namespaces=[self.namespace])
        return await self._engine.list(self.owner, inside, limit=limit, after=after)

    async def update(self, id: str, changes: Mapping[str, Any]) -> Memory:
        await self._may("write")
        self._elsewhere(changes, "namespace")
        await self._holds(id)
        return await self._engine.update(self.owner, id, changes)

    async def forget(self, ids: Iterable[str]) -> int:
        await self._may("write")
        here = await self._here([check_name("id", id) for id in ids])
        return await self._engine.forget(self.owner, here)

    async def supersede(self, old: str, new: Draft | str) -> Memory:
        await self._may("write")
        await self._holds(old, *([new] if isinstance(new, str) else []))
        return await self._engine.supersede(self.owner, old, new if isinstance(new, str) else self._inside(new))

    async def link(self, edge: Edge) -> None:
        await self._may("write")
        await self._holds(edge.source, edge.target)
        await self._engine.link(self.owner, edge)

    async def unlink(self, source: str, target: str, relation: str | None) -> int:
        await self._may("write")
        await self._holds(source, target)
        return await self._engine.unlink(self.owner, source, target, relation)

    async def neighbors(self, id: str, *, limit: int) -> builtins.list[Neighbor]:
        """What somebody has linked to a memory directly: a longer way might lead through what is not granted, and the
        links that come by themselves tell of the whole space.
        """
        await self._may("read")
        check_number("limit", limit, 1, LIST_MOST, whole=True)
        await self._holds(id)
        store = self._engine.store
        where = Filter(namespaces=(self.namespace,), include_superseded=True, now=datetime.now(UTC))
        reached = await made_links(store, self.owner, [id], where, limit=limit)
        rows = await read_all([one.id for one in reached], partial(store.get, self.owner))
        return [Neighbor(rows[r.id], r.strength, r.steps, r.relation) for r in reached if r.id in rows]

    async def _may(self, wanted: Access) -> None:
        await self._engine.sharing.may(self._caller, self.owner, self.namespace, wanted)

    async def _here(self, ids: builtins.list[str]) -> set[str]:
        everything = Filter(
            namespaces=(self.namespace,), include_superseded=True, include_expired=True, now=datetime.now(UTC)
        )
        return await self._engine.store.visible(self.owner, ids, everything)

    async def _holds(self, *ids: str) -> None:
        here = await self._here([check_name("id", id) for id in ids])
        for id in ids:
            if id not in here:
                raise NotFound(f"namespace {self.namespace!r} of space {self.owner!r} holds no memory {id!r}")

    def _inside(self, draft: Draft) -> Draft:
        """The draft in this namespace. An id of the caller's choice could be one that stands elsewhere in the space."""
        if draft.id is not None:
            raise InvalidRequest(f"id {draft.id!r:.80} was given, and ids in another's space are not yours to choose")
        if draft.namespace not in (UNSAID, self.namespace):
            self._elsewhere({"namespace": draft.namespace}, "namespace")
        return replace(draft, namespace=self.namespace)

    def _elsewhere(self, options: Mapping[str, object], *names: str) -> None:
        """Refuse to be told of other namespaces."""
        for name in names:
            if name in options:
                raise InvalidRequest(
                    f"{name} was given, and this is about namespace {self.namespace!r} of space {self.owner!r} alone"
                )
