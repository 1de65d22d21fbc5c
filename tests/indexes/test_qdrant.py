"""Qdrant as an index: what it holds, and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient

from recollect.conformance.samples import ALL, HERE, MODEL, memory, raises, unit
from recollect.errors import BackendError
from recollect.indexes.qdrant.index import QdrantIndex
from recollect.ports import Change
from recollect.stores.sqlite.store import SqliteStore
from recollect.types import Filter, Generation, Record
from tests.indexes.qdrant_samples import change, held, nearest, using

pytest_plugins = ["tests.indexes.qdrant_fixtures"]

# What it holds


async def test_a_memory_with_a_vector_is_held(index: QdrantIndex) -> None:
    """One without a vector waits in the store, and is none of the index's business."""
    await index.apply(HERE, [change("a", unit(1)), change("b")])
    assert await held(index) == ["a"]
    assert await index.count(HERE) == 1
    assert await index.spaces() == [HERE]


async def test_applying_twice_does_no_harm(index: QdrantIndex) -> None:
    """The same changes again leave the same state."""
    changes = [change("a", unit(1)), change("b", unit(0, 1)), Change("c", None)]
    for _ in range(2):
        await index.apply(HERE, changes)
        assert await held(index) == ["a", "b"]
        assert await nearest(index, unit(1)) == ["a", "b"]


async def test_the_later_state_counts(index: QdrantIndex) -> None:
    """Within one call and between calls, the last word on a memory is what is held."""
    await index.apply(HERE, [change("a", unit(1), kind="old"), change("b", unit(1)), Change("b", None)])
    await index.apply(HERE, [change("a", unit(0, 1), kind="newer"), change("a", unit(0, 0, 1), kind="new")])
    assert await held(index) == ["a"]
    assert await nearest(index, unit(0, 0, 1), Filter(kinds=("new",))) == ["a"]
    assert await nearest(index, unit(1), Filter(kinds=("old", "newer"))) == []


async def test_what_is_gone_or_has_no_vector_any_more_is_not_held(index: QdrantIndex) -> None:
    """A forgotten memory leaves the index, and so does one whose text changed and that is not embedded yet."""
    await index.apply(HERE, [change("a", unit(1)), change("b", unit(1)), change("c", unit(1))])
    await index.apply(HERE, [Change("a", None), change("b"), Change("never there", None)])
    assert await held(index) == ["c"]


