"""Running a recipe's lanes side by side: each has its deadline, and one that fails is reported, not raised."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from recollect.engine.guards import Skipped, in_words
from recollect.errors import BackendTimeout
from recollect.legs.question import Question
from recollect.legs.waiting import let_go, start
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
    started = question.started
    half = started + longest_deadline(recipe) / 2
    ended: dict[str, Answered] = {lane.name: _unwanted(lane) for lane in recipe.lanes if lane.weight == 0}
    running = {
        start(started + lane.deadline + LAST_WORDS - time.monotonic(), legs[lane.leg].search(question, lane)): lane
        for lane in recipe.lanes
        if lane.weight > 0
    }
    done_at: dict[asyncio.Task[Ranking], float] = {}
    for task in running:
        task.add_done_callback(lambda task: done_at.setdefault(task, time.monotonic()))
    try:
        while running:
            now = time.monotonic()
            next_look = min(started + lane.deadline + LAST_WORDS for lane in running.values())
            if now < half:  # nobody is told of a single lane's end
                await asyncio.wait(running, timeout=min(next_look, half) - now)
            else:
                await asyncio.wait(running, timeout=next_look - now, return_when=asyncio.FIRST_COMPLETED)
            now = time.monotonic()
            for task, lane in list(running.items()):
                if task.done() or now >= started + lane.deadline + LAST_WORDS:
                    del running[task]
                    ended[lane.name] = _answered(lane, task, (done_at.get(task, now) - started) * 1000)
            if now >= half:
                so_far(list(ended.values()))
        return [ended[lane.name] for lane in recipe.lanes]
    finally:
        for task in running:
            let_go(task)
        question.close()


def longest_deadline(recipe: Recipe) -> float:
    """Seconds until every lane that is run has answered or is late."""
    return max((lane.deadline for lane in recipe.lanes if lane.weight > 0), default=0.0)


def _unwanted(lane: Lane) -> Answered:
    return LaneReport(lane.name, lane.leg, "skipped", "its weight is 0", wanted=False), None


def _answered(lane: Lane, task: asyncio.Task[Ranking], ms: float) -> Answered:
    """How a lane ended, or that it has not."""

    def report(status: LaneStatus, reason: str = "", candidates: int = 0) -> LaneReport:
        return LaneReport(lane.name, lane.leg, status, reason, ms, candidates)

    if not task.done():
        let_go(task)
        return report("late", f"no answer within {lane.deadline:g} s"), None
    try:
        ranking = task.result()
    except Skipped as error:
        return report("skipped", in_words(error)), None
    except BackendTimeout as error:
        return report("late", in_words(error)), None
    except TimeoutError:
        return report("late", f"no answer within {lane.deadline:g} s"), None
    except asyncio.CancelledError:  # by whoever closes what it asked: nobody else cancels a lane that has time
        return report("failed", "it was stopped while under way"), None
    except Exception as error:  # noqa: BLE001  # whatever a lane does, the others answer; the report names it
        return report("failed", in_words(error)), None
    return report("ok", candidates=len(ranking.hits)), ranking
