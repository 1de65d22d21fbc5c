"""Links: stored once, walked in both directions, scored by their best path."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from recollect.conformance.samples import ALL, HERE, edges, raises, reached, record
from recollect.errors import InvalidRequest, NotFound
from recollect.ports import Reached, Store
from recollect.types import Edge, Filter


async def _linked(store: Store, *edges: Edge, **fields: dict[str, Any]) -> None:
    """Store the ends of these edges, with fields of their own where given, and link them."""
    ends = sorted({end for edge in edges for end in (edge.source, edge.target)})
    await store.add(HERE, [record(end, **fields.get(end, {})) for end in ends])
    await store.link(HERE, list(edges))


async def spec_links_come_back(store: Store) -> None:
    """Each link is there as it was given; two relations between the same ends are two links."""
    given = [Edge("a", "b"), Edge("a", "b", "cause", 0.5), Edge("b", "a", "cause", 1e-9)]
    await _linked(store, *given)
    stored = await edges(store)
    assert sorted(stored, key=lambda edge: edge.strength) == sorted(given, key=lambda edge: edge.strength)


async def spec_a_link_given_again_replaces_its_strength(store: Store) -> None:
    """Same ends and relation: one link, with the last strength."""
    await _linked(store, Edge("a", "b", strength=0.5))
    await store.link(HERE, [Edge("a", "b", strength=0.25)])
    assert await edges(store) == [Edge("a", "b", strength=0.25)]


async def spec_impossible_links_are_refused(store: Store) -> None:
    """A link to itself, a strength outside of (0, 1], or an end that is not there stores nothing."""
    await store.add(HERE, [record("a"), record("b")])
    for strength in (0.0, -0.5, 1.5, math.nan, math.inf):
        with raises(InvalidRequest, str(strength)):
            await store.link(HERE, [Edge("b", "a"), Edge("a", "b", strength=strength)])
    with raises(InvalidRequest, "'a'"):
        await store.link(HERE, [Edge("b", "a"), Edge("a", "a")])
    with raises(NotFound, "nowhere"):
        await store.link(HERE, [Edge("b", "a"), Edge("a", "nowhere")])
    assert await edges(store) == []


async def spec_unlink_takes_what_is_named(store: Store) -> None:
    """One relation, or all from source to target when none is named; the other direction stays."""
    await _linked(store, Edge("a", "b", "x"), Edge("a", "b", "y"), Edge("a", "b", "z"), Edge("b", "a", "x"))
    assert await store.unlink(HERE, "a", "b", "x") == 1
    assert await store.unlink(HERE, "a", "b", "x") == 0
    assert await store.unlink(HERE, "a", "b") == 2
    assert await store.unlink(HERE, "a", "nothing") == 0
    assert await edges(store) == [Edge("b", "a", "x")]


async def spec_edges_of_some(store: Store) -> None:
    """With ids, the links that touch them, each once; without, all, however many."""
    await store.add(HERE, [record(f"{number:04}") for number in range(1501)])
    chain = [Edge(f"{number:04}", f"{number + 1:04}") for number in range(1500)]
    await store.link(HERE, chain)
    every = await edges(store)
    assert sorted(every, key=lambda edge: edge.source) == chain
    some = await edges(store, ["0005", "0006", "nothing"])
    assert sorted(some, key=lambda edge: edge.source) == chain[4:7]
    assert await edges(store, []) == []


async def spec_walk_follows_both_directions(store: Store) -> None:
    """A walk of one step reaches what the seed links to and what links to it, strongest first."""
    await _linked(store, Edge("a", "b", "x", 0.25), Edge("c", "a", "y", 0.5), Edge("c", "far"))
    walked = await store.walk(HERE, ["a"], ALL, depth=1, limit=10)
    assert list(walked) == [Reached("c", 0.5, 1, "y"), Reached("b", 0.25, 1, "x")]


async def spec_walk_multiplies_strengths(store: Store) -> None:
    """Each step multiplies; the walk ends after `depth` steps."""
    await _linked(store, Edge("a", "b", strength=0.5), Edge("c", "b", "last", 0.5), Edge("c", "d"), Edge("d", "e"))
    assert await reached(store, ["a"], depth=1) == ["b"]
    walked = await store.walk(HERE, ["a"], ALL, depth=2, limit=10)
    assert list(walked) == [Reached("b", 0.5, 1, "related"), Reached("c", 0.25, 2, "last")]
    assert await reached(store, ["a"], depth=3) == ["b", "c", "d"]
    for depth in (0, 4):
        with raises(InvalidRequest, str(depth)):
            await store.walk(HERE, ["a"], ALL, depth=depth, limit=10)


async def spec_the_best_path_counts(store: Store) -> None:
    """A longer path beats a weaker short one, and what follows it profits, within the steps there are."""
    await _linked(store, Edge("a", "z", strength=0.1), Edge("a", "b"), Edge("b", "z", strength=0.5), Edge("z", "end"))
    three = {hit.id: hit for hit in await store.walk(HERE, ["a"], ALL, depth=3, limit=10)}
    assert (three["z"].strength, three["z"].steps) == (0.5, 2)
    assert (three["end"].strength, three["end"].steps) == (0.5, 3)
    two = {hit.id: hit for hit in await store.walk(HERE, ["a"], ALL, depth=2, limit=10)}
    assert (two["z"].strength, two["end"].strength) == (0.5, 0.1)


async def spec_the_best_seed_counts(store: Store) -> None:
    """With several seeds a memory has its best path from any of them."""
    await _linked(store, Edge("a", "x", strength=0.25), Edge("b", "x", strength=0.75))
    assert list(await store.walk(HERE, ["a", "b", "nothing"], ALL, depth=1, limit=10)) == [
        Reached("x", 0.75, 1, "related")
    ]


async def spec_seeds_are_reached_only_by_other_seeds(store: Store) -> None:
    """A seed is not its own hit, on no way round; another seed may reach it, even by a worse path."""
    await _linked(store, Edge("a", "x"), Edge("b", "x", strength=0.5))
    assert await reached(store, ["a"], depth=3) == ["x", "b"]
    walked = {hit.id: hit.strength for hit in await store.walk(HERE, ["a", "b"], ALL, depth=2, limit=10)}
    assert walked == {"x": 1.0, "a": 0.5, "b": 0.5}


async def spec_a_walk_passes_through_what_is_hidden(store: Store) -> None:
    """What a filter hides is not returned, but leads on."""
    await _linked(store, Edge("a", "b"), Edge("b", "c"), b={"kind": "hidden"})
    assert await reached(store, ["a"], Filter(kinds=("fact",)), depth=2) == ["c"]
    assert await reached(store, ["b"], replace(ALL, kinds=("fact",)), depth=1) == ["a", "c"]


async def spec_walk_ties_go_by_id(store: Store) -> None:
    """The same strength is ordered by id, also at the limit."""
    await _linked(store, *(Edge("hub", id, strength=0.5) for id in "dbac"))
    assert await reached(store, ["hub"]) == ["a", "b", "c", "d"]
    assert await reached(store, ["hub"], limit=2) == ["a", "b"]
    assert await reached(store, []) == []