async def test_many_are_held(index: QdrantIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than one request holds: all are written, listed, counted, fetched and removed."""
    for limit, points in {"_WRITTEN": 16, "_FETCHED": 30, "_LISTED": 25}.items():
        monkeypatch.setattr(f"recollect.indexes.qdrant.index.{limit}", points)
    ids = [f"{number:04}" for number in range(70)]
    await index.apply(HERE, [change(id, unit(1, number / 100)) for number, id in enumerate(ids)])
    assert await held(index) == ids
    assert await index.count(HERE) == len(ids)
    assert (await index.vectors(HERE, ids)).keys() == {*ids}
    await index.apply(HERE, [Change(id, None) for id in ids])
    assert await held(index) == []
    assert await index.spaces() == []


async def test_spaces_know_nothing_of_each_other(index: QdrantIndex) -> None:
    """The same id in two spaces is two memories, and nothing reaches the other space."""
    await index.apply("one", [change("same", unit(1)), change("mine", unit(1, 1))])
    await index.apply("two", [change("same", unit(0, 1))])
    assert np.allclose((await index.vectors("one", ["same"]))["same"], unit(1))
    assert await index.vectors("two", ["mine"]) == {}
    assert [hit.id for hit in (await index.search_vectors("two", unit(1), ALL, limit=9)).hits] == ["same"]
    assert await index.nearest_to("two", ["same", "mine"], limit=9) == {"same": []}
    await index.apply("two", [Change("same", None), Change("mine", None)])
    assert await held(index, "one") == ["mine", "same"]


async def test_names_are_only_names(index: QdrantIndex) -> None:
    """Quotes, braces, dots, slashes, other scripts and what looks like an id of the engine: all come back unchanged."""
    names = [
        'say "hi"',
        "it's",
        "{a: 1}",
        "a.b[]",
        "../x",
        "日本語",
        "🦆",
        "0123456789abcdef0123456789ABCDEF",
        "null",
        "7",
    ]
    for space in names:
        await index.apply(space, [change(id, unit(1), namespace=id, tags=(id,)) for id in names])
    assert await index.spaces() == sorted(names)
    for name in names:
        assert await held(index, name) == sorted(names)
        where = Filter(namespaces=(name,), tags=(name,))
        assert [hit.id for hit in (await index.search_vectors(name, unit(1), where, limit=9)).hits] == [name]


async def test_two_prefixes_share_a_server(corner: str) -> None:
    """Two stores in one engine do not see each other's memories."""
    async with using(f"{corner}a") as one, using(f"{corner}b") as other:
        await one.apply(HERE, [change("a", unit(1))])
        assert await other.count(HERE) == 0
        assert await other.spaces() == []


async def test_it_is_still_there_after_closing(qdrant_url: str) -> None:
    """Another client finds what the first one wrote, under the same generation and under no other."""
    async with using(qdrant_url) as index:
        await index.apply(HERE, [change("a", unit(1))])
    async with using(qdrant_url) as index:
        assert await held(index) == ["a"]
        await index.use(Generation("another", MODEL.dimensions))
        assert await held(index) == []
        await index.use(MODEL)
        assert await held(index) == ["a"]


async def test_before_a_model_is_known_it_is_empty(qdrant_url: str) -> None:
    """Every question has an answer; only a vector cannot be taken."""
    index = QdrantIndex(qdrant_url)
    await index.open()
    assert (await index.search_vectors(HERE, unit(1), ALL, limit=3)).hits == []
    assert await index.vectors(HERE, ["a"]) == await index.nearest_to(HERE, ["a"], limit=3) == {}
    assert (await index.count(HERE), await held(index), await index.spaces()) == (0, [], [])
    await index.apply(HERE, [change("a"), Change("b", None)])
    with raises(BackendError, "which model"):
        await index.apply(HERE, [change("a", unit(1))])
    await index.close()


# What it finds


async def test_ties_go_by_id(index: QdrantIndex) -> None:
    """The same score is ordered by id, also at the limit, however many there are."""
    await index.apply(HERE, [change(f"{number:02}", unit(1)) for number in reversed(range(40))])
    assert await nearest(index, unit(1), limit=3) == ["00", "01", "02"]


async def test_scores_are_plain_cosines(index: QdrantIndex) -> None:
    """As the SQL stores give them, also below 0: a recipe clamps where it wants to."""
    directions = {"a": unit(-1), "b": unit(-1, 1), "c": unit(0, 1), "d": unit(1)}
    await index.apply(HERE, [change(id, vector) for id, vector in directions.items()])
    hits = (await index.search_vectors(HERE, unit(1), ALL, limit=9)).hits
    assert [(hit.id, round(hit.score, 3)) for hit in hits] == [("d", 1.0), ("c", 0.0), ("b", -0.707), ("a", -1.0)]


async def test_it_says_which_hits_stand_in_a_thread(index: QdrantIndex) -> None:
    """The vector leg looks for neighbours of those alone."""
    await index.apply(
        HERE, [change("a", unit(1), thread="t"), change("b", unit(1)), change("c", unit(0, 1), thread="t")]
    )
    assert (await index.search_vectors(HERE, unit(1), ALL, limit=2)).threaded == frozenset("a")


async def test_the_nearest_to_a_memory_are_others(index: QdrantIndex) -> None:
    """Whatever their state, best first, without itself; a memory that is not held has none."""
    await index.apply(
        HERE,
        [
            change("east", unit(1)),
            change("between", unit(1, 1), superseded_by="x"),
            *(change(id, unit(0, 1)) for id in ("south", "north")),
        ],
    )
    found = await index.nearest_to(HERE, ["east", "missing"], limit=2)
    assert {id: [hit.id for hit in hits] for id, hits in found.items()} == {"east": ["between", "north", "south"]}


async def test_ef_search_reaches_qdrant(index: QdrantIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `hnsw_ef`, more or less than by itself; the few that are here are compared exactly, whatever it is."""
    await index.apply(HERE, [change("a", unit(1)), change("b", unit(0, 1))])
    asked: list[int | None] = []
    query = AsyncQdrantClient.query_points

    async def recorded(self: AsyncQdrantClient, *given: Any, **how: Any) -> Any:
        asked.append(how["search_params"].hnsw_ef)
        return await query(self, *given, **how)

    monkeypatch.setattr(AsyncQdrantClient, "query_points", recorded)
    for ef_search in (None, 64, 1):
        found = await index.search_vectors(HERE, unit(1), ALL, limit=2, ef_search=ef_search)
        assert [hit.id for hit in found.hits] == ["a", "b"]
    assert asked == [256, 64, 1]


async def test_random_vectors_have_the_neighbours_of_the_sql_store(index: QdrantIndex, tmp_path: Path) -> None:
    """`nearest_to` and `vectors` agree with SQLite's on the same memories."""
    vectors = np.random.default_rng(2).standard_normal((80, MODEL.dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    known = {f"{number:02}": vector for number, vector in enumerate(vectors)}
    await index.apply(HERE, [change(id, vector) for id, vector in known.items()])
    store = SqliteStore(tmp_path / "memory.db")
    await store.open()
    await store.set_generation(MODEL)
    await store.add(HERE, [Record(memory(id), vector) for id, vector in known.items()])
    expected, found = [await each.nearest_to(HERE, [*known], limit=3) for each in (store, index)]
    assert {id: [hit.id for hit in hits[:3]] for id, hits in found.items()} == {
        id: [hit.id for hit in hits[:3]] for id, hits in expected.items()
    }
    for id, vector in (await index.vectors(HERE, [*known])).items():
        assert vector.dtype == np.float32
        assert np.allclose(vector, known[id], atol=1e-6)
    await store.close()
