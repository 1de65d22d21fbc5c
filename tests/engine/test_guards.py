"""Guards: what stands before an engine that fails, freezes or will not stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from recollect.engine import guards
from recollect.engine.breaker import FAILURES, FIRST_PAUSE, RECENT
from recollect.engine.guards import Guard, Guards, Skipped
from recollect.errors import (
    BackendError,
    BackendTimeout,
    BackendUnavailable,
    EmbeddingMismatch,
    InvalidRequest,
    NotFound,
)
from recollect.legs.waiting import HELD_UP, Patience, Stopped, start, within
from tests.engine.faulty import Clock, Fault, until


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fault() -> Fault:
    return Fault()


@pytest.fixture
async def guard(clock: Clock, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Guard]:
    """A guard with room for two calls, which finds a call late after 50 ms."""
    monkeypatch.setattr(guards, "LONGEST", 0.05)
    guard = Guard("the engine", room=2, least=0.05, clock=clock)
    yield guard
    fault.released.set()
    await guard.close()


def asking(fault: Fault) -> Callable[[], Awaitable[int]]:
    async def ask() -> int:
        await fault.strike()
        return 7

    return ask


async def failures(guard: Guard, fault: Fault, times: int) -> None:
    for _ in range(times):
        with pytest.raises(BackendUnavailable):
            await guard.call(asking(fault))


async def test_a_healthy_engine_is_asked_and_its_answer_returned(guard: Guard, fault: Fault) -> None:
    """Once per call."""
    assert [await guard.call(asking(fault)) for _ in range(3)] == [7, 7, 7]
    assert fault.asked == 3


async def test_a_read_cut_off_at_once_is_tried_once_more(guard: Guard) -> None:
    """As by an engine that has just been started again; the caller does not notice."""
    asked = 0

    async def cut_off_at_first() -> str:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise BackendUnavailable("connection reset", backend="x")
        return "here"

    assert await guard.call(cut_off_at_first) == "here"
    assert asked == 2


@pytest.mark.parametrize(
    "error",
    [BackendTimeout("too slow", backend="x"), BackendError("broken", backend="x"), InvalidRequest("no"), KeyError("?")],
)
async def test_nothing_else_is_tried_again(guard: Guard, error: Exception) -> None:
    """A timeout has used up the time, the others would fail again."""
    asked = 0

    async def fails() -> None:
        nonlocal asked
        asked += 1
        raise error

    with pytest.raises(type(error)):
        await guard.call(fails)
    assert asked == 1


async def test_what_fails_late_is_not_tried_again(guard: Guard, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has had its chance."""
    monkeypatch.setattr(guards, "AT_ONCE", -1.0)
    fault.mode = "down"
    await failures(guard, fault, 1)
    assert fault.asked == 1


async def test_an_engine_that_keeps_failing_is_no_longer_asked(guard: Guard, fault: Fault) -> None:
    """The caller is told at once, in words."""
    fault.mode = "down"
    await failures(guard, fault, FAILURES)
    asked = fault.asked
    with pytest.raises(Skipped) as caught:
        await guard.call(asking(fault))
    assert str(caught.value) == "the engine failed 5 times, last: connection refused; it is tried again in 1 s"
    assert fault.asked == asked


@pytest.mark.parametrize("error", [InvalidRequest("x"), NotFound("x"), EmbeddingMismatch("x")])
async def test_a_callers_mistake_is_not_the_engines(guard: Guard, fault: Fault, error: Exception) -> None:
    """However often it is made."""

    async def mistaken() -> None:
        raise error

    for _ in range(3 * RECENT):
        with pytest.raises(type(error)):
            await guard.call(mistaken)
    assert await guard.call(asking(fault)) == 7


async def test_a_frozen_engine_is_late_and_then_left_alone(guard: Guard, fault: Fault) -> None:
    """Its calls are given up and cancelled."""
    fault.mode = "frozen"
    for _ in range(FAILURES):
        with pytest.raises(BackendTimeout, match=r"the engine gave no answer within 0\.05 s"):
            await guard.call(asking(fault))
    with pytest.raises(Skipped, match="last: the engine gave no answer"):
        await guard.call(asking(fault))
    await until(lambda: fault.under_way == 0)


