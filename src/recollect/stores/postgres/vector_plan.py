"""Chooses how to find the nearest vectors: compare all that pass the filter, or walk the index. Pure arithmetic.

A walk visits the vectors of the whole index by distance, including those of other spaces and those that the filter
excludes. It is fast if most of the index passes, and slow if little does. How far it must go depends on the question:
one like the texts finds its nearest soon; to one like none of them, all are about equally far. So a walk goes in parts,
until its result is reliable. Measured with vectors of 384 dimensions, 100,000 in one space and as many in others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

LOOKED_AT: Final = 300
LOOKED_AT_PER_HIT: Final = 3
"""Passing vectors that the first part of a walk sees: at least this many, and this many per hit wanted."""
VISITED_OF: Final = 300
"""The first part visits at least one in this many vectors of the index: larger indexes take more to search."""
NEAREST: Final = 10
CLEARLY: Final = 1.15
"""A walk is reliable once its last vector is this many times as far away as its tenth: any nearer vector that it missed
could be reached only through farther ones."""
MOST_PARTS: Final = 3
"""A walk ends after this many parts. With these settings every index tried found 0.99 of the nearest ten, also for
questions unlike any text, and two of three questions needed only the first part."""
MOST_EFFORT: Final = 1_000
"""The largest `hnsw.ef_search` of pgvector. To visit more, it continues in steps."""
VISIT: Final = 4
"""Cost of visiting a vector in the index, relative to comparing one."""
PARTS: Final = 2
"""Parts of a walk, on average."""
FEWEST: Final = LOOKED_AT * PARTS * VISIT
"""Up to this many vectors are always compared: no walk is faster."""
SLACK: Final = 8
"""A walk may visit this many times the expected vectors before all are compared instead."""
MOST_VISITED: Final = 20_000
"""Vectors that any walk may visit: pgvector's default."""
USUAL_LIMIT: Final = 100
"""Hits that the default recipe asks for."""
MEMORY: Final = 8
"""`hnsw.scan_mem_multiplier`: memory of a walk, in multiples of `work_mem`."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk through the index that keeps `effort` candidates, in at most `parts` parts of `part` passing vectors. It
    visits at most `most` vectors.
    """

    effort: int
    part: int
    parts: int = 1
    most: int = MOST_VISITED


def is_clear(cosines: Sequence[float]) -> bool:
    """Whether a walk that found these is reliable: the nearest, which are first, stand out against the last."""
    return 1 - cosines[-1] >= CLEARLY * (1 - cosines[:NEAREST][-1])


def choose(passing: int, indexed: int, limit: int, ef_search: int | None = None) -> Walk | None:
    """The walk that finds the nearest `limit` among `passing` of `indexed` vectors, or None if comparing all is faster.
    `ef_search` is the effort that a recipe sets.
    """
    share = min(max(passing, 1) / max(indexed, 1), 1.0)
    if ef_search:
        visited = max(ef_search, limit) / share
        walk = Walk(ef_search, limit, most=_most(visited))
    else:
        first = max(max(LOOKED_AT, LOOKED_AT_PER_HIT * limit) / share, indexed / VISITED_OF)
        visited = PARTS * first
        steps = ceil(first / MOST_EFFORT)
        # A little less than the last step brings on average, to avoid one more step.
        part = max(limit, round(0.9 * share * first))
        walk = Walk(ceil(first / steps), part, MOST_PARTS, _most(visited))
    return walk if passing > VISIT * visited else None


def _most(visited: float) -> int:
    return max(MOST_VISITED, round(SLACK * visited))


def wants_index(vectors: int, indexed: int) -> bool:
    """Whether a search of a space with this many vectors would walk an index."""
    return choose(vectors, indexed, USUAL_LIMIT) is not None


def settings(walk: Walk | None) -> str:
    """Settings for the rest of the transaction that force the chosen way: after a fresh load Postgres has no
    statistics.
    """
    by_row = "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_bitmapscan = off"
    if walk is None:
        return by_row
    return (
        f"{by_row}; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; "
        f"SET LOCAL hnsw.ef_search = {walk.effort}; SET LOCAL hnsw.iterative_scan = relaxed_order; "
        f"SET LOCAL hnsw.max_scan_tuples = {walk.most}; SET LOCAL hnsw.scan_mem_multiplier = {MEMORY}"
    )
