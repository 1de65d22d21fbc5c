"""The ports as a recall sees them: the same reads, each behind its engine's guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Protocol

from recollect.engine.guards import Guard, Guards
from recollect.engine.lanes import LegSearch
from recollect.legs.graph import GraphLeg, Links
from recollect.legs.keyword import KeywordLeg
from recollect.legs.question import Asked
from recollect.legs.vector import Threads, VectorLeg
from recollect.ports import (
    Beside,
    Embedder,
    Engine,
    Reached,
    Role,
    Sample,
    Store,
    VectorHits,
    VectorIndex,
    WordHits,
    WordIndex,
    WordSearch,
)
from recollect.types import Edge, Filter, Memory, Scored

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors


class GuardedVectors:
    """A vector index behind its guard."""

    def __init__(self, index: VectorIndex, guard: Guard) -> None:
        self._index = index
        self._guard = guard

    async def search_vectors(
        self, space: str, vector: Vector, where: Filter, *, limit: int, ef_search: int | None = None
    ) -> VectorHits:
        return await self._guard.call(
            lambda: self._index.search_vectors(space, vector, where, limit=limit, ef_search=ef_search)
        )

    async def nearest_to(self, space: str, ids: Sequence[str], *, limit: int) -> dict[str, list[Scored]]:
        return await self._guard.call(lambda: self._index.nearest_to(space, ids, limit=limit))

    async def vectors(self, space: str, ids: Sequence[str]) -> dict[str, Vector]:
        return await self._guard.call(lambda: self._index.vectors(space, ids))


class GuardedWords:
    """A word index behind its guard."""

    def __init__(self, index: WordIndex, guard: Guard) -> None:
        self._index = index
        self._guard = guard

    async def search_words(self, space: str, search: WordSearch, where: Filter, *, limit: int) -> WordHits:
        return await self._guard.call(lambda: self._index.search_words(space, search, where, limit=limit))


class GuardedLinks:
    """A graph index behind its guard."""

    def __init__(self, index: Links, guard: Guard) -> None:
        self._index = index
        self._guard = guard

    async def walk(
        self, space: str, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]:
        return await self._guard.call(lambda: self._index.walk(space, seeds, where, depth=depth, limit=limit))


class Rows(Threads, Protocol):
    """What an answer is made of: the memories that the lanes found, and what stands beside them."""

    async def get(self, space: str, ids: Sequence[str]) -> dict[str, Memory]: ...

    def edges(self, space: str, ids: Sequence[str] | None = None) -> AsyncIterator[Edge]: ...


class GuardedRows:
    """A store's rows behind its guard."""

    def __init__(self, rows: Rows, guard: Guard) -> None:
        self._rows = rows
        self._guard = guard

    async def get(self, space: str, ids: Sequence[str]) -> dict[str, Memory]:
        return await self._guard.call(lambda: self._rows.get(space, ids))

    async def beside(self, space: str, ids: Sequence[str], reach: int) -> dict[str, Beside]:
        return await self._guard.call(lambda: self._rows.beside(space, ids, reach))

    async def visible(self, space: str, ids: Sequence[str], where: Filter) -> set[str]:
        return await self._guard.call(lambda: self._rows.visible(space, ids, where))

    async def edges(self, space: str, ids: Sequence[str] | None = None) -> AsyncIterator[Edge]:
        for edge in await self._guard.call(lambda: _listed(self._rows.edges(space, ids))):
            yield edge

    async def sample(self, space: str, namespaces: Sequence[str], *, limit: int) -> Sample:
        return await self._guard.call(lambda: self._rows.sample(space, namespaces, limit=limit))


async def _listed(edges: AsyncIterator[Edge]) -> list[Edge]:
    return [edge async for edge in edges]


class GuardedEmbedder:
    """An embedder behind its guard, for questions. It belongs below the query cache: a vector that is known already
    needs no embedder, and tells nothing about it.
    """

    def __init__(self, embedder: Embedder, guard: Guard) -> None:
        self._embedder = embedder
        self._guard = guard

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def in_process(self) -> bool:
        return self._embedder.in_process

    @property
    def dimensions(self) -> int | None:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        return await self._guard.call(lambda: self._embedder.embed(texts, space=space, role=role))

    async def close(self) -> None:
        await self._embedder.close()


class VectorEngine(Engine, VectorIndex, Protocol):
    """What answers the vector leg: a store, or an external index."""


class LinkEngine(Engine, Links, Protocol):
    """What answers the graph leg: a store, or an external index."""


class Engines:
    """All that a recall asks, each behind its guard. Vectors and links are the store's own or an external index's."""

    def __init__(
        self, guards: Guards, embedder: Engine, store: Store, vectors: VectorEngine, links: LinkEngine
    ) -> None:
        self.words = GuardedWords(store, guards.of("keyword", store))
        self.vectors = GuardedVectors(vectors, guards.of("vector", vectors))
        self.links = GuardedLinks(links, guards.of("graph", links))
        self.rows = GuardedRows(store, guards.of_rows(store))
        self.store = store.name
        self.in_process = all(engine.in_process for engine in (embedder, store, vectors, links))
        shared: dict[Asked, Engine] = {"embedder": embedder, "vector index": vectors, "store": store}
        self.outside = [asked for asked, engine in shared.items() if not engine.in_process]

    def legs(self) -> dict[str, LegSearch]:
        return {
            "vector": VectorLeg(self.vectors, self.rows),
            "keyword": KeywordLeg(self.words),
            "graph": GraphLeg(self.links, self.rows),
        }
