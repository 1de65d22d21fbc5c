"""One space's questions must not take an engine from the others, however hard they are and however many come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from recollect.calls import gate as gates
from recollect.calls.breaker import FAILURES, SLOW_SPACES
from recollect.calls.gate import Gate, Skipped
from recollect.errors import BackendTimeout
from recollect.text.query import PHRASES, WORDS, parse_query
from tests.engine.faulty import Clock, until


@pytest.fixture
async def gate(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    """Before an engine outside this process, which is too slow for a question after 50 ms."""
    monkeypatch.setattr(gates, "LONGEST", 0.05)
    gate = Gate("the engine", least=0.05, clock=Clock())
    yield gate
    await gate.close()


async def hard() -> int:
    await asyncio.Event().wait()
    return 0


async def easy() -> int:
    return 7


async def ask(gate: Gate, space: str, question: Callable[[], Awaitable[int]], times: int) -> set[type[BaseException]]:
    """How some questions of a space failed."""
    asked = (gate.call(question, space) for _ in range(times))
    ended = await asyncio.gather(*asked, return_exceptions=True)
    return {type(one) for one in ended if isinstance(one, BaseException)}


async def test_hard_questions_take_the_engine_from_their_own_space_alone(gate: Gate) -> None:
    """Two spaces that ask nothing but what takes too long are skipped; everybody else is served all the while."""
    for space in ("hostile", "worse"):
        assert await ask(gate, space, hard, 2 * FAILURES) == {BackendTimeout}
        await until(lambda space=space: bool(gate.why_skipped(space)))  # type: ignore[misc]
        assert await ask(gate, space, easy, 1) == {Skipped}
        assert await ask(gate, "quiet", easy, FAILURES) == set()
    assert not gate.why_skipped()


async def test_an_engine_that_is_too_slow_for_several_spaces_is_left_alone_by_all(gate: Gate) -> None:
    """Then it is the engine."""
    for number in range(SLOW_SPACES):
        assert not gate.why_skipped("quiet")
        await ask(gate, f"space {number}", hard, 2 * FAILURES)
    await until(lambda: bool(gate.why_skipped("quiet")))
    assert await ask(gate, "quiet", easy, 1) == {Skipped}


def test_a_question_of_very_many_words_looks_for_the_first() -> None:
    """Each word costs a search of the index: nobody makes one question cost thousands."""
    many = parse_query(" ".join(f"word{number}x" for number in range(5_000)) + " the")
    searched = {term.term for term in many.terms if term.names}
    assert len(searched) == WORDS
    assert {"word0x", f"word{WORDS - 1}x"} <= searched
    assert f"word{WORDS}x" not in searched


def test_a_question_of_very_many_phrases_looks_for_the_first() -> None:
    """And none of them is longer than a question may be."""
    many = parse_query(" ".join(f'"some phrase{number}x"' for number in range(1_000)))
    assert len(many.phrases) == PHRASES
    (endless,) = parse_query('"' + " ".join(f"word{number}x" for number in range(5_000)) + '"').phrases
    assert len(endless) == WORDS


def test_words_said_again_do_not_count_again() -> None:
    """A question that repeats itself is searched whole."""
    said = parse_query("whale " * 1_000 + "krill")
    assert {"whale", "krill"} <= {term.term for term in said.terms}
