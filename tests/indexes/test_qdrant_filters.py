"""Filters inside Qdrant mean what they mean in the SQL stores: on random memories, every engine finds the same."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import models

from recollect.indexes.qdrant import points
from recollect.indexes.qdrant.collections import INDEXES, graphs
from recollect.indexes.qdrant.filters import conditions
from recollect.indexes.qdrant.index import QdrantIndex, effort
from recollect.ports import Change
from recollect.stores.sqlite.store import SqliteStore
from recollect.types import Filter, Generation, Memory, Record, Scored
from tests.indexes.qdrant_process import QdrantProcess

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

    Search: TypeAlias = Callable[[Vector, Filter], Awaitable[Sequence[Scored]]]

SPACE = 'the "first" {space}'
MODEL = Generation("random", 8)
NOW = datetime(2024, 5, 3, 12, 30, 15, 123456, tzinfo=UTC)
HOUR = timedelta(hours=1)
MEMORIES = 160
FOUND = 20
CLOSE = 1e-3
NAMES = ["default", 'a"b', "x' OR '1'='1", "{braces}", "日本語", "straße", "STRASSE", "a b", "\\", "*"]
SOURCES = [
    "git/a_b%", "git/axb%c", "git/a_b", "Git/a_b", "", "git/\U0010ffffx", "gi", "caf\u00e9/1", "cafe\u0301/1", "git/*",
    'say "hi"/{x}', "日本/語", "git /a", " git/a", "git/" + "long/" * 300,
]  # fmt: skip
TIMES = [
    datetime.min, datetime.max, NOW, NOW - timedelta(microseconds=1), NOW + timedelta(microseconds=1),
    *(NOW + hours * HOUR for hours in range(-5, 6)),
]  # fmt: skip
WIDTHS = {"all": 1.0, "most": 0.7, "half": 0.5, "fifth": 0.2}


def some_memory(chance: random.Random, number: int) -> Memory:
    return Memory(
        f"{number:04}",
        SPACE,
        f"memory {number}",
        namespace=chance.choice(NAMES),
        kind=chance.choice(NAMES),
        tags=tuple(chance.sample(NAMES, chance.randint(0, 4))),
        source=chance.choice(SOURCES),
        thread=chance.choice([None, *NAMES[:3]]),
        created_at=chance.choice(TIMES),
        updated_at=NOW,
        occurred_at=chance.choice([None, *TIMES]),
        expires_at=chance.choice([None, None, NOW, NOW - HOUR, NOW + HOUR]),
        superseded_by=chance.choice([None, None, None, "another"]),
        quality=chance.choice([None, 0.0, 0.2, 0.5, 0.5000001, 1.0]),
    )


def some_value(chance: random.Random, part: str) -> Any:
    """A value for one part of a filter, most often one that some memories pass."""
    source = chance.choice(SOURCES[:-1])
    values: dict[str, Any] = {
        "kinds": tuple(chance.sample([*NAMES, "none"], chance.randint(1, 5))),
        "namespaces": tuple(chance.sample([*NAMES, "none"], chance.randint(1, 5))),
        "tags": tuple(chance.sample(NAMES, chance.randint(1, 2))),
        "source_prefix": source[: chance.randint(1, 6)],
        "thread": chance.choice([*NAMES[:3], "none"]),
        "since": chance.choice(TIMES),
        "until": chance.choice(TIMES),
        "min_quality": chance.choice([0.0, 0.5, 0.5000001, 1.0]),
        "include_superseded": True,
        "include_expired": True,
    }
    return values[part]


PARTS = ("kinds", "namespaces", "tags", "source_prefix", "thread", "since", "until", "min_quality")
SWITCHES = ("include_superseded", "include_expired")


def filters(chance: random.Random) -> Iterator[Filter]:
    """Every part of a filter by itself several times, and many together."""
    for part in (*PARTS, *SWITCHES):
        for _ in range(1 if part in SWITCHES else 5):
            yield Filter(now=NOW, **{part: some_value(chance, part)})
    for _ in range(60):
        together = [*chance.sample(PARTS, chance.randint(2, 3)), *chance.sample(SWITCHES, chance.randint(0, 2))]
        yield Filter(now=NOW, **{part: some_value(chance, part) for part in together})
    yield Filter(now=NOW)
    yield Filter()


class World:
    """Random memories with their vectors, the same each time, and what the SQLite store finds among them."""

    def __init__(self) -> None:
        self.chance = random.Random(11)
        self.memories = [some_memory(self.chance, number) for number in range(MEMORIES)]
        self.vectors = random_vectors(MEMORIES, MODEL.dimensions)

    async def check(self, folder: Path, search: Search) -> None:
        store = SqliteStore(folder / "memory.db")
        await store.open()
        await store.set_generation(MODEL)
        await store.add(SPACE, [Record(*one) for one in zip(self.memories, self.vectors, strict=True)])
        passed = 0
        for number, where in enumerate(filters(self.chance)):
            vector = self.vectors[number]
            expected = (await store.search_vectors(SPACE, vector, where, limit=FOUND)).hits
            assert_same(expected, await search(vector, where), where)
            passed += bool(expected)
        await store.close()
        assert passed > 60, "most of the filters should let something through"


def random_vectors(count: int, dimensions: int) -> Vectors:
    vectors = np.random.default_rng(5).standard_normal((count, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def assert_same(expected: Sequence[Scored], found: Sequence[Scored], where: Filter) -> None:
    scores = dict(found)
    assert scores.keys() == dict(expected).keys(), where
    assert all(abs(scores[id] - score) < CLOSE for id, score in expected), where
    assert [*found] == sorted(found, key=lambda hit: (-hit.score, hit.id)), where


@asynccontextmanager
async def searching(url: str, world: World) -> AsyncIterator[Search]:
    """An index that holds the memories, and in another space the same ones with other vectors."""
    index = QdrantIndex(url)
    await index.use(MODEL)
    for space, vectors in ((SPACE, world.vectors), ("elsewhere", world.vectors[::-1])):
        memories = [replace(memory, space=space) for memory in world.memories]
        await index.apply(space, [Change(one.id, one, vector) for one, vector in zip(memories, vectors, strict=True)])

    async def search(vector: Vector, where: Filter) -> Sequence[Scored]:
        return (await index.search_vectors(SPACE, vector, where, limit=FOUND)).hits

    try:
        yield search
    finally:
        await index.close()


async def test_the_local_mode_finds_what_the_sql_store_finds(tmp_path: Path) -> None:
    """Under every filter and many together, the same memories with the same scores."""
    world = World()
    async with searching(f"qdrant+local:///{tmp_path / 'qdrant'}", world) as search:
        await world.check(tmp_path, search)


async def test_a_server_finds_what_the_sql_store_finds(tmp_path: Path) -> None:
    """The same over HTTP: filters arrive as they were meant."""
    world, server = World(), QdrantProcess(tmp_path / "qdrant")
    server.start()
    try:
        async with searching(server.url, world) as search:
            await world.check(tmp_path, search)
    finally:
        server.kill()


@pytest.fixture
def edge() -> Any:
    """Qdrant's own engine, in this process."""
    if os.environ.get("CI"):
        return import_module("qdrant_edge")
    return pytest.importorskip("qdrant_edge", reason="the wheel qdrant-edge-py is not installed")


