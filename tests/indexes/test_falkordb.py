"""FalkorDB as the graph leg: it holds what it is told, and walks as the SQLite store does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import BackendTimeout, InvalidRequest
from recollect.ports import Change, ExternalIndex, Reached
from recollect.ranking import paths
from recollect.stores.sqlite.store import SqliteStore
from recollect.types import Edge, Filter, Memory, Record
from tests.indexes.falkordb_samples import ALL, FalkorIndex, around, everything, gone, held, there

INDEX = "recollect.indexes.falkordb.index"
NASTY = (
    'it\'s "quoted"',
    "{braces} [and] `ticks` $id",
    "back\\slash\\",
    "two\nlines\r\tand a tab",
    "'}) DETACH DELETE m //",
    '"] AS id MATCH (n) DETACH DELETE n WITH 1 AS x UNWIND ["',
    "%3A:0:*?[a-z]",
    "漢字 é 😀 \u2028",
    "😀" * 200,
)


@pytest.fixture
async def index(falkordb_url: str) -> AsyncIterator[FalkorIndex]:
    opened = FalkorIndex(falkordb_url, visible=everything)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "memory.db")
    await opened.open()
    yield opened
    await opened.close()


async def counted(index: FalkorIndex) -> int:
    """How many links between memories the server has, whatever walks make of them."""
    query = "MATCH (m)-[e]->(o) WHERE m.id <> o.id RETURN count(e)"
    [[count]] = await index._server.read(index._address.graph(0, "here"), query)
    return int(count)


# Walks


async def fed(index: FalkorIndex, store: SqliteStore, chance: random.Random, strengths: Sequence[float]) -> list[str]:
    """A random graph in a store and in an index; its ids."""
    ids = [f"m{number:02}" for number in range(40)]
    memories = [Memory(id, "here", id, kind=chance.choice(["fact", "hidden"])) for id in ids]
    await store.add("here", [Record(memory) for memory in memories])
    ends = [chance.sample(ids, 2) for _ in range(90)]
    edges = [Edge(a, b, chance.choice("xyz"), chance.choice(strengths) or chance.random()) for a, b in ends]
    await store.link("here", edges)
    stored = [edge async for edge in store.edges("here")]
    changes = [Change(one.id, one, None, tuple(edge for edge in stored if edge.source == one.id)) for one in memories]
    chance.shuffle(changes)
    await index.apply("here", changes)
    return ids


def rounded(hits: Sequence[Reached]) -> list[tuple[float, str, int, str]]:
    """Hits in order, as far as FalkorDB can tell: it answers with 15 digits, and a path may be as strong as another
    but for the last bit.
    """
    return sorted((-round(hit.strength, 9), hit.id, hit.steps, hit.relation) for hit in hits)


@pytest.mark.parametrize("depth", [1, 2, 3])
async def test_walks_equal_those_of_the_store(falkordb_url: str, store: SqliteStore, depth: int) -> None:
    """On random graphs, with a filter and a limit, the hits are those of SQLite: strengths, steps, relations."""
    chance = random.Random(depth)
    index = FalkorIndex(falkordb_url, visible=store.visible)
    ids = await fed(index, store, chance, [0.0])
    for where in (ALL, Filter(kinds=("fact",))):
        for count in (1, 2, 3, 10):
            seeds = [*chance.sample(ids, count), "nowhere"]
            expected = await store.walk("here", seeds, where, depth=depth, limit=1000)
            hits = await index.walk("here", [*seeds, seeds[0]], where, depth=depth, limit=1000)
            assert rounded(hits) == rounded(expected)
            assert list(hits) == sorted(hits, key=lambda hit: (-hit.strength, hit.id))
            assert await index.walk("here", seeds, where, depth=depth, limit=3) == hits[:3]
    await index.close()


async def test_ties_equal_those_of_the_store(falkordb_url: str, store: SqliteStore) -> None:
    """Where many paths are equally strong, hits are the same and ties go by id."""
    chance = random.Random(7)
    index = FalkorIndex(falkordb_url, visible=store.visible)
    ids = await fed(index, store, chance, [0.25, 0.5, 1.0])
    for depth in (1, 2, 3):
        for seeds in (chance.sample(ids, count) for count in (1, 2, 5)):
            expected = await store.walk("here", seeds, ALL, depth=depth, limit=1000)
            hits = await index.walk("here", seeds, ALL, depth=depth, limit=1000)
            assert [(hit.id, hit.strength, hit.steps) for hit in hits] == [
                (hit.id, hit.strength, hit.steps) for hit in expected
            ]
    await index.close()


async def test_a_hub_does_not_stop_a_walk(index: FalkorIndex) -> None:
    """Of more links than a step looks at the strongest count, and beyond the first step few of each memory."""
    count = paths.LINKS_PER_STEP + 10
    spokes = [Edge("hub", f"n{number:04}", strength=0.5 if number < 10 else 0.9) for number in range(count)]
    await index.apply("here", [there("hub", *spokes), there("a", Edge("a", "hub"), Edge("a", "b", "x", 0.1))])
    one = await index.walk("here", ["hub"], ALL, depth=1, limit=count)
    assert len(one) == paths.LINKS_PER_STEP
    assert min(hit.strength for hit in one) == 0.9
    two = await index.walk("here", ["a"], ALL, depth=2, limit=count)
    assert [hit.id for hit in two if hit.steps == 1] == ["hub", "b"]
    assert len(two) == paths.LINKS_PER_MEMORY + 2
    assert {hit.strength for hit in two if hit.steps == 2} == {0.9}


async def test_the_links_of_the_best_memories_come_first(index: FalkorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that may not look at all links looks at those of the strongest memories."""
    monkeypatch.setattr(f"{INDEX}.LINKS_PER_STEP", 4)  # b has four
    first = [Edge("seed", name, strength=strength) for name, strength in (("a", 0.2), ("b", 0.9), ("c", 0.5))]
    tails = [there(name, *(Edge(name, f"{name}{number}") for number in range(3))) for name in "abc"]
    await index.apply("here", [there("seed", *first), *tails])
    assert await around(index, "seed", depth=2) == ["b", "b0", "b1", "b2", "c", "a"]


