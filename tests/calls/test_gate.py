"""Guards: what stands before an engine that fails, freezes or will not stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from recollect.calls import gate as gates
from recollect.calls.breaker import FAILURES, FIRST_PAUSE, RECENT
from recollect.calls.deadline import HELD_UP, Deadline, Stopped, start, within
from recollect.calls.gate import Gate, Gates, Skipped
from recollect.errors import (
    BackendError,
    BackendTimeout,
    BackendUnavailable,
    EmbeddingMismatch,
    InvalidRequest,
    NotFound,
)
from tests.engine.faulty import Clock, Fault, until


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fault() -> Fault:
    return Fault()


@pytest.fixture
async def gate(clock: Clock, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    """A guard with room for two calls, which finds a call late after 50 ms."""
    monkeypatch.setattr(gates, "LONGEST", 0.05)
    gate = Gate("the engine", room=2, least=0.05, clock=clock)
    yield gate
    fault.released.set()
    await gate.close()


def asking(fault: Fault) -> Callable[[], Awaitable[int]]:
    async def ask() -> int:
        await fault.strike()
        return 7

    return ask


async def failures(gate: Gate, fault: Fault, times: int) -> None:
    for _ in range(times):
        with pytest.raises(BackendUnavailable):
            await gate.call(asking(fault))


async def test_a_healthy_engine_is_asked_and_its_answer_returned(gate: Gate, fault: Fault) -> None:
    """Once per call."""
    assert [await gate.call(asking(fault)) for _ in range(3)] == [7, 7, 7]
    assert fault.asked == 3


async def test_a_read_cut_off_at_once_is_tried_once_more(gate: Gate) -> None:
    """As by an engine that has just been started again; the caller does not notice."""
    asked = 0

    async def cut_off_at_first() -> str:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise BackendUnavailable("connection reset", backend="x")
        return "here"

    assert await gate.call(cut_off_at_first) == "here"
    assert asked == 2


@pytest.mark.parametrize(
    "error",
    [BackendTimeout("too slow", backend="x"), BackendError("broken", backend="x"), InvalidRequest("no"), KeyError("?")],
)
async def test_nothing_else_is_tried_again(gate: Gate, error: Exception) -> None:
    """A timeout has used up the time, the others would fail again."""
    asked = 0

    async def fails() -> None:
        nonlocal asked
        asked += 1
        raise error

    with pytest.raises(type(error)):
        await gate.call(fails)
    assert asked == 1


async def test_what_fails_late_is_not_tried_again(gate: Gate, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has had its chance."""
    monkeypatch.setattr(gates, "RETRY_WITHIN", -1.0)
    fault.mode = "down"
    await failures(gate, fault, 1)
    assert fault.asked == 1


async def test_an_engine_that_keeps_failing_is_no_longer_asked(gate: Gate, fault: Fault) -> None:
    """The caller is told at once, in words."""
    fault.mode = "down"
    await failures(gate, fault, FAILURES)
    asked = fault.asked
    with pytest.raises(Skipped) as caught:
        await gate.call(asking(fault))
    assert str(caught.value) == "the engine failed 5 times, last: connection refused; it is tried again in 1 s"
    assert fault.asked == asked


@pytest.mark.parametrize("error", [InvalidRequest("x"), NotFound("x"), EmbeddingMismatch("x")])
async def test_a_callers_mistake_is_not_the_engines(gate: Gate, fault: Fault, error: Exception) -> None:
    """However often it is made."""

    async def mistaken() -> None:
        raise error

    for _ in range(3 * RECENT):
        with pytest.raises(type(error)):
            await gate.call(mistaken)
    assert await gate.call(asking(fault)) == 7


async def test_a_frozen_engine_is_late_and_then_left_alone(gate: Gate, fault: Fault) -> None:
    """Its calls are given up and cancelled."""
    fault.mode = "frozen"
    for _ in range(FAILURES):
        with pytest.raises(BackendTimeout, match=r"the engine gave no answer within 0\.05 s"):
            await gate.call(asking(fault))
    with pytest.raises(Skipped, match="last: the engine gave no answer"):
        await gate.call(asking(fault))
    await until(lambda: fault.under_way == 0)


async def test_the_probe_runs_beside_the_answer(fault: Fault, clock: Clock) -> None:
    """Whoever comes when the pause is over is told at once that the engine is being tried; one call tries it, and when
    it succeeds the next caller is served.
    """
    gate = Gate("the engine", clock=clock)
    fault.mode = "down"
    await failures(gate, fault, FAILURES)
    fault.mode, asked = "stubborn", fault.asked
    clock.now += FIRST_PAUSE
    for _ in range(5):
        with pytest.raises(Skipped, match="it is being tried again now"):
            await gate.call(asking(fault))
    await until(lambda: fault.under_way == 1)
    assert fault.asked == asked + 1
    fault.released.set()
    await until(lambda: not gate.why_skipped())
    assert await gate.call(asking(fault)) == 7