async def test_the_probe_runs_beside_the_answer(fault: Fault, clock: Clock) -> None:
    """Whoever comes when the pause is over is told at once that the engine is being tried; one call tries it, and when
    it succeeds the next caller is served.
    """
    guard = Guard("the engine", clock=clock)
    fault.mode = "down"
    await failures(guard, fault, FAILURES)
    fault.mode, asked = "stubborn", fault.asked
    clock.now += FIRST_PAUSE
    for _ in range(5):
        with pytest.raises(Skipped, match="it is being tried again now"):
            await guard.call(asking(fault))
    await until(lambda: fault.under_way == 1)
    assert fault.asked == asked + 1
    fault.released.set()
    await until(lambda: not guard._breaker.is_open)
    assert await guard.call(asking(fault)) == 7


async def test_a_probe_that_freezes_is_given_up(guard: Guard, fault: Fault, clock: Clock) -> None:
    """It counts as one more failure, and the next try is further away."""
    fault.mode = "frozen"
    with pytest.raises(BackendTimeout):
        await asyncio.gather(*(guard.call(asking(fault)) for _ in range(2)))
    await failures(guard, fault, FAILURES - 2)
    clock.now += FIRST_PAUSE
    with pytest.raises(Skipped):
        await guard.call(asking(fault))
    await until(lambda: "failed 6 times" in guard._breaker.why_open())
    assert guard._breaker.why_open().endswith("it is tried again in 2 s")


async def test_a_slow_engine_holds_no_more_calls_than_there_is_room(guard: Guard, fault: Fault) -> None:
    """The others wait, and are late when their time is over; another engine is not concerned."""
    fault.mode, well = "stubborn", Fault()
    other = Guard("another engine")

    async def impatient() -> int:
        return await within(0.02, guard.call(asking(fault)))

    asked = [asyncio.create_task(impatient()) for _ in range(10)]
    await until(lambda: fault.under_way > 0)
    assert await other.call(asking(well)) == 7
    late = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(error) for error in late] == [BackendTimeout] * 10
    assert (fault.asked, fault.under_way) == (2, 2)
    fault.released.set()
    await until(lambda: fault.under_way == 0)
    assert await guard.call(asking(fault)) == 7


async def test_who_waits_for_room_is_told_when_the_engine_is_given_up(guard: Guard, fault: Fault) -> None:
    """All that wait are let go together: none is sent to the engine that has just been found broken."""
    fault.mode = "frozen"
    asked = [asyncio.create_task(guard.call(asking(fault))) for _ in range(4 * FAILURES)]
    ended = await asyncio.gather(*asked, return_exceptions=True)
    kinds = [type(error) for error in ended]
    assert kinds.count(BackendTimeout) == fault.asked < 2 * FAILURES
    assert kinds.count(Skipped) == len(asked) - fault.asked


async def test_a_caller_who_leaves_early_takes_the_call_along(guard: Guard, fault: Fault) -> None:
    """Nobody knows whether the engine would have answered: that is not held against it."""
    fault.mode = "frozen"
    for number in range(3 * FAILURES):
        asked = asyncio.create_task(within(30, guard.call(asking(fault))))
        await until(lambda number=number: fault.asked > number)  # type: ignore[misc]
        asked.cancel()
        await asyncio.wait({asked})
        await until(lambda: fault.under_way == 0)
    fault.mode = "well"
    assert await guard.call(asking(fault)) == 7


async def test_a_caller_in_a_hurry_does_not_make_an_engine_look_broken(clock: Clock, fault: Fault) -> None:
    """A late caller leaves the call to go on: what answers in time for others is well."""
    guard = Guard("the engine", least=10.0, clock=clock)
    fault.mode = "stubborn"
    for _ in range(3 * FAILURES):
        with pytest.raises(BackendTimeout):
            await within(0.001, guard.call(asking(fault)))
    fault.released.set()
    await until(lambda: fault.under_way == 0)
    assert await guard.call(asking(fault)) == 7


async def test_who_allows_more_time_gets_it(fault: Fault) -> None:
    """A call is late when its caller's deadline is over, where that is longer than the guard's own patience."""
    guard = Guard("the engine", least=0.05)
    fault.mode = "stubborn"
    asked = asyncio.create_task(within(30, guard.call(asking(fault))))
    await asyncio.sleep(0.1)
    assert not asked.done()
    fault.released.set()
    assert await asked == 7


