"""Lanes run side by side; one that is slow, broken or empty is reported and spoils nothing."""

from __future__ import annotations

import asyncio

import pytest

from recollect.engine.lanes import run_lanes
from recollect.errors import BackendUnavailable
from recollect.legs.question import Question
from recollect.recipes import Lane, Recipe
from recollect.types import Filter, Ranking, Scored


class FakeLeg:
    """A leg that waits, fails or answers as told by the lane's name."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0

    async def search(self, question: Question, lane: Lane) -> Ranking:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.01)
        self.running -= 1
        if lane.name == "slow":
            await asyncio.Event().wait()
        if lane.name == "down":
            raise BackendUnavailable("the engine is away", backend="fake")
        if lane.name == "buggy":
            raise KeyError("surprise")
        return Ranking(lane.name, () if lane.name == "empty" else (Scored("a", 1.0),))


def question() -> Question:
    async def embed() -> None:
        raise AssertionError("no lane here asks for a vector")

    return Question("work", "what?", Filter(), 10, embed, None, None)  # type: ignore[arg-type]


async def run(*names: str, weight: float = 1.0) -> dict[str, tuple[str, str, int]]:
    lanes = tuple(Lane(name, "vector", weight=weight, deadline=0.2) for name in names)
    answered = await run_lanes(Recipe("test", lanes), question(), {"vector": FakeLeg()})
    return {report.lane: (report.status, report.reason, report.candidates) for report, _ in answered}


async def test_each_lane_is_reported_as_it_fared() -> None:
    """Late, failed, broken and empty lanes each get their own line; the good one answers."""
    reports = await run("good", "slow", "down", "buggy", "empty")
    assert reports == {
        "good": ("ok", "", 1),
        "slow": ("late", "no answer within 0.2 s", 0),
        "down": ("failed", "the engine is away", 0),
        "buggy": ("failed", "KeyError: 'surprise'", 0),
        "empty": ("ok", "", 0),
    }


async def test_a_lane_without_weight_is_not_run() -> None:
    """It is skipped, and says why."""
    assert await run("down", weight=0.0) == {"down": ("skipped", "its weight is 0", 0)}


async def test_lanes_run_at_the_same_time() -> None:
    """Three lanes are all under way before the first one answers."""
    leg = FakeLeg()
    lanes = tuple(Lane(str(n), "vector") for n in range(3))
    await run_lanes(Recipe("test", lanes), question(), {"vector": leg})
    assert leg.most == 3


async def test_what_lanes_share_is_made_once_and_survives_one_of_them() -> None:
    """A lane that gives up does not take the shared work away from the others."""
    made = 0

    async def make() -> int:
        nonlocal made
        made += 1
        await asyncio.sleep(0.05)
        return 7

    asked = question()

    async def impatient() -> None:
        async with asyncio.timeout(0.01):
            await asked.once("x", make)

    patient = asyncio.create_task(asked.once("x", make))
    with pytest.raises(TimeoutError):
        await impatient()
    assert await patient == 7
    assert made == 1