@pytest.mark.parametrize("depth", [0, 4, 9, -1])
async def test_other_depths_are_refused(index: FalkorIndex, depth: int) -> None:
    """a walk goes one to three steps."""
    with pytest.raises(InvalidRequest, match=f"1 to 3 steps, not {depth}"):
        await index.walk("here", ["a"], ALL, depth=depth, limit=10)


async def test_it_is_an_external_index(index: FalkorIndex) -> None:
    """It has what is asked of an engine beside the store."""
    engine: ExternalIndex = index
    await engine.check()
    assert engine.name == "falkordb"


async def test_nothing_is_found_where_nothing_is(index: FalkorIndex) -> None:
    """A space without a graph, no seeds, and seeds that are not there give no hits."""
    assert await around(index, "a", space="nowhere", depth=3) == []
    assert await held(index, "nowhere") == []
    assert await index.spaces() == []
    await index.apply("here", [there("a", Edge("a", "b"))])
    assert await around(index) == []
    assert await around(index, "nobody", depth=3) == []


# Changes


async def test_a_change_twice_is_once(index: FalkorIndex) -> None:
    """Applying again changes nothing, and no link is there twice."""
    changes = [there("a", Edge("a", "b", "x", 0.5), Edge("a", "b", "y", 0.25)), there("b", Edge("b", "a", "x"))]
    for _ in range(3):
        await index.apply("here", changes)
        assert await held(index) == ["a", "b"]
        assert await counted(index) == 3


async def test_the_later_state_counts(index: FalkorIndex) -> None:
    """In one call and in the next, the last state of a memory is the one it has; its older links are gone."""
    await index.apply("here", [there("a", Edge("a", "b")), there("c"), gone("c"), there("a", Edge("a", "d"))])
    assert await around(index, "a") == ["d"]
    assert await held(index) == ["a"]
    await index.apply("here", [gone("a"), there("a", Edge("a", "e", "x", 0.5), Edge("a", "e", "x", 0.75))])
    assert list(await index.walk("here", ["a"], ALL, depth=1, limit=9)) == [Reached("e", 0.75, 1, "x")]
    await index.apply("here", [there("a")])
    assert await around(index, "a") == []
    assert await held(index) == ["a"]
    await index.apply("here", [])


async def test_a_link_may_come_before_its_end(index: FalkorIndex) -> None:
    """The other end is not held until its own change arrives, and keeps the links that came before it."""
    await index.apply("here", [there("a", Edge("a", "b"))])
    assert await held(index) == ["a"]
    await index.apply("here", [there("b", Edge("b", "c"))])
    assert await held(index) == ["a", "b"]
    assert await around(index, "a", depth=2) == ["b", "c"]


async def test_what_is_forgotten_goes_with_its_links(index: FalkorIndex) -> None:
    """Links of others to it go as well; what comes back under its id has only its new links."""
    await index.apply("here", [there("a", Edge("a", "b")), there("b", Edge("b", "c")), there("c", Edge("c", "b"))])
    await index.apply("here", [gone("b"), gone("never there")])
    assert await held(index) == ["a", "c"]
    assert await around(index, "a", "c", depth=3) == []
    await index.apply("here", [there("b", Edge("b", "a"))])
    assert await around(index, "b", depth=3) == ["a"]
    await index.apply("here", [gone("a"), gone("b"), gone("c")])
    assert (await held(index), await index.spaces()) == ([], [])


