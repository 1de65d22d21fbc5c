"""A namespace of another space, in the hands of one it was granted to: `Shared` and `AsyncShared`."""

from __future__ import annotations

import builtins
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar, Unpack

from recollect.engine.drafts import draft_of, replacement
from recollect.engine.guest import Guest
from recollect.options import Changes, ListOptions, MemoryFields, RecallOptions
from recollect.types import Edge, Memory, Neighbor, Page, Recall, Remembered

T = TypeVar("T")


class AsyncShared:
    """The memories of a granted namespace. Get one from `AsyncSpace.shared`; every call asks whether it is granted."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self.space = guest.owner
        self.namespace = guest.namespace

    async def remember(self, text: str, **fields: Unpack[MemoryFields]) -> Remembered:
        """Store a text there; see `Space.remember`."""
        return await self._guest.remember(draft_of(text, fields))

    async def recall(self, query: str, **options: Unpack[RecallOptions]) -> Recall:
        """The memories there that answer a question, best first."""
        return await self._guest.recall(query, options)

    async def get(self, id: str) -> Memory:
        """One memory of it. Raises NotFound."""
        return await self._guest.get(id)

    async def list(self, *, limit: int = 50, after: str | None = None, **options: Unpack[ListOptions]) -> Page:
        """Its memories in id order, a page at a time."""
        return await self._guest.list(options, limit=limit, after=after)

    async def update(self, id: str, **changes: Unpack[Changes]) -> Memory:
        """Change some fields of a memory of it."""
        return await self._guest.update(id, changes)

    async def forget(self, *ids: str) -> int:
        """Delete memories of it for good; how many there were."""
        return await self._guest.forget(ids)

    async def supersede(
        self, old: str, text: str | None = None, *, by: str | None = None, **fields: Unpack[MemoryFields]
    ) -> Memory:
        """Replace a memory of it by a new text, or `by` another memory of it."""
        return await self._guest.supersede(old, replacement(await self._guest.get(old), text, by, fields))

    async def link(self, source: str, target: str, relation: str = "related", strength: float = 1.0) -> None:
        """Link two memories of it."""
        await self._guest.link(Edge(source, target, relation, strength))

    async def unlink(self, source: str, target: str, relation: str | None = None) -> int:
        """Remove a link between two memories of it; how many there were."""
        return await self._guest.unlink(source, target, relation)

    async def neighbors(self, id: str, *, limit: int = 20) -> builtins.list[Neighbor]:
        """What is linked to a memory directly, and is there itself."""
        return await self._guest.neighbors(id, limit=limit)


class Portal(Protocol):
    """The way into an event loop."""

    def run(self, work: Coroutine[Any, Any, T]) -> T: ...


class Shared:
    """The memories of a granted namespace, without `await`. Each call is `AsyncShared`'s."""

    def __init__(self, shared: AsyncShared, portal: Portal) -> None:
        self._shared = shared
        self._run = portal.run
        self.space = shared.space
        self.namespace = shared.namespace

    def remember(self, text: str, **fields: Unpack[MemoryFields]) -> Remembered:
        """Store a text there; see `Space.remember`."""
        return self._run(self._shared.remember(text, **fields))

    def recall(self, query: str, **options: Unpack[RecallOptions]) -> Recall:
        """The memories there that answer a question, best first."""
        return self._run(self._shared.recall(query, **options))

    def get(self, id: str) -> Memory:
        """One memory of it. Raises NotFound."""
        return self._run(self._shared.get(id))

    def list(self, *, limit: int = 50, after: str | None = None, **options: Unpack[ListOptions]) -> Page:
        """Its memories in id order, a page at a time."""
        return self._run(self._shared.list(limit=limit, after=after, **options))

    def update(self, id: str, **changes: Unpack[Changes]) -> Memory:
        """Change some fields of a memory of it."""
        return self._run(self._shared.update(id, **changes))

    def forget(self, *ids: str) -> int:
        """Delete memories of it for good; how many there were."""
        return self._run(self._shared.forget(*ids))

    def supersede(
        self, old: str, text: str | None = None, *, by: str | None = None, **fields: Unpack[MemoryFields]
    ) -> Memory:
        """Replace a memory of it by a new text, or `by` another memory of it."""
        return self._run(self._shared.supersede(old, text, by=by, **fields))

    def link(self, source: str, target: str, relation: str = "related", strength: float = 1.0) -> None:
        """Link two memories of it."""
        self._run(self._shared.link(source, target, relation, strength))

    def unlink(self, source: str, target: str, relation: str | None = None) -> int:
        """Remove a link between two memories of it; how many there were."""
        return self._run(self._shared.unlink(source, target, relation))

    def neighbors(self, id: str, *, limit: int = 20) -> builtins.list[Neighbor]:
        """What is linked to a memory directly, and is there itself."""
        return self._run(self._shared.neighbors(id, limit=limit))
