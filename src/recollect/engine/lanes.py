"""Runs a recipe's lanes concurrently. A lane that fails or is late is reported, not raised."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from recollect.calls.deadline import Deadline, let_go, start
from recollect.calls.gate import Skipped, in_words
from recollect.engine.visibility import search
from recollect.errors import BackendTimeout
from recollect.legs import LegSearch
from recollect.legs.question import Question
from recollect.recipes import DEADLINE, Lane, Recipe
from recollect.types import LaneReport, LaneStatus, Ranking

Answered = tuple[LaneReport, Ranking | None]


def rankings_of(answered: Sequence[Answered]) -> dict[str, Ranking]:
    """What the lanes found that answered, by lane."""
    return {report.lane: ranking for report, ranking in answered if ranking is not None}


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
        question.deadlines.append(deadline_of(lane, question))
        tasks.append(start(question.deadlines[-1], _run(lane, question, leg)))
    try:
        running = (await asyncio.wait(tasks, timeout=longest_deadline(recipe) / 2 if so_far else None))[1]
        while running and so_far:
            so_far([task.result() for task in tasks if task.done()])
            running = (await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED))[1]
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            if not task.done():
                let_go(task)
        question.close()


def deadline_of(lane: Lane, question: Question) -> Deadline:
    """By default only engines outside this process count; a deadline given by the caller covers everything."""
    return Deadline() if lane.deadline is None else Deadline(lane.deadline, question.started + lane.deadline)


def longest_deadline(recipe: Recipe) -> float:
    """Seconds until every lane has answered or is late, not counting work in this process."""
    longest = 0.0
    for lane in recipe.lanes:
        if lane.weight > 0:
            longest = max(longest, DEADLINE if lane.deadline is None else lane.deadline)
    return longest


async def _run(lane: Lane, question: Question, leg: Callable[[str], LegSearch]) -> Answered:
    def report(status: LaneStatus, reason: str = "", candidates: int = 0) -> LaneReport:
        ms = (time.monotonic() - question.started) * 1000
        return LaneReport(lane.name, lane.leg, status, reason, ms, candidates)

    if lane.weight == 0:
        return LaneReport(lane.name, lane.leg, "skipped", "its weight is 0", wanted=False), None
    try:
        ranking = await search(leg(lane.leg), question, lane)
    except Skipped as error:
        return report("skipped", in_words(error)), None
    except BackendTimeout as error:
        return report("late", in_words(error)), None
    except Exception as error:  # noqa: BLE001  # whatever a lane does, the others answer; the report names it
        return report("failed", in_words(error)), None
    return report("ok", candidates=len(ranking.hits)), ranking
