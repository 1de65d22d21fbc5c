"""What the tests of the Qdrant index share: memories, short questions, and an administrator's client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from qdrant_client import AsyncQdrantClient

from recollect.conformance.samples import ALL, HERE, MODEL, memory
from recollect.indexes.qdrant.address import parse
from recollect.indexes.qdrant.index import QdrantIndex
from recollect.ports import Change
from recollect.types import Filter
from tests.indexes.qdrant_process import QdrantProcess

if TYPE_CHECKING:
    from recollect.types import Vector

KEY = "sesame"


@asynccontextmanager
async def using(url: str, **settings: Any) -> AsyncIterator[QdrantIndex]:
    index = QdrantIndex(url, **settings)
    await index.use(MODEL)
    try:
        yield index
    finally:
        await index.close()


def change(id: str, vector: Vector | None = None, **fields: Any) -> Change:
    return Change(id, memory(id, **fields), vector)


async def nearest(index: QdrantIndex, vector: Vector, where: Filter = ALL, limit: int = 10) -> list[str]:
    return [hit.id for hit in (await index.search_vectors(HERE, vector, where, limit=limit)).hits]


async def held(index: QdrantIndex, space: str = HERE) -> list[str]:
    return sorted([id async for id in index.ids(space)])


async def collections(server: QdrantProcess, url: str) -> list[str]:
    """The collections of a test on a server."""
    prefix = parse(url).prefix
    async with administrator(server) as client:
        return [one.name for one in (await client.get_collections()).collections if one.name.startswith(f"{prefix}_")]


@asynccontextmanager
async def administrator(server: QdrantProcess) -> AsyncIterator[AsyncQdrantClient]:
    """The client itself, for what an administrator does."""
    client = AsyncQdrantClient(server.url.removeprefix("qdrant+"), check_compatibility=False)
    yield client
    await client.close()
