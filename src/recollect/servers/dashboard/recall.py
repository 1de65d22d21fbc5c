"""*Recall*: a question, its hits with their reasons; by two recipes side by side, and why an expected memory is not
among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.responses import Response

from recollect.errors import InvalidRequest, RecallFailed, RecollectError
from recollect.recipes import RECIPES
from recollect.servers.dashboard import charts
from recollect.servers.dashboard.shell import Visit
from recollect.servers.problems import Problem, problem_of
from recollect.space import AsyncSpace
from recollect.types import Expectation, ExpectationStage, LaneReport, Recall

DIGITS = 9
"""Of a number that is asked for; int() itself refuses thousands of them."""
STAGES = ("stored", "passes the filters", "found by a lane", "kept above the cut", "in the answer")
"""What a memory passes on its way into an answer."""
LOST_AT: Mapping[ExpectationStage, int] = {
    "not stored": 0,
    "filtered": 1,
    "superseded": 1,
    "expired": 1,
    "not a candidate": 2,
    "near-copy": 3,
    "below the cut": 3,
    "found": len(STAGES),
}


class Stage(NamedTuple):
    """A stage, and whether the memory passed it: None where it never came so far."""

    name: str
    passed: bool | None


@dataclass(frozen=True, slots=True)
class Side:
    """The answer by one recipe, or why there is none."""

    recipe: str
    answer: Recall | None = None
    error: RecollectError | None = None

    @property
    def lanes(self) -> tuple[LaneReport, ...]:
        if self.answer is not None:
            return self.answer.lanes
        return self.error.lanes if isinstance(self.error, RecallFailed) else ()

    @property
    def full(self) -> float:
        return charts.fullest(self.answer or ())

    @property
    def problem(self) -> Problem | None:
        return None if self.error is None else problem_of(self.error)

    @property
    def ranks(self) -> dict[tuple[str, str], int]:
        """The place of each memory in this answer."""
        return {(hit.memory.space, hit.memory.id): rank for rank, hit in enumerate(self.answer or (), 1)}


def stages(expected: Expectation) -> list[Stage]:
    """The way of the expected memory, up to where it was lost."""
    lost = LOST_AT[expected.stage]
    return [Stage(name, None if at > lost else at < lost) for at, name in enumerate(STAGES)]


async def show(visit: Visit) -> Response:
    """The question, and what each recipe answers."""
    where = await visit.where()
    query, recipe, versus = visit.asked("q"), visit.asked("recipe", "balanced"), visit.asked("versus")
    sides = []
    if query:
        wanted = [recipe] if versus in ("", recipe) else [recipe, versus]
        sides = [await side(visit.client.space(where.space), query, one, visit) for one in wanted]
    status = max((one.problem.status for one in sides if one.problem), default=200)
    return visit.page(
        "recall.html",
        status,
        where=where,
        query=query,
        recipe=recipe,
        versus=versus,
        limit=visit.asked("limit"),
        expect=visit.asked("expect"),
        recipes=RECIPES.values(),
        sides=sides,
        stages=stages,
    )


async def side(space: AsyncSpace, query: str, recipe: str, visit: Visit) -> Side:
    """One recipe's answer. What goes wrong is shown in its place, with the question still there."""
    try:
        return Side(recipe, await space.recall(query, recipe=recipe, **options(visit)))
    except RecollectError as error:
        visit.request.state.failure = error
        return Side(recipe, error=error)


def options(visit: Visit) -> Any:
    """What was asked for beside the question, as keywords of `recall`."""
    limit, expect = visit.asked("limit"), visit.asked("expect")
    if limit and not (limit.isdecimal() and len(limit) <= DIGITS):
        raise InvalidRequest(
            f"the number of hits is {limit!r:.80}, and must be a whole number of at most {DIGITS} digits"
        )
    return ({"limit": int(limit)} if limit else {}) | ({"expect": expect} if expect else {})