class Shard:
    """One collection of Qdrant's own engine, made as ours are."""

    def __init__(self, edge: Any, folder: Path, dimensions: int, *, scanned_kb: int) -> None:
        self._edge = edge
        made = graphs(dimensions)
        graph = edge.HnswIndexConfig(
            m=made.m, payload_m=made.payload_m, ef_construct=made.ef_construct, full_scan_threshold=scanned_kb
        )
        config = edge.EdgeConfig(
            vectors={"": edge.EdgeVectorParams(dimensions, edge.Distance.Cosine)},
            hnsw_config=graph,
            optimizers=edge.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=scanned_kb),
        )
        self._shard = edge.EdgeShard.create(str(folder), config)
        for field, params in INDEXES.items():
            self._shard.update(edge.UpdateOperation.create_field_index(field, self._params(field, params)))

    def close(self) -> None:
        self._shard.close()

    def put(self, memories: Sequence[Memory], vectors: Vectors) -> None:
        batch = [
            self._edge.Point(
                points.point_id(SPACE, memory.id), vector.tolist(), _without_bools(points.payload(SPACE, memory))
            )
            for memory, vector in zip(memories, vectors, strict=True)
        ]
        self._shard.update(self._edge.UpdateOperation.upsert_points(batch))

    def optimize(self) -> int:
        """Build the graphs; how many vectors are in them."""
        self._shard.optimize()
        return int(self._shard.info().indexed_vectors_count)

    async def search(self, vector: Vector, where: Filter, limit: int = FOUND) -> Sequence[Scored]:
        asked = effort(limit)
        assert asked.acorn
        acorn = self._edge.AcornSearchParams(enable=asked.acorn.enable, max_selectivity=asked.acorn.max_selectivity)
        request = self._edge.QueryRequest(
            limit=limit,
            query=self._edge.Query.Nearest(vector.tolist()),
            filter=self._filter(conditions(SPACE, where)),
            with_payload=True,
            params=self._edge.SearchParams(hnsw_ef=asked.hnsw_ef, acorn=acorn),
        )
        found = [Scored(hit.payload["id"], round(hit.score, 6)) for hit in self._shard.query(request)]
        return sorted(found, key=lambda hit: (-hit.score, hit.id))

    def _params(self, field: str, params: Any) -> Any:
        if field == points.SUPERSEDED:
            return self._edge.KeywordIndexParams()
        given = {name: value for name, value in params.model_dump().items() if value is not None and name != "type"}
        return getattr(self._edge, type(params).__name__)(**given)

    def _filter(self, asked: models.Filter) -> Any:
        parts = {
            name: [self._condition(one) for one in getattr(asked, name) or []]
            for name in ("must", "should", "must_not")
        }
        return self._edge.Filter(**{name: found or None for name, found in parts.items()})

    def _condition(self, asked: Any) -> Any:
        if isinstance(asked, models.Filter):
            return self._filter(asked)
        if isinstance(asked, models.IsEmptyCondition):
            return self._edge.IsEmptyCondition(asked.is_empty.key)
        if asked.match is not None:
            given = _without_bools(asked.match.model_dump())
            return self._edge.FieldCondition(asked.key, match=getattr(self._edge, type(asked.match).__name__)(**given))
        given = {name: value for name, value in asked.range.model_dump(mode="json").items() if value is not None}
        kind = self._edge.RangeFloat if isinstance(asked.range, models.Range) else self._edge.RangeDateTime
        return self._edge.FieldCondition(asked.key, range=kind(**given))


