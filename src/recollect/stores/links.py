"""The links of each memory to its nearest. Pure functions for all databases.

A memory is linked to the three memories nearest to it, whichever came first. So a new memory is not only linked: where
it is nearer to another memory than that one's weakest link, it replaces the link. The links of a space therefore depend
on what it holds, not on the order in which that was stored.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from recollect.types import NEAREST, Scored

if TYPE_CHECKING:
    from recollect.stores.nearest import Rows, Scores

Links: TypeAlias = dict[int, dict[int, float]]
"""Strengths, by source row and target row."""

_EPSILON = np.float32(5e-7)
"""Smaller than any linked cosine, and than the error of a cosine."""


class Revision(NamedTuple):
    """Links to store, and the ends of links to delete."""

    put: list[tuple[int, int, float]]
    gone: list[tuple[int, int]]


def reach(rows: Rows, linked: Iterable[tuple[int, float]], waiting: Iterable[int]) -> Scores:
    """The cosine above which another memory is among the nearest of each row, given the weakest links of rows that have
    enough. Rows that wait to be linked will find the other themselves.
    """
    least = np.full(len(rows), _EPSILON, np.float32)
    known = dict(linked)
    strengths = np.array([*known.values()], np.float32) - _EPSILON
    waits = np.array([*waiting], np.int64)
    order = np.argsort(rows)
    for some, values in ((np.array([*known], np.int64), strengths), (waits, np.full(len(waits), np.inf, np.float32))):
        places = order[np.searchsorted(rows, some, sorter=order).clip(max=len(rows) - 1)]
        there = rows[places] == some
        least[places[there]] = values[there]
    return least


def offered(nearest: Mapping[str, Sequence[Scored]], rows: Mapping[str, int], waiting: Container[int]) -> Links:
    """The candidates for each memory's links: those found near it, and it for them, unless they wait to be linked."""
    offers: Links = {}
    for id, hits in nearest.items():
        for hit in hits:
            if hit.score > 0 and id in rows and hit.id in rows:
                source, target, strength = rows[id], rows[hit.id], min(hit.score, 1.0)
                offers.setdefault(source, {})[target] = strength
                if target not in waiting:
                    offers.setdefault(target, {})[source] = strength
    return offers


def tied(held: Links, offers: Links) -> set[int]:
    """The rows that tie for the last place among a memory's nearest: their texts decide."""
    rows: set[int] = set()
    for source, offer in offers.items():
        all = held.get(source, {}) | offer
        strengths = sorted(all.values(), reverse=True)
        if len(all) > NEAREST and strengths[NEAREST] == strengths[NEAREST - 1]:
            rows.update(row for row, strength in all.items() if strength == strengths[NEAREST])
    return rows


def revise(held: Links, offers: Links, digests: Mapping[int, bytes]) -> Revision:
    """Each memory's nearest among its links and its candidates. Ties are decided by `digests` of the texts: rows and
    ids depend on when a memory was stored.
    """
    revision = Revision([], [])
    for source, offer in offers.items():
        before = held.get(source, {})
        all = before | offer
        best = sorted(all, key=lambda row: (-all[row], digests.get(row, b""), row))[:NEAREST]
        revision.put.extend((source, row, all[row]) for row in best if before.get(row) != all[row])
        revision.gone.extend((source, row) for row in before if row not in best)
    return revision
