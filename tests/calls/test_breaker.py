"""The circuit breaker's arithmetic, on a clock that the tests move."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.calls.breaker import FAILURES, FIRST_PAUSE, LONGEST_PAUSE, RECENT, SPACES, Breaker, SpaceBreakers, Ticket
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


def time_out(breakers: SpaceBreakers, space: str, times: int) -> None:
    """So many times, as long as it is let through."""
    for _ in range(times):
        if breakers.open_for(space) is None:
            breakers.failed(breakers.ticket(space), f"{space} waited in vain", timed_out=True)


def test_timeouts_of_one_space_or_two_close_the_engine_to_these_alone() -> None:
    """Their questions may be hard; others are served, and the words say whose timeouts they were."""
    breakers = SpaceBreakers(Clock())
    for space in ("hard", "harder"):
        time_out(breakers, space, 4 * RECENT)
        opened = breakers.open_for(space)
        assert opened is not None
        assert opened.why_open() == f"failed 5 times, last: {space} waited in vain; it is tried again in 1 s"
    assert breakers.open_for("quiet") is None
    assert not breakers.all.is_open


def test_timeouts_of_three_spaces_close_it_to_all() -> None:
    """Also where others are served in between; and when one probe succeeds, it is open to all again."""
    clock = Clock()
    breakers = SpaceBreakers(clock)
    for space in ("one", "two", "three"):
        assert breakers.open_for("quiet") is None
        for _ in range(FAILURES):
            time_out(breakers, space, 1)
            for _ in range(RECENT):
                breakers.succeeded(breakers.ticket("quiet"))
    assert breakers.open_for("quiet") is breakers.all
    clock.now += FIRST_PAUSE
    ticket = breakers.probe("quiet")
    assert ticket is not None
    breakers.succeeded(ticket)
    assert [breakers.open_for(space) for space in ("one", "two", "three", "quiet")] == [None] * 4


def test_a_frozen_engine_is_found_out_by_spaces_that_ask_once_each() -> None:
    """None of them times out five times; together they do."""
    breakers = SpaceBreakers(Clock())
    for number in range(FAILURES):
        assert not breakers.all.is_open
        time_out(breakers, f"space {number}", 1)
    assert breakers.all.is_open


def test_a_space_tries_the_engine_again_for_itself() -> None:
    """A probe that fails keeps that space away for longer, one that succeeds lets it in; the others do not notice."""
    clock = Clock()
    breakers = SpaceBreakers(clock)
    time_out(breakers, "hard", FAILURES)
    clock.now += FIRST_PAUSE
    ticket = breakers.probe("hard")
    assert ticket is not None
    assert breakers.probe("hard") is None
    breakers.failed(ticket, "still hard", timed_out=True)
    opened = breakers.open_for("hard")
    assert opened is not None
    assert opened.why_open() == "failed 6 times, last: still hard; it is tried again in 2 s"
    clock.now += 2 * FIRST_PAUSE
    ticket = breakers.probe("hard")
    assert ticket is not None
    breakers.succeeded(ticket)
    assert breakers.open_for("hard") is None
    assert breakers.open_for("quiet") is None


def test_what_is_remembered_of_spaces_is_bounded() -> None:
    """Also where each of very many spaces times out once, between calls that are well."""
    breakers = SpaceBreakers(Clock())
    for number in range(3 * SPACES):
        time_out(breakers, f"space {number}", 1)
        for _ in range(RECENT):
            breakers.succeeded(breakers.ticket("quiet"))
    assert len(breakers._spaces) <= SPACES
