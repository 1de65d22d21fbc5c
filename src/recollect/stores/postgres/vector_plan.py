"""Which way the nearest vectors are looked for: all that pass are compared, or the index is walked. Pure arithmetic.

A walk visits the vectors of the whole index by nearness, also those of other spaces and those that the filter keeps
out. So it is quick where most of the index may be found, and slow where little of it may. How much of it must be
visited depends on the question: the nearest to one that lies amid the texts are found soon, while around one that is
like none of them everything is about as far away. So a walk goes in parts, until it can be relied on. Measured with
vectors of 384 dimensions, 100,000 in one space and as many in others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

LOOKED_AT: Final = 300
LOOKED_AT_PER_HIT: Final = 3
"""Vectors that pass which the first part of a walk sees: so many at least, and so many for each hit that is wanted."""
VISITED_OF: Final = 300
"""Of so many vectors in the index it visits one at least: the larger the index, the more it takes to find the nearest
in it."""
NEAREST: Final = 10
CLEARLY: Final = 1.15
"""A walk is relied on once the last that it came by is so many times as far away as the tenth: what it has missed among
the nearest could then be reached only by ways that lead farther off than it went."""
MOST_PARTS: Final = 3
"""It ends after so many parts in any case. With all these, 0.99 of the nearest ten are found in each index that was
built, also by questions that are like none of the texts, and two of three questions are answered by the first part."""
MOST_EFFORT: Final = 1_000
"""The most candidates that pgvector keeps at once (`hnsw.ef_search`). To visit more, it goes on in steps."""
VISIT: Final = 4
"""How much longer it takes to visit a vector in the index than to compare one that is known to pass."""
PARTS: Final = 2
"""Of a walk, on average."""
FEWEST: Final = LOOKED_AT * PARTS * VISIT
"""Up to so many vectors are always compared: no walk is quicker."""
SLACK: Final = 8
"""How many times the expected number of vectors a walk may visit before all are compared instead."""
MOST_VISITED: Final = 20_000
"""Vectors that any walk may visit: pgvector's own default."""
USUAL_LIMIT: Final = 100
"""Hits that the default recipe asks for."""
MEMORY: Final = 8
"""How many times `work_mem` a walk may take to remember what it visited."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk through the index that keeps `effort` candidates. It goes in parts of `part` vectors that pass, until it
    can be relied on or there were `parts` of them, and ends after `most` vectors in any case.
    """

    effort: int
    part: int
    parts: int = 1
    most: int = MOST_VISITED


def is_clear(cosines: Sequence[float]) -> bool:
    """Whether a walk that came by these can be relied on: the nearest, which are first, stand out against the last."""
    return 1 - cosines[-1] >= CLEARLY * (1 - cosines[:NEAREST][-1])


def choose(passing: int, indexed: int, limit: int, ef_search: int | None = None) -> Walk | None:
    """The walk that finds the nearest `limit` among the `passing` of `indexed` vectors; None where it is quicker to
    compare all of them. `ef_search` is the effort that a recipe asks for, which is used as it is.
    """
    share = min(max(passing, 1) / max(indexed, 1), 1.0)
    if ef_search:
        visited = max(ef_search, limit) / share
        walk = Walk(ef_search, limit, most=_most(visited))
    else:
        first = max(max(LOOKED_AT, LOOKED_AT_PER_HIT * limit) / share, indexed / VISITED_OF)
        visited = PARTS * first
        steps = ceil(first / MOST_EFFORT)
        # A little less than what the last step brings on average, or else one more would often be taken.
        part = max(limit, round(0.9 * share * first))
        walk = Walk(ceil(first / steps), part, MOST_PARTS, _most(visited))
    return walk if passing > VISIT * visited else None


def _most(visited: float) -> int:
    return max(MOST_VISITED, round(SLACK * visited))


def wants_index(vectors: int, indexed: int) -> bool:
    """Whether a search of a space with so many vectors would walk an index, if there were one."""
    return choose(vectors, indexed, USUAL_LIMIT) is not None


def settings(walk: Walk | None) -> str:
    """What holds for the rest of the transaction, so that Postgres goes the chosen way whatever it believes about the
    tables: of a fresh load it knows nothing.
    """
    by_row = "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_bitmapscan = off"
    if walk is None:
        return by_row
    return (
        f"{by_row}; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; "
        f"SET LOCAL hnsw.ef_search = {walk.effort}; SET LOCAL hnsw.iterative_scan = relaxed_order; "
        f"SET LOCAL hnsw.max_scan_tuples = {walk.most}; SET LOCAL hnsw.scan_mem_multiplier = {MEMORY}"
    )
