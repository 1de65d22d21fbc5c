"""The engines that a recall uses, each behind its gate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from typing import Protocol

from recollect.calls.gate import Gates, gated
from recollect.calls.shared import Asked
from recollect.engine.rerank import Rerankers, Reranking
from recollect.errors import InvalidRequest
from recollect.legs import LEGS, LegSearch
from recollect.legs.graph import Links
from recollect.legs.vector import Threads
from recollect.ports import Engine, Store, VectorIndex
from recollect.types import Edge, Memory


class Rows(Threads, Protocol):
    """Reads the memories that the lanes found, and their neighbours."""

    async def get(self, space: str, ids: Sequence[str]) -> dict[str, Memory]: ...


class VectorEngine(Engine, VectorIndex, Protocol):
    """What answers the vector leg: a store, or an external index."""


class LinkEngine(Engine, Links, Protocol):
    """What answers the graph leg: a store, or an external index."""


class Engines:
    """The store, and what answers each leg. Vectors and links are the store's own or an external index's."""

    def __init__(
        self,
        gates: Gates,
        embedder: Engine,
        store: Store,
        vectors: VectorEngine,
        links: LinkEngine,
        rerankers: Rerankers | None = None,
    ) -> None:
        self.words = gated(store, gates.of("keyword", store))
        self.vectors = gated(vectors, gates.of("vector", vectors))
        self.links = gated(links, gates.of("graph", links))
        self.rows: Rows = gated(store, gates.of_rows(store))
        self.reranking = Reranking(self.rows, rerankers or Rerankers(), gates)
        self.store = store.name
        self._all: tuple[Engine, ...] = (store, vectors, links)
        self.embed_with(embedder)
        rows = gates.of_rows(store)

        async def listed(edges: AsyncIterator[Edge]) -> list[Edge]:
            return [edge async for edge in edges]

        async def edges(space: str, ids: Sequence[str]) -> list[Edge]:
            return await rows.call(lambda: listed(store.edges(space, ids)), space)

        self.edges = edges
        self.leg: Callable[[str], LegSearch] = cache(self._made_leg)
        """A leg over these engines, made when first used."""

    def embed_with(self, embedder: Engine) -> None:
        """Questions are embedded by this one from now on."""
        self.embedder = embedder.name
        self.in_process = embedder.in_process and all(engine.in_process for engine in self._all)
        shared: dict[Asked, Engine] = {"embedder": embedder, "vector index": self._all[1], "store": self._all[0]}
        self.outside = [asked for asked, engine in shared.items() if not engine.in_process]

    def _made_leg(self, name: str) -> LegSearch:
        factory = LEGS.load(name)
        if factory is None:
            raise InvalidRequest(f"the leg {name!r} does not exist: use one of {', '.join(LEGS.names())}")
        return factory(self)