async def test_a_probe_that_freezes_is_given_up(gate: Gate, fault: Fault, clock: Clock) -> None:
    """It counts as one more failure, and the next try is further away."""
    fault.mode = "frozen"
    with pytest.raises(BackendTimeout):
        await asyncio.gather(*(gate.call(asking(fault)) for _ in range(2)))
    await failures(gate, fault, FAILURES - 2)
    clock.now += FIRST_PAUSE
    with pytest.raises(Skipped):
        await gate.call(asking(fault))
    await until(lambda: "failed 6 times" in gate.why_skipped())
    assert gate.why_skipped().endswith("it is tried again in 2 s")


async def test_a_slow_engine_holds_no_more_calls_than_there_is_room(gate: Gate, fault: Fault) -> None:
    """The others wait, and are late when their time is over; another engine is not concerned."""
    fault.mode, well = "stubborn", Fault()
    other = Gate("another engine")

    async def impatient() -> int:
        return await within(0.02, gate.call(asking(fault)))

    asked = [asyncio.create_task(impatient()) for _ in range(10)]
    await until(lambda: fault.under_way > 0)
    assert await other.call(asking(well)) == 7
    late = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(error) for error in late] == [BackendTimeout] * 10
    assert (fault.asked, fault.under_way) == (2, 2)
    fault.released.set()
    await until(lambda: fault.under_way == 0)
    assert await gate.call(asking(fault)) == 7


async def test_who_waits_for_room_is_told_when_the_engine_is_given_up(gate: Gate, fault: Fault) -> None:
    """All that wait are let go together: none is sent to the engine that has just been found broken."""
    fault.mode = "frozen"
    asked = [asyncio.create_task(gate.call(asking(fault))) for _ in range(4 * FAILURES)]
    ended = await asyncio.gather(*asked, return_exceptions=True)
    kinds = [type(error) for error in ended]
    assert kinds.count(BackendTimeout) == fault.asked < 2 * FAILURES
    assert kinds.count(Skipped) == len(asked) - fault.asked


async def test_a_caller_who_leaves_early_takes_the_call_along(gate: Gate, fault: Fault) -> None:
    """Nobody knows whether the engine would have answered: that is not held against it."""
    fault.mode = "frozen"
    for number in range(3 * FAILURES):
        asked = asyncio.create_task(within(30, gate.call(asking(fault))))
        await until(lambda number=number: fault.asked > number)  # type: ignore[misc]
        asked.cancel()
        await asyncio.wait({asked})
        await until(lambda: fault.under_way == 0)
    fault.mode = "well"
    assert await gate.call(asking(fault)) == 7


async def test_a_caller_in_a_hurry_does_not_make_an_engine_look_broken(clock: Clock, fault: Fault) -> None:
    """A late caller leaves the call to go on: what answers in time for others is well."""
    gate = Gate("the engine", least=10.0, clock=clock)
    fault.mode = "stubborn"
    for _ in range(3 * FAILURES):
        with pytest.raises(BackendTimeout):
            await within(0.001, gate.call(asking(fault)))
    fault.released.set()
    await until(lambda: fault.under_way == 0)
    assert await gate.call(asking(fault)) == 7


async def test_who_allows_more_time_gets_it(fault: Fault) -> None:
    """A call is late when its caller's deadline is over, where that is longer than the guard's own patience."""
    gate = Gate("the engine", least=0.05)
    fault.mode = "stubborn"
    asked = asyncio.create_task(within(30, gate.call(asking(fault))))
    await asyncio.sleep(0.1)
    assert not asked.done()
    fault.released.set()
    assert await asked == 7


async def test_closing_stops_what_is_under_way(fault: Fault) -> None:
    """Whoever waits is told; the engine is not blamed."""
    known = Gates()
    gate = known.of("vector", Outside())
    assert gate is known.of("vector", Outside())
    assert gate is not known.of("graph", Outside())
    fault.mode = "frozen"
    asked = asyncio.create_task(gate.call(asking(fault)))
    await until(lambda: fault.under_way == 1)
    await known.close()
    with pytest.raises(Stopped, match=r"a call to qdrant \(vector\) was stopped"):
        await asked
    assert fault.under_way == 0


class Outside:
    name = "qdrant"
    in_process = False


async def test_waiting_ends_on_time_for_work_that_will_not_stop(gate: Gate, fault: Fault) -> None:
    """It ends in its own time, and its failure then concerns nobody."""
    fault.mode = "stubborn"
    with pytest.raises(BackendTimeout, match="the engine gave no answer"):
        await within(0.01, gate.call(asking(fault)))
    assert fault.under_way == 1
    fault.released.set()
    await until(lambda: fault.under_way == 0)


