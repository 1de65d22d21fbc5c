"""A store and the indexes beside it as one store: what an index answers is asked there, when it has been told all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from recollect.engine.feeding import Feeder
from recollect.ports import ExternalIndex, ExternalLinks, ExternalVectors, Reached, Store, VectorHits
from recollect.types import Filter, Generation, Leg, Scored

if TYPE_CHECKING:
    from recollect.types import Vector


class Combination:
    """The calls of the vector and of the graph leg go to the indexes, where there are such; all others to the store.

    An index is fed through the outbox, as it always is, but before each question instead of in the background: so it
    has to answer as if it were the store.
    """

    def __init__(self, store: Store, vectors: ExternalVectors | None, links: ExternalLinks | None) -> None:
        self._store = store
        self._vectors = vectors or store
        self._links = links or store
        self._feeders = {
            leg: Feeder(store, index, leg) for leg, index in _by_leg(vectors, links).items() if index is not None
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def search_vectors(
        self,
        space: str,
        vector: Vector,
        where: Filter,
        *,
        limit: int,
        ef_search: int | None = None,
        generation: Generation | None = None,
    ) -> VectorHits:
        await self._tell("vector")
        return await self._vectors.search_vectors(
            space, vector, where, limit=limit, ef_search=ef_search, generation=generation
        )

    async def nearest_to(self, space: str, ids: Sequence[str], *, limit: int) -> dict[str, list[Scored]]:
        await self._tell("vector")
        return await self._vectors.nearest_to(space, ids, limit=limit)

    async def vectors(
        self, space: str, ids: Sequence[str], *, generation: Generation | None = None
    ) -> dict[str, Vector]:
        await self._tell("vector")
        return await self._vectors.vectors(space, ids, generation=generation)

    async def walk(
        self, space: str, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]:
        await self._tell("graph")
        return await self._links.walk(space, seeds, where, depth=depth, limit=limit)

    async def _tell(self, leg: Leg) -> None:
        if leg in self._feeders:
            await self._feeders[leg].drain()


def _by_leg(vectors: ExternalVectors | None, links: ExternalLinks | None) -> dict[Leg, ExternalIndex | None]:
    return {"vector": vectors, "graph": links}


@asynccontextmanager
async def combined(store: Store, vectors: ExternalVectors | None, links: ExternalLinks | None) -> AsyncIterator[Store]:
    """The store with these indexes, which are let go of at the end; the store itself stays open."""
    indexes = {leg: index for leg, index in _by_leg(vectors, links).items() if index is not None}
    for leg, index in indexes.items():
        await store.ledger.feed(index.name, leg)
        await index.open()
    try:
        yield cast("Store", Combination(store, vectors, links))
    finally:
        for index in indexes.values():
            await index.close()