async def test_closing_stops_what_is_under_way(fault: Fault) -> None:
    """Whoever waits is told; the engine is not blamed."""
    known = Guards()
    guard = known.of("vector", Outside())
    assert guard is known.of("vector", Outside())
    assert guard is not known.of("graph", Outside())
    fault.mode = "frozen"
    asked = asyncio.create_task(guard.call(asking(fault)))
    await until(lambda: fault.under_way == 1)
    await known.close()
    with pytest.raises(Stopped, match=r"a call to qdrant \(vector\) was stopped"):
        await asked
    assert fault.under_way == 0


class Outside:
    name = "qdrant"
    in_process = False


async def test_waiting_ends_on_time_for_work_that_will_not_stop(guard: Guard, fault: Fault) -> None:
    """It ends in its own time, and its failure then concerns nobody."""
    fault.mode = "stubborn"
    with pytest.raises(BackendTimeout, match="the engine gave no answer"):
        await within(0.01, guard.call(asking(fault)))
    assert fault.under_way == 1
    fault.released.set()
    await until(lambda: fault.under_way == 0)


@pytest.fixture
async def inside(clock: Clock, fault: Fault) -> AsyncIterator[Guard]:
    """A guard before an engine inside this process, which would find a call late after a millisecond."""
    guard = Guard("the file", in_process=True, least=0.001, clock=clock)
    yield guard
    fault.released.set()
    await guard.close()


async def slow(fault: Fault, guard: Guard, patience: Patience) -> int:
    """A call that is under way for longer than any deadline here, and ends well."""
    fault.mode = "stubborn"
    asked = start(patience, guard.call(asking(fault)))
    await until(lambda: fault.under_way == 1)
    await asyncio.sleep(0.05)
    fault.released.set()
    return await asked


async def test_an_engine_inside_this_process_has_all_the_time_it_needs(inside: Guard, fault: Fault) -> None:
    """However long it takes: nobody is late, and nothing is held against it."""
    assert await slow(fault, inside, Patience(0.001)) == 7
    assert not inside.why_skipped()


async def test_a_callers_deadline_holds_inside_this_process_too_and_opens_no_breaker(
    inside: Guard, fault: Fault
) -> None:
    """The caller is told in time, the work is stopped, and the next one is served."""
    fault.mode = "frozen"
    for _ in range(2 * FAILURES):
        with pytest.raises(BackendTimeout, match="the file gave no answer"):
            await start(Patience(0.01, until=time.monotonic() + 0.01), inside.call(asking(fault)))
    await until(lambda: fault.under_way == 0)
    fault.mode = "well"
    assert await inside.call(asking(fault)) == 7


async def test_what_happens_inside_is_not_charged_to_an_engine_outside(
    inside: Guard, guard: Guard, fault: Fault
) -> None:
    """A caller that has waited for long inside this process has all of its patience left for an engine outside."""
    patience = Patience(0.05)
    assert await slow(fault, inside, patience) == 7
    assert patience.spent == 0.0
    fault.mode = "frozen"
    with pytest.raises(BackendTimeout):
        await start(patience, guard.call(asking(fault)))
    assert patience.left == pytest.approx(0.0, abs=HELD_UP)


async def test_a_process_that_does_not_listen_is_not_the_engines_fault(fault: Fault) -> None:
    """The answer came while the processor was busy with something else: it is taken, however late that was."""
    guard = Guard("the engine", least=0.05)
    loop, answer = asyncio.get_running_loop(), asyncio.Event()

    async def ask() -> int:
        await answer.wait()
        for _ in range(3):  # as drivers do, which read an answer in several turns of the event loop
            await asyncio.sleep(0)
        return 7

    asked = start(Patience(0.05), guard.call(ask))
    await asyncio.sleep(0.01)
    loop.call_soon_threadsafe(answer.set)  # it is there, and nobody comes to read it
    time.sleep(0.3)  # noqa: ASYNC251 (the processor is busy)
    assert await asked == 7


def test_waits_side_by_side_are_charged_once() -> None:
    """A lane that asks two engines at once waits as long as for one."""
    patience = Patience(2.0)
    for since, to in ((10.0, 10.5), (10.25, 10.75), (10.0, 10.5), (11.0, 11.25)):
        patience.charge(since, to)
    assert patience.spent == 1.0


async def test_work_that_is_stopped_from_elsewhere_is_no_cancelled_caller(inside: Guard) -> None:
    """The one who waits goes on, with an error to report."""

    async def stopped() -> None:
        raise asyncio.CancelledError

    with pytest.raises(Stopped):
        await inside.call(stopped)
