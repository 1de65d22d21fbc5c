"""Running a recipe's lanes side by side: each has its deadline, and one that fails is reported, not raised."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from recollect.engine.guards import Skipped, in_words
from recollect.errors import BackendTimeout
from recollect.legs.question import Question
from recollect.legs.waiting import within
from recollect.recipes import Lane, Recipe
from recollect.types import LaneReport, LaneStatus, Ranking

LAST_WORDS = 0.01
"""Seconds beyond its deadline in which a lane can still say what kept it waiting, which it alone knows."""


class LegSearch(Protocol):
    """A leg: it answers a question for one lane."""

    async def search(self, question: Question, lane: Lane) -> Ranking: ...


Answered = tuple[LaneReport, Ranking | None]


async def run_lanes(
    recipe: Recipe,
    question: Question,
    legs: Mapping[str, LegSearch],
    so_far: Callable[[Sequence[Answered]], None] = lambda _: None,
) -> list[Answered]:
    """Every lane's report, and its ranking if it answered in time, in the recipe's order.

    On time in any case: a lane whose engine cannot be stopped is left to end on its own. `so_far` is told of the lanes
    that have ended when half of the longest deadline is over, and again whenever another one ends after that.
    """
    tasks: list[asyncio.Task[Answered]] = []
    slow = False

    def half_is_over() -> None:
        nonlocal slow
        slow = True
        tell()

    def tell(_: object = None) -> None:
        if slow:
            so_far([task.result() for task in tasks if task.done() and not task.cancelled()])

    timer = asyncio.get_running_loop().call_later(longest_deadline(recipe) / 2, half_is_over)
    try:
        async with asyncio.TaskGroup() as group:
            for lane in recipe.lanes:
                tasks.append(group.create_task(_run(lane, question, legs[lane.leg])))
                tasks[-1].add_done_callback(tell)
        return [task.result() for task in tasks]
    finally:
        timer.cancel()
        question.close()


def longest_deadline(recipe: Recipe) -> float:
    """Seconds until every lane that is run has answered or is late."""
    return max((lane.deadline for lane in recipe.lanes if lane.weight > 0), default=0.0)


async def _run(lane: Lane, question: Question, leg: LegSearch) -> Answered:
    if lane.weight == 0:
        return LaneReport(lane.name, lane.leg, "skipped", "its weight is 0", wanted=False), None
    started = time.perf_counter()

    def report(status: LaneStatus, reason: str = "", candidates: int = 0) -> LaneReport:
        return LaneReport(lane.name, lane.leg, status, reason, (time.perf_counter() - started) * 1000, candidates)

    try:
        ranking = await within(lane.deadline + LAST_WORDS, leg.search(question, lane))
    except Skipped as error:
        return report("skipped", in_words(error)), None
    except BackendTimeout as error:
        return report("late", in_words(error)), None
    except TimeoutError:
        return report("late", f"no answer within {lane.deadline:g} s"), None
    except Exception as error:  # noqa: BLE001  # whatever a lane does, the others answer; the report names it
        return report("failed", in_words(error)), None
    return report("ok", candidates=len(ranking.hits)), ranking
