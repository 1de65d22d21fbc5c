"""Which way the nearest vectors are looked for: all that pass are compared, or the index is walked. Pure arithmetic.

A walk visits the vectors of the whole index by nearness, also those of other spaces and those that the filter keeps
out. So it is quick where most of the index may be found, and slow where little of it may. Measured with vectors of 384
dimensions, 100,000 in one space and as many in others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EFFORT: Final = 250
EFFORT_PER_HIT: Final = 3
"""How many vectors that pass a walk looks at to find 0.99 of the nearest ten: so many, or so many for each hit."""
MOST_EFFORT: Final = 1_000
"""The most candidates that pgvector keeps at once (`hnsw.ef_search`); beyond that it goes on in steps."""
VISIT: Final = 4
"""How much longer it takes to visit a vector in the index than to compare one that is known to pass."""
FEWEST: Final = EFFORT * VISIT
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
    """A walk through the index that keeps `effort` candidates and ends when `enough` were found that pass, or after
    `most` vectors.
    """

    effort: int
    enough: int
    most: int = MOST_VISITED


def choose(passing: int, indexed: int, limit: int, ef_search: int | None = None) -> Walk | None:
    """The walk that finds the nearest `limit` among the `passing` of `indexed` vectors; None where it is quicker to
    compare all of them. `ef_search` is the effort that a recipe asks for, which is used as it is.
    """
    share = min(passing / max(indexed, 1), 1.0)
    looked_at = max(EFFORT, EFFORT_PER_HIT * limit)
    if passing <= VISIT * looked_at or share * passing < VISIT * looked_at:
        return None
    most = max(MOST_VISITED, round(SLACK * looked_at / share))
    if ef_search:
        return Walk(ef_search, limit, most)
    effort = round(looked_at / share)
    return Walk(min(effort, MOST_EFFORT), limit if effort <= MOST_EFFORT else looked_at, most)


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
