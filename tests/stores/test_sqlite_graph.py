"""Walking links, compared with trying every path."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.ranking import paths
from recollect.stores.contents import Space
from recollect.stores.named_sql import read
from recollect.stores.sqlite import graph
from recollect.types import Edge, Filter

NODES = "abcdef"
NODE = st.sampled_from(NODES)
STRENGTH = st.sampled_from([0.1, 0.25, 0.5, 0.9, 1.0])
EDGE = st.builds(Edge, NODE, NODE, st.sampled_from("xy"), STRENGTH).filter(lambda edge: edge.source != edge.target)
MEMORY = """
INSERT INTO memories (
    space, id, hash, namespace, kind, text, title, tags, source, metadata, created_at, updated_at, embedding
) VALUES (1, ?1, CAST(?1 AS BLOB), '', '', '', '', '[]', '', '{}', 0, 0, 'pending')
"""


def store(edges: list[Edge]) -> apsw.Connection:
    db = apsw.Connection(":memory:")
    db.execute(read("recollect.stores.sqlite.store", "schema.sql"))
    db.executemany(MEMORY, NODES)
    graph.link(db, Space(1, "here"), edges)
    return db


def best_paths(edges: list[Edge], seeds: set[str], depth: int) -> dict[str, float]:
    """The best product over all paths without repetition from any seed to another memory."""
    strength: dict[tuple[str, str], float] = {}
    last = {(edge.source, edge.target, edge.relation): edge.strength for edge in edges}
    for (source, target, _), value in last.items():
        for ends in ((source, target), (target, source)):
            strength[ends] = max(strength.get(ends, 0.0), value)
    best: dict[str, float] = {}
    for length in range(2, depth + 2):
        for path in permutations(NODES, length):
            product = math.prod(strength.get(ends, 0.0) for ends in pairwise(path))
            if path[0] in seeds and product > best.get(path[-1], 0.0):
                best[path[-1]] = product
    return best


@settings(deadline=None, max_examples=60)
@given(edges=st.lists(EDGE, max_size=12), seeds=st.sets(st.sampled_from(NODES), min_size=1), depth=st.integers(1, 3))
def test_a_walk_finds_the_best_paths(edges: list[Edge], seeds: set[str], depth: int) -> None:
    """A walk reaches what paths reach, each by its best one, in order."""
    hits = graph.walk(store(edges), Space(1, "here"), sorted(seeds), Filter(), depth=depth, limit=100)
    expected = best_paths(edges, seeds, depth)
    assert {hit.id for hit in hits} == expected.keys()
    assert all(math.isclose(hit.strength, expected[hit.id]) and 1 <= hit.steps <= depth for hit in hits)
    assert hits == sorted(hits, key=lambda hit: (-hit.strength, hit.id))


def test_a_hub_does_not_stop_a_walk() -> None:
    """Of more links than a step looks at, the strongest count."""
    count = paths.LINKS_PER_STEP + 10
    db = store([])
    db.executemany(MEMORY, ((f"n{number:06}",) for number in range(count)))
    edges = [Edge("a", f"n{number:06}", strength=0.5 if number < 10 else 0.9) for number in range(count)]
    graph.link(db, Space(1, "here"), edges)
    hits = graph.walk(db, Space(1, "here"), ["a"], Filter(), depth=1, limit=count)
    assert len(hits) == paths.LINKS_PER_STEP
    assert {hit.strength for hit in hits} == {0.9}
