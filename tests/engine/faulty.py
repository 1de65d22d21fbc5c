"""Engines that fail on demand, and a recall over them with its guards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from recollect.calls.gate import Gate, Gates, gated
from recollect.calls.shared import SharedWork
from recollect.embedders.cache import QueryCache
from recollect.embedders.hashing import HashingEmbedder
from recollect.engine.engine import Engine
from recollect.engine.engines import Engines
from recollect.engine.query import parse_query
from recollect.engine.recall import answer
from recollect.errors import BackendUnavailable
from recollect.legs.question import Question
from recollect.options import RecallOptions
from recollect.ports import Reached, Role, VectorHits
from recollect.space import AsyncSpace
from recollect.stores.sqlite.store import SqliteStore
from recollect.types import Draft, Filter, Generation, Memory, Recall

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

Mode = Literal["well", "down", "frozen", "stubborn"]


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Fault:
    """What ails an engine. A stubborn one does not even heed being cancelled, until it is released."""

    def __init__(self) -> None:
        self.mode: Mode = "well"
        self.asked = 0
        self.under_way = 0
        self.released = asyncio.Event()

    async def strike(self) -> None:
        self.asked += 1
        self.under_way += 1
        try:
            if self.mode == "down":
                raise BackendUnavailable("connection refused", backend="faulty")
            if self.mode == "frozen":
                await asyncio.Event().wait()
            while self.mode == "stubborn" and not self.released.is_set():
                try:
                    await self.released.wait()
                except asyncio.CancelledError:
                    continue
        finally:
            self.under_way -= 1


class FaultyStore(SqliteStore):
    """A store whose rows, vectors and links may fail apart from each other, as if it were a process of its own."""

    in_process = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.rows, self.meaning, self.reading_vectors, self.links = Fault(), Fault(), Fault(), Fault()

    async def get(self, space: str, ids: Iterable[str]) -> dict[str, Memory]:
        await self.rows.strike()
        return await super().get(space, ids)

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
        await self.meaning.strike()
        return await super().search_vectors(
            space, vector, where, limit=limit, ef_search=ef_search, generation=generation
        )

    async def vectors(
        self, space: str, ids: Sequence[str], *, generation: Generation | None = None
    ) -> dict[str, Vector]:
        await self.reading_vectors.strike()
        return await super().vectors(space, ids, generation=generation)

    async def walk(
        self, space: str, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]:
        await self.links.strike()
        return await super().walk(space, seeds, where, depth=depth, limit=limit)


class FaultyEmbedder(HashingEmbedder):
    """The hashing embedder, which fails as it is told, as if it were a process of its own."""

    in_process = False

    def __init__(self) -> None:
        super().__init__()
        self.fault = Fault()

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        await self.fault.strike()
        return await super().embed(texts, space=space, role=role)


DEADLINE = 0.2
"""A lane's, so that tests need not wait long."""
HEALTHY = {"deadline": 30.0}
"""For a lane that must not be late, however busy the machine."""


class Arrangement:
    """A store, an embedder and the guards before them, with a clock of their own."""

    def __init__(self, path: Path, patience: float = DEADLINE) -> None:
        self.clock = Clock()
        self.gates = Gates(partial(Gate, least=patience, clock=self.clock))
        self.store = FaultyStore(path)
        self.embedder = FaultyEmbedder()
        gate = self.gates.of("embedder", self.embedder)
        self.cache = QueryCache(gated(self.embedder, gate))
        self.engines = Engines(self.gates, self.embedder, self.store, self.store, self.store)

    async def recall(self, text: str, **options: Unpack[RecallOptions]) -> Recall:
        """As a client would. Lanes have all the time that they need, unless the test says otherwise."""
        options.setdefault("lanes", dict.fromkeys(("vector", "keyword", "graph"), HEALTHY))
        query = parse_query(text, options)

        async def embed() -> Vector:
            return await self.cache.embed_query(text, space="work")

        question = Question(
            "work",
            text,
            query.where,
            query.fanout,
            embed,
            self.engines.vectors,
            self.engines.words,
            together=SharedWork(self.engines.outside),
        )
        outcome = await answer(self.engines, query, question)
        if isinstance(outcome, Recall):
            return outcome
        if query.recipe.all_failed == "raise":
            raise outcome
        return Recall((), True, outcome.lanes, 0.0, text, query.recipe.name)

    async def remember(self, *texts: str) -> None:
        engine = Engine(self.store, self.embedder)
        work = AsyncSpace(engine, "work")
        await work.remember_many([Draft(text) for text in texts])
        await work.settle()
        await engine.close()


@asynccontextmanager
async def arranged(path: Path, *texts: str, patience: float = DEADLINE) -> AsyncIterator[Arrangement]:
    """An arrangement that holds these texts; what is still under way at the end is ended."""
    arrangement = Arrangement(path, patience)
    await arrangement.store.open()
    try:
        await arrangement.remember(*texts)
        yield arrangement
    finally:
        for fault in (*vars(arrangement.store).values(), arrangement.embedder.fault):
            if isinstance(fault, Fault):
                fault.released.set()
        await arrangement.cache.close()
        await arrangement.gates.close()
        await arrangement.store.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what happens in the background."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  # there is no event for what nobody waits for
            await asyncio.sleep(0.001)
