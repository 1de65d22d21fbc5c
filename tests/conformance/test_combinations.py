"""Each store with each index beside it keeps every spec that asks an index, and finds what the store alone finds.

A store without an index is in `test_sqlite.py` and `test_postgres.py`.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recollect.conformance import SPECS, Spec
from recollect.conformance.samples import HERE, NOW, record
from recollect.indexes.falkordb.index import FalkorIndex
from recollect.indexes.qdrant.index import QdrantIndex
from recollect.ports import Reached, Store
from recollect.stores.sqlite.store import SqliteStore
from recollect.types import Edge, Filter, Generation, Scored
from tests.conformance.combination import combined

if TYPE_CHECKING:
    from recollect.types import Vector

pytest_plugins = ["tests.indexes.qdrant_fixtures"]

NO_INDEX = {"words", "threads", "history", "grants", "tokens", "replies"}
"""Areas whose specs ask neither for vectors nor for walks: no index is asked, so none can make a difference."""
AREAS = {
    "qdrant": {"vectors", "filters", "isolation"},
    "falkordb": {"graph", "filters", "isolation"},
    "qdrant+falkordb": {spec.area for spec in SPECS} - NO_INDEX,
}
"""What is run where: one index alone has its own leg to answer for, and the rest is run with both."""
RUNS = [(beside, spec) for beside, areas in AREAS.items() for spec in SPECS if spec.area in areas]

CLOSE = 1e-3
MODEL = Generation("random", 8)
KINDS = ("fact", "message", "knowledge")
NAMESPACES = ("default", "notes")


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[Store]:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    yield store
    await store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def plain(request: pytest.FixtureRequest) -> Store:
    """An empty store of each kind."""
    store: Store = request.getfixturevalue("sqlite_store" if request.param == "sqlite" else "pg_store")
    return store


@pytest.fixture(params=[*AREAS])
async def store(request: pytest.FixtureRequest, plain: Store) -> AsyncIterator[Store]:
    """The same with empty indexes beside it."""
    vectors = QdrantIndex(request.getfixturevalue("corner"), background=plain) if "qdrant" in request.param else None
    links = None
    if "falkordb" in request.param:
        links = FalkorIndex(request.getfixturevalue("falkordb_url"), visible=plain.visible)
    async with combined(plain, vectors, links) as both:
        yield both


@pytest.mark.parametrize(
    ("store", "spec"),
    [pytest.param(beside, spec, id=f"{beside}.{spec.area}.{spec.name}") for beside, spec in RUNS],
    indirect=["store"],
)
async def test_spec(spec: Spec, store: Store) -> None:
    """What the spec's docstring says holds where an index answers in the store's place."""
    await spec.check(store)


async def live(store: Store, chance: random.Random) -> list[str]:
    """Memories that come, change, are linked and go, as chance will have it; the ids of those that there are."""
    await store.set_generation(MODEL)
    ids = [f"m{number:03}" for number in range(120)]
    await store.add(HERE, [record(id, vector=some_vector(chance), **some_fields(chance)) for id in ids])
    for _ in range(200):
        one, other = chance.sample(ids, 2)
        await store.link(HERE, [Edge(one, other, chance.choice("xyz"), chance.uniform(0.05, 1.0))])
    for id in chance.sample(ids, 20):
        await store.update(HERE, id, some_fields(chance), now=NOW)
    for id in chance.sample(ids, 10):
        kept = (await store.get(HERE, [id]))[id]
        await store.put_vectors(HERE, [(kept, some_vector(chance))])
    for old, new in zip(ids[:6:2], ids[1:6:2], strict=True):
        await store.supersede(HERE, old, new, now=NOW)
    gone = chance.sample(ids[6:], 15)
    await store.forget(HERE, gone)
    return [id for id in ids if id not in gone]


def some_vector(chance: random.Random) -> Vector:
    vector = np.array([chance.gauss() for _ in range(MODEL.dimensions)], np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def some_fields(chance: random.Random) -> dict[str, Any]:
    tags = tuple(tag for tag in "abc" if chance.random() < 0.5)
    return {"kind": chance.choice(KINDS), "namespace": chance.choice(NAMESPACES), "tags": tags}


def some_filters(chance: random.Random) -> Iterator[Filter]:
    for _ in range(25):
        yield Filter(
            kinds=tuple(chance.sample(KINDS, chance.randrange(3))),
            namespaces=tuple(chance.sample(NAMESPACES, chance.randrange(2))),
            tags=tuple(chance.sample("abc", chance.randrange(3))),
            include_superseded=chance.random() < 0.5,
            now=NOW,
        )


def assert_near(expected: Sequence[Scored], found: Sequence[Scored]) -> None:
    """The same memories in the same order, and their scores as good as equal. FalkorDB tells 15 digits of a number, so
    what ties for one may not for the other.
    """
    expected, found = (sorted(hits, key=lambda hit: (-round(hit.score, 9), hit.id)) for hits in (expected, found))
    assert [hit.id for hit in found] == [hit.id for hit in expected]
    assert all(abs(one.score - other.score) < CLOSE for one, other in zip(expected, found, strict=True))


def scored(reached: Sequence[Reached]) -> list[Scored]:
    return [Scored(hit.id, hit.strength) for hit in reached]


@pytest.mark.parametrize("seed", range(3))
async def test_an_index_finds_what_the_store_alone_finds(store: Store, plain: Store, seed: int) -> None:
    """On memories that were written, changed, linked and forgotten at random: the nearest under random filters, those
    nearest to a memory, and walks of every depth.
    """
    chance = random.Random(seed)
    ids = await live(store, chance)
    for where in some_filters(chance):
        question, limit = some_vector(chance), chance.choice((1, 5, 200))
        expected = await plain.search_vectors(HERE, question, where, limit=limit)
        assert_near(expected.hits, (await store.search_vectors(HERE, question, where, limit=limit)).hits)
        seeds, depth = chance.sample(ids, 3), chance.choice((1, 2, 3))
        walked = await plain.walk(HERE, seeds, where, depth=depth, limit=limit)
        assert_near(scored(walked), scored(await store.walk(HERE, seeds, where, depth=depth, limit=limit)))
    some = chance.sample(ids, 20)
    nearest = await store.nearest_to(HERE, some, limit=3)
    wanted = await plain.nearest_to(HERE, some, limit=3)
    assert nearest.keys() == wanted.keys()
    for id, hits in wanted.items():
        assert_near(hits[:3], nearest[id][:3])
