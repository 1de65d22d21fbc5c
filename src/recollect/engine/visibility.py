"""One question over all that its caller may see: its own space, and what others share with it.

Each space is searched by itself, so that how rare a word is, and what is linked, is that space's own affair; then the
rankings of a lane are merged. Ids belong to a space, and two spaces may use the same: on its way through fusion the id
of another's memory bears the name of its space.
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

BETWEEN = "\x1f"
"""Between an id and the space it belongs to. No name can hold it. The id comes first, for ties break by it."""
STEPS_ABROAD = 1
"""How far links are followed in another's space: one step leads from what may be seen to what may be seen, and a
second might go through what may not.
"""


async def search(leg: LegSearch, question: Question, lane: Lane) -> Ranking:
    """What a leg finds in all spaces that a question is for."""
    if question.shared is None:
        return await leg.search(question, lane)
    abroad = asyncio.create_task(_abroad(leg, question, lane))
    try:
        at_home = question.at_home or lane.every_namespace
        own = await leg.search(question, lane) if at_home else Ranking(lane.name, lane.leg)
        return merged(own, await abroad, question.fanout)
    finally:
        let_go(abroad)


async def _abroad(leg: LegSearch, question: Question, lane: Lane) -> list[Ranking]:
    others = await question.abroad()
    near = replace(lane, depth=STEPS_ABROAD)
    found = await asyncio.gather(*(leg.search(other, near) for other in others))
    return [qualified(ranking, other.space) for ranking, other in zip(found, others, strict=True)]


def qualified(ranking: Ranking, space: str) -> Ranking:
    """The ranking with the name of its space in every id."""
    return replace(
        ranking,
        hits=tuple(Scored(f"{id}{BETWEEN}{space}", score) for id, score in ranking.hits),
        exact=frozenset(f"{id}{BETWEEN}{space}" for id in ranking.exact),
    )


def merged(own: Ranking, others: Sequence[Ranking], fanout: int) -> Ranking:
    """The rankings of one lane in several spaces as one, best score first, ties by id."""
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
    """How a lane scores the memories of several spaces at large, each space as much as it has memories."""
    count = sum(one.count for one in backgrounds)
    if not count:
        return backgrounds[0] if backgrounds else None
    mean = fsum(one.count * one.mean for one in backgrounds) / count
    variance = fsum(one.count * (one.deviation**2 + (one.mean - mean) ** 2) for one in backgrounds) / count
    return Background(mean, sqrt(variance), count)


async def by_space(
    space: str, ids: Sequence[str], read: Callable[[str, Sequence[str]], Awaitable[Mapping[str, T]]]
) -> Mapping[str, T]:
    """What `read` knows of ids that a merged ranking holds, under these ids; those that bear no name are of `space`."""
    plain: dict[str, dict[str, str]] = {}
    for id in ids:
        own, _, owner = id.partition(BETWEEN)
        plain.setdefault(owner or space, {})[own] = id
    if plain.keys() <= {space}:
        return await read(space, ids)
    found = await asyncio.gather(*(read(owner, list(known)) for owner, known in plain.items()))
    return {known[own]: what for known, rows in zip(plain.values(), found, strict=True) for own, what in rows.items()}
