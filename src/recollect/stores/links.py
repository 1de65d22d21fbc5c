"""Which links a memory has to its nearest, whichever database holds them: pure functions for all stores.

A memory is linked to the three memories that are nearest to it, whichever came first. So whoever comes is not only
linked, but also takes the place of the weakest link of those to which it is nearer. What the links of a space are then
depends on what the space holds, and not on the order in which that came.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from recollect.types import NEAREST, Scored

if TYPE_CHECKING:
    from recollect.stores.exact import Rows, Scores

Links: TypeAlias = dict[int, dict[int, float]]
"""Strengths, by the row where a link begins and the row where it ends."""

_EPSILON = np.float32(5e-7)
"""Less than any cosine that is linked, and less than cosines are exact."""


class Revision(NamedTuple):
    """Links to be stored, and the ends of those to be deleted."""

    put: list[tuple[int, int, float]]
    gone: list[tuple[int, int]]


def reach(rows: Rows, linked: Iterable[tuple[int, float]], waiting: Iterable[int]) -> Scores:
    """How near another must come to each of some rows to be among its nearest, given the weakest links of those that
    have enough of them. Those that wait for their links will find it by themselves.
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
    """What each memory may be linked to: those found near it; and it to them in turn, unless they wait themselves."""
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
    """The rows that tie for the last place among somebody's nearest: what they say decides."""
    rows: set[int] = set()
    for source, offer in offers.items():
        all = held.get(source, {}) | offer
        strengths = sorted(all.values(), reverse=True)
        if len(all) > NEAREST and strengths[NEAREST] == strengths[NEAREST - 1]:
            rows.update(row for row, strength in all.items() if strength == strengths[NEAREST])
    return rows


def revise(held: Links, offers: Links, digests: Mapping[int, bytes]) -> Revision:
    """Each memory's nearest of what it is linked to and what it is offered. `digests` are those of the texts that tie:
    rows and ids tell when a memory came, and do not count.
    """
    revision = Revision([], [])
    for source, offer in offers.items():
        before = held.get(source, {})
        all = before | offer
        best = sorted(all, key=lambda row: (-all[row], digests.get(row, b""), row))[:NEAREST]
        revision.put.extend((source, row, all[row]) for row in best if before.get(row) != all[row])
        revision.gone.extend((source, row) for row in before if row not in best)
    return revision
