"""Lanes run side by side; one that is slow, broken or empty is reported and spoils nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from recollect.calls.deadline import Deadline, start
from recollect.calls.gate import Gate, Skipped
from recollect.calls.shared import SharedWork
from recollect.engine.lanes import run_lanes
from recollect.errors import BackendTimeout, BackendUnavailable
from recollect.legs import LegSearch
from recollect.legs.question import Question
from recollect.recipes import Lane, Recipe
from recollect.types import Filter, Ranking, Scored
from tests.engine.faulty import until


class FakeLeg:
    """A leg that waits, fails or answers as told by the lane's name."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.released = asyncio.Event()
        self.stopped = 0
        self.gate = Gate("the engine")

    async def search(self, question: Question, lane: Lane) -> Ranking:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.01)
        self.running -= 1
        if lane.name == "slow":
            await self.gate.call(asyncio.Event().wait)
        if lane.name == "stubborn":
            await self.gate.call(self.heedless)
        if lane.name == "given up":
            raise Skipped("the engine failed 5 times", backend="fake")
        if lane.name == "down":
            raise BackendUnavailable("the engine is away", backend="fake")
        if lane.name == "buggy":
            raise KeyError("surprise")
        return Ranking(lane.name, lane.leg, () if lane.name == "empty" else (Scored("a", 1.0),))

    async def heedless(self) -> None:
        """Goes on although it is cancelled, and fails when it is too late to matter."""
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
        self.stopped += 1
        raise RuntimeError("nobody cares")


def of(leg: FakeLeg) -> Callable[[str], LegSearch]:
    return lambda _: leg


def question() -> Question:
    async def embed() -> None:
        raise AssertionError("no lane here asks for a vector")

    together = SharedWork(("embedder", "store"))
    return Question("work", "what?", Filter(), 10, embed, None, None, together=together)  # type: ignore[arg-type]


async def run(*names: str, weight: float = 1.0) -> dict[str, tuple[str, str, int]]:
    lanes = tuple(Lane(name, "vector", weight=weight, deadline=0.2) for name in names)
    answered = await run_lanes(Recipe("test", lanes), question(), of(FakeLeg()))
    return {report.lane: (report.status, report.reason, report.candidates) for report, _ in answered}


async def test_each_lane_is_reported_as_it_fared() -> None:
    """Late, failed, broken and empty lanes each get their own line; the good one answers."""
    reports = await run("good", "slow", "down", "buggy", "empty", "given up")
    assert reports == {
        "good": ("ok", "", 1),
        "slow": ("late", "the engine gave no answer within 0.2 s", 0),
        "down": ("failed", "the engine is away", 0),
        "buggy": ("failed", "KeyError: 'surprise'", 0),
        "empty": ("ok", "", 0),
        "given up": ("skipped", "the engine failed 5 times", 0),
    }


async def test_a_lane_without_weight_is_not_run() -> None:
    """It is skipped, and says why."""
    assert await run("down", weight=0.0) == {"down": ("skipped", "its weight is 0", 0)}


async def test_lanes_run_at_the_same_time() -> None:
    """Three lanes are all under way before the first one answers."""
    leg = FakeLeg()
    lanes = tuple(Lane(str(n), "vector") for n in range(3))
    await run_lanes(Recipe("test", lanes), question(), of(leg))
    assert leg.most == 3


async def test_what_lanes_share_is_made_once_and_survives_one_of_them() -> None:
    """A lane that gives up does not take the shared work away from the others."""
    made, finish = 0, asyncio.Event()

    async def make() -> int:
        nonlocal made
        made += 1
        await finish.wait()
        return 7

    asked = question()

    async def impatient() -> None:
        async with asyncio.timeout(0.01):
            await asked.together.once("x", make, "store")

    patient = asyncio.create_task(asked.together.once("x", make, "store"))
    with pytest.raises(TimeoutError):
        await impatient()
    finish.set()
    assert await patient == 7
    assert made == 1


async def test_a_lane_that_cannot_be_stopped_does_not_hold_up_the_answer() -> None:
    """It is late like another, and ends on its own."""
    leg = FakeLeg()
    lanes = (Lane("stubborn", "vector", deadline=0.05), Lane("good", "vector"))
    answered = await run_lanes(Recipe("test", lanes), question(), of(leg))
    assert [report.status for report, _ in answered] == ["late", "ok"]
    assert leg.stopped == 0
    leg.released.set()
    await until(lambda: leg.stopped == 1)


async def test_shared_work_that_cannot_be_stopped_does_not_hold_up_the_end() -> None:
    """The question lets go of it."""
    leg, asked = FakeLeg(), question()
    with pytest.raises(BackendTimeout, match=r"the embedder gave no answer within 0\.01 s"):
        await start(Deadline(0.01), asked.together.once("x", leg.heedless, "embedder"))
    asked.close()
    assert leg.stopped == 0
    leg.released.set()
    await until(lambda: leg.stopped == 1)


async def test_a_caller_who_leaves_stops_the_lanes() -> None:
    """Cancelling a recall is not held up by a lane that will not stop."""
    leg = FakeLeg()
    lanes = (Lane("stubborn", "vector", deadline=30), Lane("slow", "vector", deadline=30))
    asked = asyncio.create_task(run_lanes(Recipe("test", lanes), question(), of(leg)))
    await until(lambda: leg.most == 2 and not leg.running)
    asked.cancel()
    async with asyncio.timeout(10):
        await asyncio.wait({asked})
    assert asked.cancelled()
    leg.released.set()


async def test_lanes_wait_for_shared_work_as_long_as_their_own_deadlines_allow() -> None:
    """One is late, another has its answer from the same work."""
    asked, release = question(), asyncio.Event()

    async def make() -> int:
        await release.wait()
        return 7

    with pytest.raises(BackendTimeout):
        await start(Deadline(0.01), asked.together.once("x", make, "store"))
    patient = start(Deadline(30), asked.together.once("x", make, "store"))
    release.set()
    assert await patient == 7


async def test_what_has_ended_is_told_from_half_of_the_deadline_on() -> None:
    """At that time, and whenever another lane ends while there are more; nothing is told while lanes are quick."""
    told: list[list[str]] = []
    lanes = (Lane("good", "vector", deadline=1), Lane("slow", "vector", deadline=1))
    legs = of(FakeLeg())
    await run_lanes(
        Recipe("quick", (Lane("good", "vector", deadline=30),)), question(), legs, lambda _: told.append([])
    )
    assert told == []
    await run_lanes(Recipe("slow", lanes), question(), legs, lambda ended: told.append([r.lane for r, _ in ended]))
    assert told == [["good"]]
