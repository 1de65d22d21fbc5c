"""All that a recall asks, each engine behind its gate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from recollect.calls.gate import Gates, gated
from recollect.calls.shared import Asked
from recollect.engine.lanes import LegSearch
from recollect.legs.graph import GraphLeg, Links
from recollect.legs.keyword import KeywordLeg
from recollect.legs.vector import Threads, VectorLeg
from recollect.ports import Engine, Store, VectorIndex
from recollect.types import Edge, Memory


class Rows(Threads, Protocol):
    """What an answer is made of: the memories that the lanes found, and what stands beside them."""

    async def get(self, space: str, ids: Sequence[str]) -> dict[str, Memory]: ...


class VectorEngine(Engine, VectorIndex, Protocol):
    """What answers the vector leg: a store, or an external index."""


class LinkEngine(Engine, Links, Protocol):
    """What answers the graph leg: a store, or an external index."""


class Engines:
    """The store, and what answers each leg. Vectors and links are the store's own or an external index's."""

    def __init__(self, gates: Gates, embedder: Engine, store: Store, vectors: VectorEngine, links: LinkEngine) -> None:
        self.words = gated(store, gates.of("keyword", store))
        self.vectors = gated(vectors, gates.of("vector", vectors))
        self.links = gated(links, gates.of("graph", links))
        self.rows: Rows = gated(store, gates.of_rows(store))
        self.store = store.name
        self.in_process = all(engine.in_process for engine in (embedder, store, vectors, links))
        shared: dict[Asked, Engine] = {"embedder": embedder, "vector index": vectors, "store": store}
        self.outside = [asked for asked, engine in shared.items() if not engine.in_process]
        rows = gates.of_rows(store)

        async def listed(edges: AsyncIterator[Edge]) -> list[Edge]:
            return [edge async for edge in edges]

        async def edges(space: str, ids: Sequence[str]) -> list[Edge]:
            return await rows.call(lambda: listed(store.edges(space, ids)), space)

        self.edges = edges

    def legs(self) -> dict[str, LegSearch]:
        return {
            "vector": VectorLeg(self.vectors, self.rows),
            "keyword": KeywordLeg(self.words),
            "graph": GraphLeg(self.links, self.rows, self.edges),
        }
