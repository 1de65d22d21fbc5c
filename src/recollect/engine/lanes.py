"""Running a recipe's lanes side by side: each has its deadline, and one that fails is reported, not raised."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

from recollect.errors import BackendTimeout, RecollectError
from recollect.legs.question import Question
from recollect.recipes import Lane, Recipe
from recollect.types import LaneReport, LaneStatus, Ranking


class LegSearch(Protocol):
    """A leg: it answers a question for one lane."""

    async def search(self, question: Question, lane: Lane) -> Ranking: ...


Answered = tuple[LaneReport, Ranking | None]


async def run_lanes(recipe: Recipe, question: Question, legs: Mapping[str, LegSearch]) -> list[Answered]:
    """Every lane's report, and its ranking if it answered in time, in the recipe's order."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_run(lane, question, legs[lane.leg])) for lane in recipe.lanes]
        return [task.result() for task in tasks]
    finally:
        question.close()


async def _run(lane: Lane, question: Question, leg: LegSearch) -> Answered:
    if lane.weight == 0:
        return LaneReport(lane.name, lane.leg, "skipped", "its weight is 0"), None
    started = time.perf_counter()

    def report(status: LaneStatus, reason: str = "", candidates: int = 0) -> LaneReport:
        return LaneReport(lane.name, lane.leg, status, reason, (time.perf_counter() - started) * 1000, candidates)

    try:
        async with asyncio.timeout(lane.deadline):
            ranking = await leg.search(question, lane)
    except TimeoutError:
        return report("late", f"no answer within {lane.deadline:g} s"), None
    except BackendTimeout as error:
        return report("late", str(error)), None
    except RecollectError as error:
        return report("failed", str(error)), None
    except Exception as error:  # noqa: BLE001  # whatever a lane does, the others answer; the report names it
        return report("failed", f"{type(error).__name__}: {error}"), None
    return report("ok", candidates=len(ranking.hits)), ranking
