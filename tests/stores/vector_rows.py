"""Spaces full of vectors, written past the store: what a search does with them depends on little else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.ports import VectorHits
from recollect.settings import PostgresSettings
from recollect.stores.postgres import vectors
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.connections import Connections
from recollect.stores.postgres.generations import GenerationRow
from recollect.stores.postgres.vector_index import IndexState, Limits, look
from recollect.stores.postgres.vectors import VectorSearch
from recollect.types import Filter, Generation, Scored

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

WIDTHS = (1, 2, 10, 100)
"""Every n-th memory has the tag `every n`."""
QUICK = Limits(index_rows=2_000, load_rows=1_000, state_seconds=0, calm_seconds=0.01)
MEMORIES = """
    INSERT INTO memories (
        space, row, id, hash, namespace, kind, text, title, tags, source, thread, place, metadata, created_at,
        updated_at, embedding
    )
    SELECT %(space)s, n, lpad(n::text, 6, '0'), sha256(n::text::bytea), 'default', 'fact', 'text ' || n, '',
           ARRAY(SELECT 'every ' || w FROM unnest(%(widths)s::integer[]) AS w WHERE (n - %(first)s) %% w = 0), '',
           CASE WHEN n %% 2 = 0 THEN 'thread' END, n, '{}', now(), now(), 'ready'
    FROM generate_series(%(first)s::bigint, %(first)s + %(count)s - 1) AS n
"""


class Spaces:
    """A store's connections and vectors, and spaces that are filled at once. Rows and ids count from `first`."""

    def __init__(self, connections: Connections, limits: Limits = QUICK) -> None:
        self.connections = connections
        self.search = VectorSearch(connections.autocommit, limits)
        self.generation = GenerationRow(1, Generation("none", 0), "vector", "current", None)

    async def begin(self, dimensions: int, storage: str = "vector") -> None:
        """Set the generation of a store that has none."""
        wanted = Generation("test", dimensions)
        await self.connections.write(lambda db: vectors.set_generation(db, wanted, storage))
        await self.learn()

    async def learn(self) -> None:
        known = await self.connections.read(vectors.generation)
        assert known
        self.generation = known

    async def fill(self, space: int, given: Vectors, first: int = 1) -> None:
        """Memories with these vectors, one for each."""
        values = {"space": space, "first": first, "count": len(given), "widths": list(WIDTHS)}
        pairs = [(first + n, vector) for n, vector in enumerate(given)]

        async def work(db: Database) -> None:
            await db.execute(
                "INSERT INTO spaces OVERRIDING SYSTEM VALUE VALUES (%s, %s) ON CONFLICT DO NOTHING",
                (space, f"space {space}"),
            )
            await db.execute(MEMORIES, values)
            tags = "INSERT INTO tags SELECT space, unnest(tags), row FROM memories WHERE space = %(space)s "
            await db.execute(tags + "AND row BETWEEN %(first)s AND %(first)s + %(count)s - 1", values)
            await vectors.put(db, space, self.generation, pairs)
            await db.execute(
                "INSERT INTO sizes (space, memories, length, changes) VALUES (%(space)s, %(count)s, 0, 0)", values
            )

        await self.connections.write(work, space=space)

    async def nearest(
        self,
        vector: Vector,
        where: Filter = Filter(),  # noqa: B008 (a Filter is frozen)
        *,
        space: int = 1,
        limit: int = 10,
        ef_search: int | None = None,
    ) -> VectorHits:
        return await self.connections.read(
            lambda db: self.search.search(db, space, self.generation, vector, where, limit, ef_search), space=space
        )

    async def nearest_to(self, ids: list[str], limit: int, space: int = 1) -> dict[str, list[Scored]]:
        return await self.connections.read(
            lambda db: self.search.nearest_to(db, space, self.generation, ids, limit), space=space
        )

    async def settle(self, space: int = 1) -> None:
        """Wait for the index."""
        while await self.connections.read(lambda db: self.search.awaits_index(db, space, self.generation), space=space):
            await self.search.settle()

    async def index(self) -> IndexState:
        return await self.connections.read(lambda db: look(db, self.generation))

    async def has_index(self) -> bool:
        """Whether there is one, valid or not."""
        return (await self.index()).name is not None

    async def has_none(self) -> bool:
        return not await self.has_index()

    async def is_indexed(self) -> bool:
        return (await self.index()).ready

    async def run(self, sql: str) -> list[Any]:
        async with self.connections.autocommit() as db:
            cursor = await db.execute(sql)
            return await cursor.fetchall() if cursor.description else []


@asynccontextmanager
async def opened(dsn: str, settings: PostgresSettings, limits: Limits = QUICK) -> AsyncIterator[Spaces]:
    """The spaces of a store, made if there is none."""
    connections = Connections(dsn, settings)
    await connections.open(create=True)
    spaces = Spaces(connections, limits)
    try:
        yield spaces
    finally:
        await spaces.search.close()
        await connections.close()


async def until(holds: Callable[[], Awaitable[object]]) -> None:
    """Wait for what happens on the server, a minute at most."""
    async with asyncio.timeout(60):
        while not await holds():  # noqa: ASYNC110 (nobody else in this process knows)
            await asyncio.sleep(0.05)


def clustered(count: int, dimensions: int, seed: int = 7) -> Vectors:
    """Vectors that lie in groups, as those of texts do, each of length 1."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(200, dimensions))
    found = centres[random.integers(0, 200, count)] + random.normal(0, 0.6, (count, dimensions))
    unit: Vectors = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
    return unit


def best(given: Vectors, vector: Vector, count: int = 10, *, first: int = 1, nth: int = 1) -> list[str]:
    """The ids of the nearest among every n-th of these vectors, found by comparing all."""
    return [f"{first + nth * int(n):06}" for n in np.argsort(-(given[::nth] @ vector), kind="stable")[:count]]