@pytest.fixture
async def inside(clock: Clock, fault: Fault) -> AsyncIterator[Gate]:
    """A guard before an engine inside this process, which would find a call late after a millisecond."""
    gate = Gate("the file", in_process=True, least=0.001, clock=clock)
    yield gate
    fault.released.set()
    await gate.close()


async def slow(fault: Fault, gate: Gate, patience: Deadline) -> int:
    """A call that is under way for longer than any deadline here, and ends well."""
    fault.mode = "stubborn"
    asked = start(patience, gate.call(asking(fault)))
    await until(lambda: fault.under_way == 1)
    await asyncio.sleep(0.05)
    fault.released.set()
    return await asked


async def test_an_engine_inside_this_process_has_all_the_time_it_needs(inside: Gate, fault: Fault) -> None:
    """However long it takes: nobody is late, and nothing is held against it."""
    assert await slow(fault, inside, Deadline(0.001)) == 7
    assert not inside.why_skipped()


async def test_a_callers_deadline_holds_inside_this_process_too_and_opens_no_breaker(
    inside: Gate, fault: Fault
) -> None:
    """The caller is told in time, the work is stopped, and the next one is served."""
    fault.mode = "frozen"
    for _ in range(2 * FAILURES):
        with pytest.raises(BackendTimeout, match="the file gave no answer"):
            await start(Deadline(0.01, until=time.monotonic() + 0.01), inside.call(asking(fault)))
    await until(lambda: fault.under_way == 0)
    fault.mode = "well"
    assert await inside.call(asking(fault)) == 7


async def test_what_happens_inside_is_not_charged_to_an_engine_outside(inside: Gate, gate: Gate, fault: Fault) -> None:
    """A caller that has waited for long inside this process has all of its patience left for an engine outside."""
    patience = Deadline(0.05)
    assert await slow(fault, inside, patience) == 7
    assert patience.spent == 0.0
    fault.mode = "frozen"
    with pytest.raises(BackendTimeout):
        await start(patience, gate.call(asking(fault)))
    assert patience.left == pytest.approx(0.0, abs=HELD_UP)


async def test_a_process_that_does_not_listen_is_not_the_engines_fault(fault: Fault) -> None:
    """The answer came while the processor was busy with something else: it is taken, however late that was."""
    gate = Gate("the engine", least=0.05)
    loop, begun, answer = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    async def ask() -> int:
        begun.set()
        await answer.wait()
        for _ in range(3):  # as drivers do, which read an answer in several turns of the event loop
            await asyncio.sleep(0)
        return 7

    asked = start(Deadline(0.05), gate.call(ask))
    await begun.wait()
    loop.call_soon_threadsafe(answer.set)  # it is there, and nobody comes to read it
    time.sleep(0.3)  # noqa: ASYNC251 (the processor is busy)
    assert await asked == 7


def test_waits_side_by_side_are_charged_once() -> None:
    """A lane that asks two engines at once waits as long as for one."""
    patience = Deadline(2.0)
    for since, to in ((10.0, 10.5), (10.25, 10.75), (10.0, 10.5), (11.0, 11.25)):
        patience.charge(since, to)
    assert patience.spent == 1.0


async def test_work_that_is_stopped_from_elsewhere_is_no_cancelled_caller(inside: Gate) -> None:
    """The one who waits goes on, with an error to report."""

    async def stopped() -> None:
        raise asyncio.CancelledError

    with pytest.raises(Stopped):
        await inside.call(stopped)


async def test_an_engine_that_asks_another_is_not_charged_for_it(clock: Clock, fault: Fault) -> None:
    """However often the other one fails: its own gate counts that, tries it again once, and leaves it alone."""
    other = Gate("the store", least=0.05, clock=clock)
    walks = Gate("the graph", least=0.05, clock=clock)
    fault.mode = "down"

    async def walk() -> int:
        return await other.call(asking(fault), "work")

    for number in range(FAILURES):
        with pytest.raises(BackendUnavailable, match="connection refused"):
            await walks.call(walk, "work")
        assert fault.asked == 2 * (number + 1)
    with pytest.raises(Skipped, match="the store failed 5 times"):
        await walks.call(walk, "work")
    assert not walks.why_skipped("work")


async def test_a_wait_for_another_engine_is_the_others(
    clock: Clock, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that hangs is named to the caller and given up; the time of the one that asked stood still."""
    monkeypatch.setattr(gates, "LONGEST", 0.05)
    other = Gate("the store", least=0.05, clock=clock)
    walks = Gate("the graph", least=0.05, clock=clock)
    fault.mode = "frozen"

    async def walk() -> int:
        return await other.call(asking(fault), "work")

    for _ in range(FAILURES):
        with pytest.raises(BackendTimeout, match=r"the store gave no answer within 0\.05 s"):
            await start(Deadline(0.05), walks.call(walk, "work"))
    await until(lambda: bool(other.why_skipped("work")))
    assert not walks.why_skipped("work")
