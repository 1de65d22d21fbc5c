"""Which way the nearest vectors are looked for: all that pass are compared, or the index is walked. Pure arithmetic.

A walk visits the vectors of the whole index by nearness, those of other spaces and those that the filter keeps out as
well. So it is quick where most of the index may be found, and slow where little of it may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EFFORT: Final = 200
"""Candidates that a walk keeps at least (`hnsw.ef_search`): of 100,000 it finds 0.99 of the nearest ten."""
EFFORT_PER_HIT: Final = 3
MOST_EFFORT: Final = 1_000
"""The most that pgvector allows."""
VISIT: Final = 20
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
    """A walk through the index that keeps `effort` candidates and ends after `most` vectors at the latest."""

    effort: int
    most: int


def choose(passing: int, indexed: int, limit: int, ef_search: int | None = None) -> Walk | None:
    """The walk that finds the nearest `limit` among the `passing` of `indexed` vectors; None where it is quicker to
    compare all of them. `ef_search` is the effort that a recipe asks for.
    """
    share = min(passing / max(indexed, 1), 1.0)
    if passing <= FEWEST or VISIT * limit > share * passing:
        return None
    effort = ef_search or min(round(max(EFFORT, EFFORT_PER_HIT * limit) / share), MOST_EFFORT)
    return Walk(effort, max(MOST_VISITED, round(SLACK * limit / share)))


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
