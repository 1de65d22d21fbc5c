"""Material for the tests of FalkorDB: changes, short to write, and what an index makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.ports import Change
from recollect.types import Edge, Filter, Memory
from tests.falkordb_server import needed

needed("falkordb")

from recollect.indexes.falkordb.index import FalkorIndex  # noqa: E402

__all__ = ["ALL", "FalkorIndex", "around", "everything", "gone", "held", "there"]

ALL = Filter()


async def everything(space: str, ids: Sequence[str], where: Filter) -> set[str]:
    """The filter of a store in which every memory is there and passes."""
    return set(ids)


def there(id: str, *links: Edge) -> Change:
    return Change(id, Memory(id, "here", id), None, links)


def gone(id: str) -> Change:
    return Change(id, None)


async def around(index: FalkorIndex, *seeds: str, space: str = "here", depth: int = 1, limit: int = 5000) -> list[str]:
    """Ids within some steps of some seeds, best first."""
    return [hit.id for hit in await index.walk(space, seeds, ALL, depth=depth, limit=limit)]


async def held(index: FalkorIndex, space: str = "here") -> list[str]:
    """The ids that an index holds, which must be as many as it says."""
    found = sorted([id async for id in index.ids(space)])
    assert await index.count(space) == len(found)
    return found