def _without_bools(fields: dict[str, Any]) -> dict[str, Any]:
    """The engine's binding takes True for 1 in a condition, and not in a payload."""
    return {name: str(value) if isinstance(value, bool) else value for name, value in fields.items()}


async def test_the_engine_finds_what_the_sql_store_finds(edge: Any, tmp_path: Path) -> None:
    """Our conditions and our payload indexes mean the same to Qdrant's own engine."""
    world = World()
    with closing(Shard(edge, tmp_path / "shard", MODEL.dimensions, scanned_kb=10_000)) as shard:
        shard.put(world.memories, world.vectors)
        await world.check(tmp_path, shard.search)


async def test_graphs_find_the_nearest_behind_any_filter(edge: Any, tmp_path: Path) -> None:
    """Where a filter passes too many to compare them all, at least 99 of 100 nearest are found, however wide it is."""
    count, dimensions, limit = 10_000, 32, 10
    vectors = random_vectors(count, dimensions)
    chance = random.Random(3)
    kinds = chance.choices([*WIDTHS], [*WIDTHS.values()], k=count)
    memories = [Memory(f"{n:05}", SPACE, "", kind=kind, created_at=NOW) for n, kind in enumerate(kinds)]
    with closing(Shard(edge, tmp_path / "shard", dimensions, scanned_kb=20)) as shard:
        shard.put(memories, vectors)
        assert shard.optimize() == count
        for passing in ((), ("all", "most"), ("half",), ("fifth",)):
            rows = np.flatnonzero([not passing or kind in passing for kind in kinds])
            kept = 0
            for question in vectors[:40]:
                best = rows[np.argsort(-(vectors[rows] @ question))][:limit]
                hits = await shard.search(question, Filter(kinds=passing, now=NOW), limit)
                kept += len({f"{row:05}" for row in best} & {hit.id for hit in hits})
            assert kept >= 0.99 * 40 * limit, f"{40 * limit - kept} of the nearest were lost behind {passing}"


@given(
    st.text(min_size=1),
    st.builds(
        Filter,
        kinds=st.tuples(st.text()) | st.just(()),
        tags=st.tuples(st.text(), st.text()) | st.just(()),
        source_prefix=st.text(),
        thread=st.none() | st.text(),
        since=st.none() | st.datetimes(),
        include_superseded=st.booleans(),
    ),
)
def test_the_space_is_always_asked_for(space: str, where: Filter) -> None:
    """Whatever a filter says, its first condition is the space, and nothing in it is an alternative to that."""
    asked = conditions(space, where)
    assert isinstance(asked.must, list)
    assert asked.must[0] == models.FieldCondition(key="space", match=models.MatchValue(value=space))
    assert asked.should is None


def test_all_tags_are_asked_for() -> None:
    """Each tag is a condition of its own."""
    asked = conditions("s", Filter(tags=("x", "y"), include_superseded=True, include_expired=True))
    assert isinstance(asked.must, list)
    assert asked.must[1:] == [
        models.FieldCondition(key="tags", match=models.MatchValue(value=tag)) for tag in ("x", "y")
    ]


def test_every_filtered_field_has_an_index() -> None:
    """No filter makes the engine read payloads one by one; the space is the tenant."""
    everything = Filter(("k",), ("n",), ("t",), "s", "t", NOW, NOW, 0.5, now=NOW)
    assert INDEXES.keys() == {*_keys(conditions("s", everything))}
    assert INDEXES["space"].is_tenant  # type: ignore[union-attr]


def _keys(asked: Any) -> Iterator[str]:
    if isinstance(asked, models.Filter):
        for one in [*(asked.must or []), *(asked.should or [])]:
            yield from _keys(one)
    elif isinstance(asked, models.FieldCondition):
        yield asked.key
