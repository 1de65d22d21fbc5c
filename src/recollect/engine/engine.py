"""The engine: one store, its indexes and one embedder, wired for the verbs of a space."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

from recollect.calls.gate import Gates, gated
from recollect.embedders.cache import QueryCache
from recollect.engine.embedding import Embedding
from recollect.engine.engines import Engines
from recollect.engine.feeding import Feeder
from recollect.engine.recall import Recaller
from recollect.engine.reembed import GRACE, drop_old
from recollect.engine.remember import Rememberer
from recollect.engine.rerank import Rerankers
from recollect.engine.scoring import Scoring
from recollect.engine.sharing import Sharing
from recollect.engine.upkeep import SEEN_SPACES, Upkeep
from recollect.engine.usage import HitCounter
from recollect.errors import EmbeddingMismatch, InvalidRequest
from recollect.ports import Embedder, ExternalLinks, ExternalVectors, Store
from recollect.recipes import RECIPES, Recipe
from recollect.types import Generation, Leg

VECTOR: Leg = "vector"
GRAPH: Leg = "graph"
LOOK_AGAIN = 3600.0
"""Seconds for which a space that was used needs no further look."""


class Engine:
    """One store, one embedder, and what works on them. `recollect.space` has the verbs."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        vectors: ExternalVectors | None = None,
        links: ExternalLinks | None = None,
        gates: Gates | None = None,
        rerankers: Rerankers | None = None,
        recipes: Mapping[str, Recipe] = RECIPES,
    ) -> None:
        self.recipes = recipes
        self.store = store
        self._used: dict[str, float] = {}
        self.vectors = vectors
        self.gates = gates or Gates()
        self.embedding = Embedding(embedder, store)
        self.rememberer = Rememberer(store, self.embedding)
        self.upkeep = Upkeep(store, self.embedding)
        self.hits = HitCounter(store)
        self.scoring = Scoring(store, self.hits.flush)
        self._questions = QueryCache(gated(embedder, self.gates.of("embedder", embedder)))
        self.feeders = {
            index.name: Feeder(store, index, leg, self.gates.presence(index.name))
            for index, leg in ((vectors, VECTOR), (links, GRAPH))
            if index is not None
        }
        rows = self.gates.of_rows(store)
        self.sharing = Sharing(store.ledger, rows)
        self.rerankers = rerankers or Rerankers()
        self._engines = Engines(self.gates, embedder, store, vectors or store, links or store, self.rerankers)
        self.recaller = Recaller(self._engines, self.embedding, self._questions, self.sharing, rows, self.hits)

    async def open(self) -> None:
        await self.store.open()
        with suppress(EmbeddingMismatch):  # raised again by every call that embeds
            await self.embedding.check()  # cached, so that a recall works while the store is down
        opened = await asyncio.gather(*(feeder.open() for feeder in self.feeders.values()), return_exceptions=True)
        for error in filter(None, opened):
            raise error

    async def close(self) -> None:
        """Finish what is running. The caller closes the store and the embedder."""
        await self.embedding.close()
        await self._questions.close()
        await self.rerankers.close()
        await self.scoring.close()
        await self.upkeep.close()
        await self.hits.close()
        await asyncio.gather(*(feeder.close() for feeder in self.feeders.values()))
        await self.gates.close()

    def use(self, embedder: Embedder, generation: Generation) -> None:
        """Embed with another model from now on, in one step: questions under way keep theirs."""
        self.embedding.use(embedder, generation)
        self._questions.embedder = gated(embedder, self.gates.of("embedder", embedder))
        self._engines.embed_with(embedder)

    def feeder(self, index: str) -> Feeder:
        if index not in self.feeders:
            known = f"use one of {', '.join(self.feeders)}" if self.feeders else "none is configured"
            raise InvalidRequest(f"the external index {index!r} does not exist: {known}")
        return self.feeders[index]

    def keep_up(self) -> None:
        """For a server: score every space each hour, and drop old vectors that nobody has wanted back for a week."""
        self.scoring.keep_up(lambda: drop_old(self, older_than=GRACE))

    def first_use(self, space: str) -> None:
        """Finish in the background what an earlier process left undone in a space. Checked again after an hour."""
        now = time.monotonic()
        if self._used.get(space, 0.0) < now:
            if len(self._used) >= SEEN_SPACES:
                self._used.clear()
            self._used[space] = now + LOOK_AGAIN
            self.upkeep.first_use(space)
            self.scoring.on_use(space)

    def wrote(self) -> None:
        """Feed the external indexes now."""
        for feeder in self.feeders.values():
            feeder.wake()
