"""Runs a recipe's lanes concurrently, each over every space that the question may see. A lane that fails or is late is
reported, not raised.

Each space is searched separately, so word statistics and links stay within a space; then each lane's rankings are
merged. Two spaces may use the same id, so during fusion the id of a shared memory carries the name of its space.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import fsum, sqrt
from typing import TypeVar

from recollect.calls.deadline import Deadline, let_go, start
from recollect.calls.gate import Skipped, in_words
from recollect.errors import BackendTimeout
from recollect.legs import LegSearch
from recollect.legs.question import Question
from recollect.recipes import DEADLINE, Lane, Recipe
from recollect.types import Background, LaneReport, LaneStatus, Ranking, Scored

T = TypeVar("T")
Answered = tuple[LaneReport, Ranking | None]

SPACE_MARK = "\x1f"
"""Separates an id from the name of its space. No name can contain it. The id comes first because ties break by id."""
SHARED_DEPTH = 1
"""How far links are followed in another space. A second step could pass through memories that are not granted."""


def rankings_of(answered: Sequence[Answered]) -> dict[str, Ranking]:
    """What the lanes found that answered, by lane."""
    rankings: dict[str, Ranking] = {}
    for report, ranking in answered:
        if ranking is not None:
            rankings[report.lane] = ranking
    return rankings


async def run_lanes(
    recipe: Recipe,
    question: Question,
    leg: Callable[[str], LegSearch],
    so_far: Callable[[Sequence[Answered]], None] | None = None,
) -> list[Answered]:
    """Every lane's report, and its ranking if it answered, in the recipe's order.

    No lane is timed here: what it asks is behind gates, which wait on its deadline. `so_far` is told of the lanes that
    have ended when half of the longest deadline is over, and again whenever another one ends.
    """
    tasks: list[asyncio.Task[Answered]] = []
    for lane in recipe.lanes:
        # By default only engines outside this process count; a deadline given by the caller covers everything.
        own = Deadline() if lane.deadline is None else Deadline(lane.deadline, question.started + lane.deadline)
        question.deadlines.append(own)
        tasks.append(start(own, _run(lane, question, leg)))
    try:
        running = (await asyncio.wait(tasks, timeout=longest_deadline(recipe) / 2 if so_far else None))[1]
        while running and so_far:
            so_far([task.result() for task in tasks if task.done()])
            running = (await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED))[1]
        return [*map(asyncio.Task.result, tasks)]
    finally:
        for task in tasks:
            if not task.done():
                let_go(task)
        question.close()


def longest_deadline(recipe: Recipe) -> float:
    """Seconds until every lane has answered or is late, not counting work in this process."""
    longest = 0.0
    for lane in recipe.lanes:
        if lane.weight > 0:
            longest = max(longest, DEADLINE if lane.deadline is None else lane.deadline)
    return longest


async def _run(lane: Lane, question: Question, leg: Callable[[str], LegSearch]) -> Answered:
    if lane.weight == 0:
        return LaneReport(lane.name, lane.leg, "skipped", "its weight is 0", wanted=False), None
    status: LaneStatus = "ok"
    reason = ""
    ranking: Ranking | None = None
    try:
        search = leg(lane.leg).search if question.shared is None else partial(_search_all, leg(lane.leg))
        ranking = await search(question, lane)
    except Skipped as error:
        status, reason = "skipped", in_words(error)
    except BackendTimeout as error:
        status, reason = "late", in_words(error)
    except Exception as error:  # noqa: BLE001  # whatever a lane does, the others answer; the report names it
        status, reason = "failed", in_words(error)
    ms = (time.monotonic() - question.started) * 1000
    return LaneReport(lane.name, lane.leg, status, reason, ms, len(ranking.hits) if ranking else 0), ranking


async def _search_all(leg: LegSearch, question: Question, lane: Lane) -> Ranking:
    """What a leg finds in the question's own space and in those that share with it."""
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
