"""Walking links in SQL, compared with the walk of the SQLite store."""

from __future__ import annotations

import asyncio
from itertools import count, pairwise

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.conformance.samples import memory, record
from recollect.errors import NotFound
from recollect.ports import Reached
from recollect.ranking import paths
from recollect.stores.contents import Space
from recollect.stores.named_sql import read
from recollect.stores.postgres.store import PostgresStore
from recollect.stores.sqlite import graph as sqlite_graph
from recollect.types import Edge, Filter, Record, Scored

NODES = "abcdefg"
NODE = st.sampled_from(NODES)
STRENGTH = st.sampled_from([0.1, 0.25, 0.5, 0.9, 1.0])
EDGE = st.builds(Edge, NODE, NODE, st.sampled_from("xy"), STRENGTH).filter(lambda edge: edge.source != edge.target)
EDGES = st.lists(EDGE, max_size=16)
SEEDS = st.sets(NODE, min_size=1)
MEMORY = """
INSERT INTO memories (
    space, id, hash, namespace, kind, text, title, tags, source, metadata, created_at, updated_at, embedding
) VALUES (1, ?1, CAST(?1 AS BLOB), '', '', '', '', '[]', '', '{}', 0, 0, 'pending')
"""
SPACES = (f"space {number}" for number in count(1))
ONE_STORE = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""Examples share a store, each in a space of its own."""


def walked_in_sqlite(edges: list[Edge], seeds: set[str], depth: int) -> list[Reached]:
    db = apsw.Connection(":memory:")
    db.execute(read("recollect.stores.sqlite.store", "schema.sql"))
    db.executemany(MEMORY, NODES)
    sqlite_graph.link(db, Space(1, "here"), edges)
    return [*sqlite_graph.walk(db, Space(1, "here"), sorted(seeds), Filter(), depth=depth, limit=100)]


async def walked(store: PostgresStore, edges: list[Edge], seeds: set[str], depth: int) -> list[Reached]:
    space = next(SPACES)
    await store.add(space, [record(node, space=space) for node in NODES])
    await store.link(space, edges)
    return [*await store.walk(space, sorted(seeds), Filter(), depth=depth, limit=100)]


@ONE_STORE
@given(edges=EDGES, seeds=SEEDS, depth=st.integers(2, 3))
async def test_a_walk_is_that_of_sqlite(
    pg_store: PostgresStore, edges: list[Edge], seeds: set[str], depth: int
) -> None:
    """Several steps reach the same memories as in SQLite, equally strong, by the same relation, in the same order."""
    assert await walked(pg_store, edges, seeds, depth) == walked_in_sqlite(edges, seeds, depth)


@ONE_STORE
@given(edges=EDGES, seeds=SEEDS)
async def test_one_step_is_that_of_sqlite(pg_store: PostgresStore, edges: list[Edge], seeds: set[str]) -> None:
    """One step too; of two relations that are equally strong SQLite names either."""
    hits, expected = await walked(pg_store, edges, seeds, 1), walked_in_sqlite(edges, seeds, 1)
    assert [hit[:3] for hit in hits] == [hit[:3] for hit in expected]


@ONE_STORE
@given(edges=EDGES, seeds=SEEDS, depth=st.integers(2, 3))
async def test_a_bounded_walk_follows_the_same_links(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch, edges: list[Edge], seeds: set[str], depth: int
) -> None:
    """Where there are more links than a step looks at, the same are left out as in SQLite."""
    monkeypatch.setattr(paths, "LINKS_PER_STEP", 5)
    monkeypatch.setattr(paths, "LINKS_PER_MEMORY", 1)
    assert await walked(pg_store, edges, seeds, depth) == walked_in_sqlite(edges, seeds, depth)


async def test_a_hub_does_not_stop_a_walk(pg_store: PostgresStore) -> None:
    """Of more links than a step looks at, the strongest count."""
    count = paths.LINKS_PER_STEP + 10
    await pg_store.add("here", [record("a"), *(record(f"n{number:06}") for number in range(count))])
    edges = [Edge("a", f"n{number:06}", strength=0.5 if number < 10 else 0.9) for number in range(count)]
    await pg_store.link("here", edges)
    hits = await pg_store.walk("here", ["a"], Filter(), depth=1, limit=count)
    assert len(hits) == paths.LINKS_PER_STEP
    assert {hit.strength for hit in hits} == {0.9}


async def test_of_a_link_given_twice_the_last_counts(pg_store: PostgresStore) -> None:
    """The same ends and relation twice in one call: the last strength is stored."""
    await pg_store.add("here", [record("a"), record("b")])
    await pg_store.link("here", [Edge("a", "b", strength=0.5), Edge("a", "b", strength=0.25)])
    assert [edge async for edge in pg_store.edges("here")] == [Edge("a", "b", strength=0.25)]


async def test_links_to_what_others_forget(pg_store: PostgresStore) -> None:
    """Whoever links while others forget the ends stores what has both, or is told that an end is gone; nothing else."""
    ids = [f"m{number:02}" for number in range(40)]
    edges = [Edge(source, target, "similar", 0.5) for source, target in pairwise(ids)]
    await pg_store.add("here", [record(id) for id in ids])

    async def link_all() -> None:
        for edge in edges:
            await pg_store.link_nearest("here", {edge.source: [Scored(edge.target, edge.strength)]})
            try:
                await pg_store.link("here", [edge])
            except NotFound:
                continue

    async def forget_half() -> None:
        for id in ids[::-2]:
            await pg_store.forget("here", [id])

    await asyncio.gather(link_all(), forget_half(), link_all())
    kept = set(await pg_store.get("here", ids))
    assert kept == set(ids[::2])
    assert all({edge.source, edge.target} <= kept for edge in [edge async for edge in pg_store.edges("here")])


async def test_links_from_a_batch_to_what_others_forget(pg_store: PostgresStore) -> None:
    """A batch that brings links to memories that are being forgotten is stored; links without an end are left out."""
    ids = [f"m{number:02}" for number in range(30)]
    await pg_store.add("here", [record(id) for id in ids])

    async def add_linked() -> None:
        for number, id in enumerate(ids):
            added = Record(memory(f"n{number:02}"), edges=(Edge(f"n{number:02}", id),))
            await pg_store.add("here", [added])

    async def forget_all() -> None:
        for id in reversed(ids):
            await pg_store.forget("here", [id])

    await asyncio.gather(add_linked(), forget_all())
    assert (await pg_store.stats("here")).memories == 30
    assert [edge async for edge in pg_store.edges("here")] == []
