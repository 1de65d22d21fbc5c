"""The circuit breaker's arithmetic, on a clock that the tests move."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.engine.breaker import FAILURES, FIRST_PAUSE, LONGEST_PAUSE, RECENT, Breaker, Ticket
from tests.engine.faulty import Clock


def fail(breaker: Breaker, times: int, reason: str = "gone") -> None:
    for _ in range(times):
        breaker.failed(breaker.ticket(), reason)


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(clock)
    fail(breaker, FAILURES)
    return breaker


def probe(breaker: Breaker) -> Ticket:
    ticket = breaker.probe()
    assert ticket is not None
    return ticket


def test_it_opens_after_repeated_failures_and_says_why() -> None:
    """Four failures are borne, the fifth opens it; the words say how often, why, and when it is tried again."""
    clock = Clock()
    breaker = Breaker(clock)
    fail(breaker, FAILURES - 1, "connection refused")
    assert (breaker.is_open, breaker.why_open()) == (False, "")
    fail(breaker, 1, "no answer")
    assert breaker.is_open
    assert breaker.why_open() == "failed 5 times, last: no answer; it is tried again in 1 s"


def test_failures_among_many_successes_do_not_open_it() -> None:
    """Only the recent calls count: fewer than half of them failing is borne for ever."""
    breaker = Breaker(Clock())
    for call in range(20 * RECENT):
        if call % RECENT < FAILURES - 1:
            breaker.failed(breaker.ticket(), "now and then")
        else:
            breaker.succeeded(breaker.ticket())
    assert not breaker.is_open


def test_half_of_the_recent_calls_failing_opens_it() -> None:
    """Also when every failure is followed by a success."""
    breaker = Breaker(Clock())
    for _ in range(FAILURES - 1):
        fail(breaker, 1)
        breaker.succeeded(breaker.ticket())
    assert not breaker.is_open
    fail(breaker, 1)
    assert breaker.is_open


def test_one_probe_is_let_through_when_the_pause_is_over() -> None:
    """Not before, and not a second one beside it."""
    clock = Clock()
    breaker = opened(clock)
    clock.now += FIRST_PAUSE - 0.001
    assert breaker.probe() is None
    clock.now += 0.001
    assert breaker.why_open().endswith("it is being tried again now")
    assert breaker.probe() is not None
    assert breaker.probe() is None


def test_a_probe_that_succeeds_closes_it() -> None:
    """With a clean record: it takes as many failures as at first to open it again, and the first pause is short."""
    clock = Clock()
    breaker = opened(clock)
    clock.now += FIRST_PAUSE
    breaker.succeeded(probe(breaker))
    assert not breaker.is_open
    fail(breaker, FAILURES - 1)
    assert not breaker.is_open
    fail(breaker, 1)
    clock.now += FIRST_PAUSE
    assert breaker.probe() is not None


def test_each_probe_that_fails_doubles_the_pause_up_to_a_bound() -> None:
    """1, 2, 4, 8, then 10 s; the words count the failures."""
    clock = Clock()
    breaker = opened(clock)
    pauses = []
    for _ in range(6):
        began = clock.now
        while (ticket := breaker.probe()) is None:
            clock.now += 0.5
        pauses.append(clock.now - began)
        breaker.failed(ticket, "still gone")
    assert pauses == [1, 2, 4, 8, LONGEST_PAUSE, LONGEST_PAUSE]
    assert breaker.why_open().startswith(f"failed {FAILURES + 6} times, last: still gone")


def test_calls_that_began_before_it_opened_no_longer_count() -> None:
    """Neither to close it, nor, once it has closed, to open it again."""
    clock = Clock()
    breaker = Breaker(clock)
    old = [breaker.ticket() for _ in range(2 * FAILURES)]
    fail(breaker, FAILURES)
    breaker.succeeded(old[0])
    assert breaker.is_open
    clock.now += FIRST_PAUSE
    breaker.succeeded(probe(breaker))
    for ticket in old:
        breaker.failed(ticket, "from the bad times")
    assert not breaker.is_open


def test_a_probe_that_told_nothing_is_left_to_the_next_caller() -> None:
    """The pause is neither begun again nor lengthened."""
    clock = Clock()
    breaker = opened(clock)
    clock.now += FIRST_PAUSE
    breaker.unknown(probe(breaker))
    assert breaker.is_open
    breaker.failed(probe(breaker), "gone")
    clock.now += 2 * FIRST_PAUSE
    assert breaker.probe() is not None


@given(st.lists(st.tuples(st.sampled_from(["call", "ok", "fail", "unknown", "wait"]), st.integers(0, 20))))
def test_whatever_happens_there_is_one_probe_at_a_time_and_success_closes_it(events: list[tuple[str, int]]) -> None:
    """Calls begin and end in any order; a probe's success closes the breaker, and nothing else does."""
    clock = Clock()
    breaker = Breaker(clock)
    under_way: list[Ticket] = []
    for event, number in events:
        was_open = breaker.is_open
        if event == "wait":
            clock.now += number
        elif event == "call":
            ticket = breaker.probe() if was_open else breaker.ticket()
            if ticket is not None:
                under_way.append(ticket)
        elif under_way:
            ticket = under_way.pop(number % len(under_way))
            if event == "ok":
                breaker.succeeded(ticket)
                assert breaker.is_open == (was_open and not ticket.probe)
            elif event == "fail":
                breaker.failed(ticket, "it failed")
                assert breaker.is_open or not was_open
            else:
                breaker.unknown(ticket)
                assert breaker.is_open == was_open
        assert sum(ticket.probe for ticket in under_way) <= 1
    for ticket in under_way:
        breaker.unknown(ticket)
    clock.now += LONGEST_PAUSE
    if breaker.is_open:
        breaker.succeeded(probe(breaker))
    assert not breaker.is_open


def test_the_longest_pause_can_be_another() -> None:
    """What an answer cannot do without is tried again each second."""
    clock = Clock()
    breaker = Breaker(clock, longest_pause=FIRST_PAUSE)
    fail(breaker, FAILURES)
    for _ in range(3):
        clock.now += FIRST_PAUSE
        breaker.failed(probe(breaker), "gone")
    clock.now += FIRST_PAUSE
    assert breaker.probe() is not None