async def test_spaces_and_prefixes_are_apart(index: FalkorIndex, falkordb_url: str) -> None:
    """The same id in two spaces, or in two indexes on one server, is two memories."""
    other = FalkorIndex(f"{falkordb_url}-other", visible=everything)
    for number, (owner, space) in enumerate([(index, "one"), (index, "two"), (other, "one")]):
        await owner.apply(space, [there("a", Edge("a", f"b{number}"))])
    await index.apply("two", [gone("a")])
    assert await around(index, "a", space="one") == ["b0"]
    assert await around(other, "a", space="one") == ["b2"]
    assert (await index.spaces(), await other.spaces()) == (["one"], ["one"])
    await other.close()


@pytest.mark.parametrize("name", NASTY, ids=range(len(NASTY)))
async def test_any_name_is_only_a_name(index: FalkorIndex, name: str) -> None:
    """Quotes, braces, lines, Cypher and long names of spaces, memories and relations come back as they were."""
    await index.apply(name, [there(name, Edge(name, f"{name}!", name, 0.5)), there(f"{name}!")])
    assert list(await index.walk(name, [name], ALL, depth=3, limit=9)) == [Reached(f"{name}!", 0.5, 1, name)]
    assert await index.spaces() == [name]
    assert await held(index, name) == sorted([name, f"{name}!"])
    await index.apply(name, [gone(name)])
    assert await held(index, name) == [f"{name}!"]


async def test_names_that_are_almost_the_same(index: FalkorIndex) -> None:
    """Case, blanks, commas and accents tell memories and spaces apart."""
    names = [
        "a",
        "A",
        " a",
        "a ",
        "a,b",
        "a, b",
        "a|b",
        "á",
        "a\u0301",
        "a-b",
        "a*",
        "a\\",
        "*",
        ",",
        " ",
        "0",
        "0.0",
        "null",
    ]
    await index.apply("here", [there(name, Edge(name, f"{name}>")) for name in names])
    await index.apply("here", [there(name, Edge(name, f"{name}>")) for name in names])
    assert await held(index) == sorted(names)
    for name in names:
        assert await around(index, name) == [f"{name}>"]
        await index.apply(name, [there("m")])
    assert await index.spaces() == sorted([*names, "here"])


async def test_the_weakest_link_does_no_harm(index: FalkorIndex) -> None:
    """FalkorDB stumbles over the number after a tiny one; such a strength is stored as the smallest it can take."""
    await index.apply("here", [there("a", Edge("a", "b", strength=5e-324), Edge("a", "c", strength=1e-300))])
    assert await around(index, "a") == ["c", "b"]


async def test_many_changes_are_applied_in_portions(index: FalkorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with more changes than a query takes, and pages of ids, lose nothing."""
    monkeypatch.setattr(f"{INDEX}.CHANGES_PER_QUERY", 7)
    monkeypatch.setattr(f"{INDEX}.NODES_PER_PAGE", 5)
    ids = [f"m{number:02}" for number in range(50)]
    await index.apply("here", [there(id, Edge(id, "m00")) for id in ids[1:]] + [there("m00")])
    assert await held(index) == ids
    assert sorted(await around(index, "m00")) == ids[1:]


async def test_changes_at_once_are_all_there(index: FalkorIndex) -> None:
    """Calls that overlap in a new space do not take each other's changes away, nor leave anything there twice."""
    changes = [there(f"m{number % 10}", Edge(f"m{number % 10}", "hub")) for number in range(20)]
    await asyncio.gather(*(index.apply("here", [change]) for change in changes))
    assert len(await held(index)) == await counted(index) == 10
    assert len(await around(index, "hub")) == 10


async def test_a_change_that_was_given_up_comes_to_nothing(index: FalkorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that the network delivers after a later one, when nobody waits for it any more, changes nothing."""
    write = index._server.write
    delayed: list[tuple[str, str, dict[str, Any]]] = []

    async def late(graph: str, query: str, **values: Any) -> Any:
        delayed.append((graph, query, values))
        raise BackendTimeout("it did not answer in time", backend="falkordb")

    monkeypatch.setattr(index._server, "write", late)
    with pytest.raises(BackendTimeout):
        await index.apply("here", [there("a", Edge("a", "old")), there("b")])
    monkeypatch.setattr(index._server, "write", write)
    await index.apply("here", [there("a", Edge("a", "new")), gone("b")])
    [(graph, query, values)] = delayed
    assert await write(graph, query, **values) == [[False]]
    assert (await around(index, "a"), await held(index)) == (["new"], ["a"])
