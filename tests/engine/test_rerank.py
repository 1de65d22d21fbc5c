"""The stage after fusion: what is read, what its scores do, and what happens when it is late, fails or is wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from math import nan
from typing import Any

import pytest

from recollect import AsyncRecollect, AsyncSpace, BackendUnavailable, Draft, LaneReport, Memory, Recall
from recollect.engine.rerank import Reading, trust_in
from recollect.errors import ConfigError
from recollect.ports import Reranker
from recollect.recipes import Recipe, Rerank, recipe
from recollect.settings import Settings
from tests.endpoint import Answer, Asked, Endpoint

CAREFUL = recipe("careful")


class Reader:
    """A reranker that answers as it is told, and remembers what it was given."""

    name = "reader"
    in_process = True
    languages: tuple[str, ...] = ("english",)

    def __init__(self, score: Callable[[str], float] = lambda _: 0.5) -> None:
        self._score = score
        self.read: list[str] = []
        self.closed = False

    async def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        self.read = list(passages)
        return [self._score(passage) for passage in passages]

    async def close(self) -> None:
        self.closed = True


class Broken(Reader):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    async def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        if isinstance(self._answer, Exception):
            raise self._answer
        if self._answer == "late":
            await asyncio.Event().wait()
        result: Sequence[float] = self._answer
        return result


@asynccontextmanager
async def space_of(reranker: str | Reranker, *texts: str, turns: bool = False) -> AsyncIterator[AsyncSpace]:
    async with AsyncRecollect("sqlite:///:memory:", embedder="hashing", reranker=reranker) as client:
        work = client.space("work")
        await work.remember_many([Draft(text, thread="talk" if turns else None) for text in texts])
        await work.settle()
        yield work


def report_of(answer: Recall) -> LaneReport:
    return next(report for report in answer.lanes if report.leg == "rerank")


def texts_of(answer: Recall) -> list[str]:
    return [hit.memory.text for hit in answer]


TURNS = ("Do you have a pet?", "Yes, I have two of them and they are old.", "How old are the pets that you have?")


async def test_a_turn_is_read_with_what_stands_beside_it() -> None:
    """Alone and between its neighbours; an answer is never read without its question."""
    reader = Reader()
    async with space_of(reader, *TURNS, turns=True) as work:
        await work.recall("what is the pet like?", recipe="careful")
    before, turn, after = TURNS
    assert set(reader.read) == {
        before,
        f"{before}\n{turn}",
        f"{before}\n{turn}\n{after}",
        after,
        f"{turn}\n{after}",
    }
    assert not reader.closed, "a reranker that was given is its owner's to close"


async def test_what_answers_rises() -> None:
    """A turn that the reranker is sure of comes first, whatever the lanes say; `why` holds what it added."""
    talk = ("The cat of the house is called Tom.", "It was the best of all the days that we had.")
    reader = Reader(lambda passage: 0.99 if passage == talk[1] else 0.01)
    async with space_of(reader, *talk, turns=True) as work:
        plain = await work.recall("what is the cat called?")
        careful = await work.recall("what is the cat called?", recipe="careful")
    assert texts_of(plain)[0] == talk[0]
    assert texts_of(careful)[0] == talk[1]
    part = next(part for part in careful[0].why if part.kind == "rerank")
    assert part.rank == 1
    assert part.contribution > 0
    assert report_of(careful).status == "ok"
    assert not careful.degraded


async def test_an_exact_match_keeps_its_place() -> None:
    """Who asks for an invoice by its number gets it, whatever the reranker says."""
    talk = ("We have paid the invoice 48213 for the chairs.", "The invoice that we have was for all of the chairs.")
    reader = Reader(lambda passage: 0.01 if "48213" in passage else 0.99)
    async with space_of(reader, *talk, turns=True) as work:
        answer = await work.recall("invoice 48213", recipe="careful")
    assert texts_of(answer)[0] == talk[0]


GERMAN = ("Die Rechnung wurde von uns im Mai bezahlt und das war gut.", "Das war für uns alle ein schöner Tag.")


async def test_a_language_that_it_does_not_know_is_not_trusted_to_it() -> None:
    """German memories keep the order of the lanes, however sure the reranker is."""
    for wanted in GERMAN:
        reader = Reader(lambda passage, wanted=wanted: 0.99 if wanted in passage else 0.01)  # type: ignore[misc]
        async with space_of(reader, *GERMAN, turns=True) as work:
            plain = await work.recall("invoice rechnung")
            answer = await work.recall("invoice rechnung", recipe="careful")
        assert texts_of(answer) == texts_of(plain)


def test_a_turn_is_trusted_as_far_as_it_is_prose() -> None:
    """Code in a conversation is trusted to the reranker like any other memory, and German not at all."""
    texts = {
        "prose": "I have been to the sea with all of them.",
        "code": "def total(x): return sum(x)",
        "de": GERMAN[0],
    }
    turns = {id: Memory(id, "s", text, kind="message") for id, text in texts.items()}
    readings = [Reading(id, text) for id, text in texts.items()]
    how = Rerank(turns=3.0, rest=0.25)
    assert trust_in(("english",), how, turns, readings) == {"prose": 3.0, "code": 0.25, "de": 0.0}
    facts = {id: Memory(id, "s", text) for id, text in texts.items()}
    assert trust_in(("english",), how, facts, readings) == {"prose": 0.25, "code": 0.25, "de": 0.0}
    assert trust_in((), how, facts, readings)["de"] == 0.25, "a reranker that names no languages knows all of them"


async def test_a_question_in_another_language_is_not_read() -> None:
    """The report says why, and the answer is whole: nothing failed."""
    async with space_of(reader := Reader(), "Die Rechnung wurde im Mai bezahlt.") as work:
        answer = await work.recall("Wann wurde die Rechnung bezahlt?", recipe="careful")
    assert reader.read == []
    assert (report_of(answer).status, report_of(answer).reason) == ("skipped", "reader does not know german")
    assert not answer.degraded


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        ("late", "late", "reader was not done within 0.01 s"),
        (BackendUnavailable("it is down", backend="reader"), "failed", "it is down"),
        (RuntimeError("boom"), "failed", "RuntimeError: boom"),
        ([0.5], "failed", "1 scores for 2 passages"),
        ([0.5, nan], "failed", "not between 0 and 1"),
        ([0.5, 7.0], "failed", "not between 0 and 1"),
        (["high", 0.5], "failed", ""),
        (None, "failed", ""),
    ],
)
async def test_the_fused_order_stands(answer: Any, status: str, reason: str) -> None:
    """Late, down, broken, too few scores, no numbers: the answer is that of `balanced`, and says what is missing."""
    async with space_of(Broken(answer), "The cat is called Tom.", "The dog of the house is old.") as work:
        plain = await work.recall("what is the cat called?")
        careful = await work.recall("what is the cat called?", recipe=CAREFUL.with_(rerank={"deadline": 0.01}))
    assert [(hit.memory.id, hit.score) for hit in careful] == [(hit.memory.id, hit.score) for hit in plain]
    report = report_of(careful)
    assert report.status == status
    assert reason in report.reason
    assert careful.degraded


async def test_one_that_keeps_failing_is_left_alone() -> None:
    """After some failures it is not asked for a while, and the report says so."""
    broken = Broken(BackendUnavailable("it is down", backend="reader"))
    async with space_of(broken, "The cat is called Tom.") as work:
        answers = [await work.recall("what is the cat called?", recipe="careful") for _ in range(12)]
    assert report_of(answers[0]).status == "failed"
    assert report_of(answers[-1]).status == "skipped"


async def test_only_the_best_are_read() -> None:
    """`count` bounds what a recall costs."""
    async with space_of(reader := Reader(), *(f"The cat number {n} is called Tom." for n in range(12))) as work:
        answer = await work.recall("what is the cat called?", recipe=CAREFUL.with_(rerank={"count": 3}))
    assert len(reader.read) == 3
    assert report_of(answer).candidates == 3


async def test_an_empty_space_asks_nobody() -> None:
    """Nothing to read."""
    async with space_of(reader := Reader()) as work:
        assert texts_of(await work.recall("what is the cat called?", recipe="careful")) == []
    assert reader.read == []


async def test_an_endpoint_serves_recipes() -> None:
    """`reranker="http:URL"` is asked; one that is gone costs its opinion and nothing else."""

    def longest_first(asked: Asked) -> Answer:
        items = [{"index": n, "relevance_score": len(t) / 100} for n, t in enumerate(asked.body["documents"])]
        return Answer(content=json.dumps({"results": items}).encode())

    endpoint = Endpoint(lambda _, asked: longest_first(asked))
    async with space_of(f"http:{endpoint.base_url}/rerank", "The cat is called Tom.", "It is the cat of us.") as work:
        answer = await work.recall("what is the cat called?", recipe="careful")
        assert report_of(answer).status == "ok"
        endpoint.close()
        answer = await work.recall("what is the cat called?", recipe="careful")
    assert report_of(answer).status == "failed"
    assert "cannot be reached" in report_of(answer).reason
    assert len(answer) == 2


def test_a_recipe_can_name_its_reranker() -> None:
    """A recipe without a stage gets one by a mapping, and loses it by None."""
    own: Recipe = recipe("balanced").with_(rerank={"model": "http:https://example.org/rerank", "count": 5})
    assert own.rerank == Rerank(model="http:https://example.org/rerank", count=5)
    assert own.with_(rerank=None).rerank is None


def test_a_reranker_that_does_not_exist_is_refused_when_opening() -> None:
    """Named by the client, by the settings, or by a recipe of theirs; with those that there are."""
    there = "the reranker 'bogus' does not exist: use one of local, http:URL"
    with pytest.raises(ConfigError, match=there):
        AsyncRecollect("sqlite:///:memory:", embedder="hashing", reranker="bogus")
    for settings in (
        Settings("sqlite:///:memory:", "hashing", reranker="bogus"),
        Settings("sqlite:///:memory:", "hashing", recipe={"mine": {"rerank": {"model": "bogus"}}}),
    ):
        with pytest.raises(ConfigError, match=there):
            AsyncRecollect(settings=settings)


@pytest.mark.parametrize(
    ("reader", "ok", "detail"),
    [
        (Reader(), True, "reader answers"),
        (Broken([2.0]), False, "not between 0 and 1"),
        (Broken([]), False, "0 scores"),
    ],
)
async def test_doctor_asks_the_reranker(reader: Reader, ok: bool, detail: str) -> None:
    """With one pair; what is wrong with its answer is said."""
    async with AsyncRecollect("sqlite:///:memory:", embedder="hashing", reranker=reader) as client:
        (check,) = [one for one in (await client.doctor()).checks if one.name == "reranker"]
    assert check.ok is ok
    assert detail in check.detail
