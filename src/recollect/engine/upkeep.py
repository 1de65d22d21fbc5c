"""Work that does not keep a caller waiting: vectors that are still missing, links to the nearest, hit counts."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from recollect.engine.embedding import Embedding
from recollect.engine.remember import EMBED_BATCH, NEAREST, similar
from recollect.errors import RecollectError
from recollect.ports import Store, VectorIndex

LINK_BATCH = 200
FLUSH_SECONDS = 5.0


class Upkeep:
    """Catches up, per space, in the background; `settle` waits for it, `close` stops it between two batches."""

    def __init__(self, store: Store, vectors: VectorIndex, embedding: Embedding) -> None:
        self._store = store
        self._vectors = vectors
        self._embedding = embedding
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._seen: set[str] = set()
        self._closing = False

    def first_use(self, space: str) -> None:
        """The first time a space is used by this client: what an earlier process left undone is taken up."""
        if space not in self._seen:
            self._seen.add(space)
            self.catch_up(space)

    def catch_up(self, space: str) -> None:
        """Start catching up, unless that is under way."""
        if not self._closing and (space not in self._tasks or self._tasks[space].done()):
            self._tasks[space] = asyncio.create_task(self._quietly(space))

    async def settle(self, space: str) -> None:
        """Wait until every memory of the space has its vector and its links, as far as the embedder allows."""
        if space in self._tasks:
            await asyncio.wait([self._tasks[space]])
        await self._work_off(space)

    async def close(self) -> None:
        self._closing = True
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    async def _quietly(self, space: str) -> None:
        try:
            await self._work_off(space)
        except RecollectError:
            self._seen.discard(space)  # tried again at the next use; whoever asks meanwhile is told by their own call

    async def _work_off(self, space: str) -> None:
        while not self._closing and await self._embed_some(space):
            pass
        while not self._closing and await self._link_some(space):
            pass

    async def _embed_some(self, space: str) -> bool:
        waiting = await self._store.pending(space, limit=EMBED_BATCH)
        if not waiting:
            return False
        vectors = await self._embedding.passages(space, waiting)
        if vectors is None:
            return False
        await self._store.put_vectors(space, {m.id: v for m, v in zip(waiting, vectors, strict=True)})
        return True

    async def _link_some(self, space: str) -> bool:
        ids = await self._store.unlinked(space, limit=LINK_BATCH)
        if not ids:
            return False
        found = await self._vectors.nearest_to(space, ids, limit=NEAREST)
        await self._store.link(space, [edge for id in found for edge in similar(id, found[id])], linked=list(found))
        return bool(found)


class HitCounter:
    """Counts what was recalled, and writes the counts now and then, so that a recall never waits for a write."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, Counter[str]] = defaultdict(Counter)
        self._flusher: asyncio.Task[None] | None = None

    def count(self, space: str, ids: Iterable[str]) -> None:
        self._waiting[space].update(ids)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush_later())

    async def flush(self) -> None:
        """Write what was counted. Counts are a convenience: a store that cannot be written loses them, no more."""
        waiting, self._waiting = self._waiting, defaultdict(Counter)
        for space, hits in waiting.items():
            try:
                await self._store.mark_hits(space, hits, now=datetime.now(UTC))
            except RecollectError:
                return

    async def close(self) -> None:
        if self._flusher is not None:
            self._flusher.cancel()
        await self.flush()

    async def _flush_later(self) -> None:
        await asyncio.sleep(FLUSH_SECONDS)
        await self.flush()
