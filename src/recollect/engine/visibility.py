"""One question over everything its caller may see: its own space, and what other spaces share with it.

Each space is searched separately, so word statistics and links stay within a space; then each lane's rankings are
merged. Two spaces may use the same id, so during fusion the id of a shared memory carries the name of its space.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from math import fsum, sqrt
from typing import TypeVar

from recollect.calls.deadline import let_go
from recollect.legs import LegSearch
from recollect.legs.question import Question
from recollect.recipes import Lane
from recollect.types import Background, Ranking, Scored

T = TypeVar("T")

SPACE_MARK = "\x1f"
"""Separates an id from the name of its space. No name can contain it. The id comes first because ties break by id."""
SHARED_DEPTH = 1
"""How far links are followed in another space. A second step could pass through memories that are not granted."""


async def search(leg: LegSearch, question: Question, lane: Lane) -> Ranking:
    """What a leg finds in the question's own space and in those that share with it."""
    if question.shared is None:
        return await leg.search(question, lane)
    shared = asyncio.create_task(_search_shared(leg, question, lane))
    try:
        own_space = question.own_space or lane.every_namespace
        own = await leg.search(question, lane) if own_space else Ranking(lane.name, lane.leg)
        return merged(own, await shared, question.fanout)
    finally:
        let_go(shared)


async def _search_shared(leg: LegSearch, question: Question, lane: Lane) -> list[Ranking]:
    others = await question.shared_questions()
    near = replace(lane, depth=SHARED_DEPTH)
    found = await asyncio.gather(*(leg.search(other, near) for other in others))
    return [qualified(ranking, other.space) for ranking, other in zip(found, others, strict=True)]


def qualified(ranking: Ranking, space: str) -> Ranking:
    """The ranking with the name of its space in every id."""
    return replace(
        ranking,
        hits=tuple(Scored(f"{id}{SPACE_MARK}{space}", score) for id, score in ranking.hits),
        exact=frozenset(f"{id}{SPACE_MARK}{space}" for id in ranking.exact),
    )


def merged(own: Ranking, others: Sequence[Ranking], fanout: int) -> Ranking:
    """One lane's rankings from several spaces as one ranking, best score first, ties by id."""
    if not others:
        return own
    rankings = [own, *others]
    hits = sorted((hit for ranking in rankings for hit in ranking.hits), key=lambda hit: (-hit.score, hit.id))
    return Ranking(
        own.lane,
        own.leg,
        tuple(hits[:fanout]),
        pooled([ranking.background for ranking in rankings if ranking.background is not None]),
        frozenset().union(*(ranking.exact for ranking in rankings)),
        next((ranking.tail for ranking in rankings if ranking.tail), None),
    )


def pooled(backgrounds: Sequence[Background]) -> Background | None:
    """The background of several spaces together, each weighted by its number of memories."""
    count = sum(one.count for one in backgrounds)
    if not count:
        return backgrounds[0] if backgrounds else None
    mean = fsum(one.count * one.mean for one in backgrounds) / count
    variance = fsum(one.count * (one.deviation**2 + (one.mean - mean) ** 2) for one in backgrounds) / count
    return Background(mean, sqrt(variance), count)


async def by_space(
    space: str, ids: Sequence[str], read: Callable[[str, Sequence[str]], Awaitable[Mapping[str, T]]]
) -> Mapping[str, T]:
    """Read the ids of a merged ranking from the spaces they belong to; an id without a space belongs to `space`."""
    plain: dict[str, dict[str, str]] = {}
    for id in ids:
        own, _, owner = id.partition(SPACE_MARK)
        plain.setdefault(owner or space, {})[own] = id
    if plain.keys() <= {space}:
        return await read(space, ids)
    found = await asyncio.gather(*(read(owner, list(known)) for owner, known in plain.items()))
    return {known[own]: what for known, rows in zip(plain.values(), found, strict=True) for own, what in rows.items()}
