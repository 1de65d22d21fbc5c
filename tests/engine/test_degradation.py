"""Recalls over engines that fail, freeze or will not stop: they are answered, and the answers say what they lack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from recollect import AsyncRecollect, Recall, RecallFailed
from recollect.calls import deadline as deadlines
from recollect.calls.breaker import FAILURES, FIRST_PAUSE
from recollect.calls.deadline import Deadline
from recollect.engine import lanes
from recollect.settings import OpenAISettings, Settings
from tests.endpoint import Answer, Asked, Endpoint, embeddings
from tests.engine import faulty
from tests.engine.faulty import DEADLINE, HEALTHY, Arrangement, FaultyEmbedder, FaultyStore, arranged, until

WHALES = [f"blue whale number {n}" for n in range(20)]
SHORT = {"deadline": DEADLINE}
SECOND = {"deadline": 1.0}
"""Enough for a lane that is well, on a busy machine, too; and not long to wait for one that is not."""


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Arrangement]:
    async with arranged(tmp_path / "memory.db", *WHALES) as arrangement:
        yield arrangement


def statuses(answer: Recall) -> dict[str, str]:
    return {report.lane: report.status for report in answer.lanes}


def reason(answer: Recall, lane: str) -> str:
    return next(report.reason for report in answer.lanes if report.lane == lane)


def keyed(_: int, asked: Asked) -> Answer:
    """A provider that knows one key."""
    return embeddings(asked) if asked.key == "Bearer right" else Answer(401)


async def test_a_space_with_a_wrong_key_leaves_the_embedder_to_the_others(url: str) -> None:
    """However often it is refused, spaces with another key are served, and it is told why each time."""
    endpoint = Endpoint(keyed)
    openai = OpenAISettings(endpoint.base_url, key="right", keys={"poor": "wrong"})
    try:
        async with AsyncRecollect(settings=Settings(url, "openai:m", openai)) as recollect:
            rich, poor = recollect.space("rich"), recollect.space("poor")
            for number in range(FAILURES + 1):
                answer = await poor.recall(f"whale number {number}")
                assert statuses(answer) == {"vector": "failed", "keyword": "ok", "graph": "ok"}
                assert "check the key" in reason(answer, "vector")
            assert not (await rich.recall("another whale")).degraded
    finally:
        endpoint.close()


async def test_a_healthy_answer_lacks_nothing(memory: Arrangement) -> None:
    """Three lanes, all well, each with its time and its candidates."""
    answer = await memory.recall("blue whale")
    assert statuses(answer) == {"vector": "ok", "keyword": "ok", "graph": "ok"}
    assert all(report.candidates > 0 and report.ms > 0 and not report.reason for report in answer.lanes)
    assert not answer.degraded


async def test_many_recalls_over_a_frozen_engine_are_all_answered(memory: Arrangement) -> None:
    """32 at once: the first find it late, the later ones leave it alone and say so; when it is back, it is used."""
    memory.store.meaning.mode = "frozen"
    gate = memory.gates.of("vector", memory.store)

    lanes = {"vector": SECOND, "keyword": HEALTHY, "graph": HEALTHY}

    async def ask(n: int) -> Recall:
        return await memory.recall(f"blue whale number {n}", lanes=lanes, limit=3)

    answers = await asyncio.gather(*(ask(n) for n in range(32)))
    assert all(answer.degraded and len(answer) == 3 for answer in answers)
    assert {statuses(answer)["keyword"] for answer in answers} == {"ok"}
    assert {statuses(answer)["vector"] for answer in answers} <= {"late", "skipped"}
    await until(lambda: bool(gate.why_skipped("work")))
    asked = memory.store.meaning.asked
    later = await asyncio.gather(*(ask(n) for n in range(32)))
    assert {statuses(answer)["vector"] for answer in later} == {"skipped"}
    assert {statuses(answer)["graph"] for answer in later} == {"ok"}
    assert all(answer.degraded and len(answer) == 3 for answer in later)
    assert reason(later[0], "vector").startswith("sqlite (vector) failed 5 times, last: sqlite (vector) gave no answer")
    assert memory.store.meaning.asked == asked

    memory.store.meaning.mode = "well"
    memory.clock.now += FIRST_PAUSE
    probing = await ask(0)
    assert (probing.degraded, statuses(probing)["vector"]) == (True, "skipped")
    assert reason(probing, "vector").endswith("it is being tried again now")
    await until(lambda: not gate.why_skipped("work"))
    assert not (await memory.recall("blue whale")).degraded


@pytest.mark.parametrize("mode", ["down", "frozen", "stubborn"])
async def test_an_embedder_that_fails_leaves_words_and_links_to_answer(memory: Arrangement, mode: str) -> None:
    """The vector lane says that it was the embedder; the graph lane starts from words, in time to walk."""
    memory.embedder.fault.mode = mode  # type: ignore[assignment]
    lanes = {"vector": SHORT, "keyword": HEALTHY, "graph": SECOND}
    answer = await memory.recall("blue whale", lanes=lanes)
    assert statuses(answer) == {"vector": "failed" if mode == "down" else "late", "keyword": "ok", "graph": "ok"}
    expected = "connection refused" if mode == "down" else f"the embedder gave no answer within {DEADLINE} s"
    assert reason(answer, "vector") == expected
    assert answer.degraded
    assert len(answer) == 10


async def test_an_embedder_given_up_costs_no_time_and_known_questions_keep_their_vector(memory: Arrangement) -> None:
    """The breaker stands below the cache of questions."""
    assert not (await memory.recall("blue whale")).degraded
    memory.embedder.fault.mode = "down"
    for n in range(FAILURES):
        await memory.recall(f"whale {n}")
    asked = memory.embedder.fault.asked
    answer = await memory.recall("another whale")
    assert statuses(answer) == {"vector": "skipped", "keyword": "ok", "graph": "ok"}
    assert reason(answer, "vector").startswith("hashing-256 (embedder) failed 5 times, last: connection refused")
    assert memory.embedder.fault.asked == asked
    assert not (await memory.recall("blue whale")).degraded


async def test_two_engines_may_fail_at_once(memory: Arrangement) -> None:
    """Frozen links and a dead embedder: the words answer."""
    memory.embedder.fault.mode = "down"
    memory.store.links.mode = "frozen"
    answer = await memory.recall("blue whale", lanes={"vector": SHORT, "keyword": HEALTHY, "graph": SHORT})
    assert statuses(answer) == {"vector": "failed", "keyword": "ok", "graph": "late"}
    assert "no answer within" in reason(answer, "graph")
    assert len(answer) == 10


async def test_a_lane_left_out_on_purpose_degrades_nothing(memory: Arrangement) -> None:
    """Its weight is 0: that is the caller's choice."""
    answer = await memory.recall("blue whale", weights={"vector": 0})
    assert statuses(answer)["vector"] == "skipped"
    assert not answer.degraded


async def test_every_wanted_lane_skipped_is_a_failed_recall(memory: Arrangement) -> None:
    """An error that names the reasons; an empty, degraded answer where the recipe says so."""
    memory.store.meaning.mode = "down"
    only_meaning = {"keyword": 0, "graph": 0}
    for _ in range(FAILURES):
        with pytest.raises(RecallFailed, match="vector: connection refused"):
            await memory.recall("blue whale", weights=only_meaning)
    with pytest.raises(RecallFailed, match=r"vector: sqlite \(vector\) failed 5 times") as caught:
        await memory.recall("blue whale", weights=only_meaning)
    assert [report.status for report in caught.value.lanes] == ["skipped", "skipped", "skipped"]
    empty = await memory.recall("whale", recipe="polyant", lanes={"vector": HEALTHY}, weights={"keyword": 0})
    assert (len(empty), empty.degraded) == (0, True)


async def test_weights_go_to_the_lanes_that_answered_unless_one_says_otherwise(memory: Arrangement) -> None:
    """The default recipe's scores keep their scale; a seed's missing lane adds nothing; either can be chosen."""
    only = {"graph": 0.0}
    whole = await memory.recall("blue whale number 7", weights=only)
    words = {h.memory.id: next((p.contribution for p in h.why if p.lane == "keyword"), 0.0) for h in whole}
    memory.store.meaning.mode = "down"
    renormalised = await memory.recall("blue whale number 7", weights=only)
    assert renormalised[0].score == pytest.approx(2 * words[renormalised[0].memory.id])
    as_it_is = await memory.recall("blue whale number 7", weights=only, renormalise=False)
    assert as_it_is[0].score == pytest.approx(words[as_it_is[0].memory.id])
    weights = {"keyword": 0.3, "vector": 0.7, "graph": 0.0}
    seed = await memory.recall("blue whale number 7", recipe="novamem", weights=weights)
    assert seed[0].score == pytest.approx(0.3)
    chosen = await memory.recall("blue whale number 7", recipe="novamem", weights=weights, renormalise=True)
    assert chosen[0].score == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["down", "frozen"])
async def test_a_store_that_cannot_give_the_memories_is_admitted(memory: Arrangement, mode: str) -> None:
    """The lanes answered, and nothing can be shown: an error with their reports, or what the recipe says."""
    memory.store.rows.mode = mode  # type: ignore[assignment]
    lanes = {"vector": SECOND, "keyword": SECOND}
    with pytest.raises(RecallFailed, match="the hits could not be read from sqlite") as caught:
        await memory.recall("blue whale", recipe="novamem", lanes=lanes | {"graph": SECOND})
    assert {report.status for report in caught.value.lanes} == {"ok"}
    empty = await memory.recall("blue whale", recipe="polyant", lanes=lanes)
    assert (len(empty), empty.degraded) == (0, True)


async def test_an_answer_is_ready_when_the_last_lane_turns_out_late(memory: Arrangement) -> None:
    """Halfway to the deadline it is made from the lanes that have answered: what fails after that does no harm."""
    memory.store.meaning.mode = "frozen"
    lanes = {"keyword": SECOND, "vector": SECOND}
    asked = asyncio.create_task(memory.recall("blue whale", weights={"graph": 0}, lanes=lanes))
    await until(lambda: memory.store.rows.asked == 1 and memory.store.rows.under_way == 0)
    assert not asked.done()
    memory.store.rows.mode = "frozen"
    answer = await asked
    assert (statuses(answer)["vector"], len(answer)) == ("late", 10)


async def test_an_answer_made_ahead_gives_way_to_a_better_one(memory: Arrangement) -> None:
    """A lane that answers after that, and in time, is in the answer."""
    memory.store.meaning.mode = "stubborn"
    lanes = {"keyword": {"deadline": 3.0}, "vector": {"deadline": 3.0}}
    asked = asyncio.create_task(memory.recall("blue whale", weights={"graph": 0}, lanes=lanes))
    await until(lambda: memory.store.rows.asked == 1)
    memory.store.meaning.released.set()
    answer = await asked
    assert not answer.degraded
    assert {part.lane for hit in answer for part in hit.why} == {"vector", "keyword"}


async def test_a_busy_store_is_waited_for_beyond_the_deadline(tmp_path: Path) -> None:
    """As long as it answers anybody, it will answer this one, too."""
    async with arranged(tmp_path / "memory.db", *WHALES, patience=30.0) as memory:
        memory.store.meaning.mode = "frozen"
        memory.store.rows.mode = "stubborn"

        async def answer() -> None: ...

        async def others() -> None:
            while True:
                await memory.gates.of_rows(memory.store).call(answer)
                await asyncio.sleep(0.01)

        busy = asyncio.create_task(others())
        lanes = dict.fromkeys(("keyword", "vector", "graph"), SECOND)
        asked = asyncio.create_task(memory.recall("blue whale", recipe="novamem", lanes=lanes))
        await until(lambda: memory.store.rows.under_way == 1)
        await asyncio.sleep(2 * DEADLINE)
        assert not asked.done()
        memory.store.rows.released.set()
        found = await asked
        busy.cancel()
    assert statuses(found)["vector"] == "late"
    assert len(found) == 10


async def test_diversity_that_cannot_be_had_is_admitted(memory: Arrangement) -> None:
    """The vectors to compare cannot be read: the answer stands in the order of its scores, and says so."""
    memory.store.reading_vectors.mode = "down"
    answer = await memory.recall("blue whale", recipe="pgmemory", lanes={"vector": HEALTHY, "keyword": HEALTHY})
    assert len(answer) == 5
    assert [hit.score for hit in answer] == sorted((hit.score for hit in answer), reverse=True)
    assert statuses(answer) == {"vector": "ok", "keyword": "ok"}
    assert reason(answer, "vector") == "not diversified, because its vectors could not be read: connection refused"
    assert answer.degraded


async def test_a_caller_who_leaves_takes_the_recall_along(memory: Arrangement) -> None:
    """Nothing goes on at the engines for nobody."""
    memory.store.meaning.mode = memory.store.links.mode = "frozen"
    asked = asyncio.create_task(memory.recall("blue whale"))
    await until(lambda: memory.store.meaning.under_way == 1)
    asked.cancel()
    await asyncio.wait({asked})
    assert asked.cancelled()
    await until(lambda: memory.store.meaning.under_way == 0)


async def test_what_cannot_be_read_in_time_leaves_what_was_read_before(memory: Arrangement) -> None:
    """The store hangs when a lane answers late: the answer holds what the others found, and says what it lacks."""
    memory.store.meaning.mode = "stubborn"
    asked = asyncio.create_task(memory.recall("blue whale", weights={"graph": 0}, lanes={"vector": {"deadline": 2.0}}))
    await until(lambda: memory.store.rows.asked == 1 and memory.store.rows.under_way == 0)
    memory.store.rows.mode = "frozen"
    memory.store.meaning.released.set()
    answer = await asked
    assert statuses(answer) == {"vector": "late", "keyword": "ok", "graph": "skipped"}
    assert reason(answer, "vector") == "its hits could not be read in time"
    assert (len(answer), answer.degraded) == (10, True)


class Inside(FaultyStore):
    in_process = True


class EmbedsHere(FaultyEmbedder):
    in_process = True


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Arrangement]:
    """Everything inside this process, and nothing that would wait for it longer than a moment."""
    monkeypatch.setattr(faulty, "FaultyStore", Inside)
    monkeypatch.setattr(faulty, "FaultyEmbedder", EmbedsHere)
    monkeypatch.setattr(deadlines, "STEP", 0.001)
    async with arranged(tmp_path / "memory.db", *WHALES, patience=0.001) as arrangement:
        yield arrangement


async def test_what_runs_inside_this_process_is_waited_for(here: Arrangement) -> None:
    """An embedder, a search and a reading that take longer than any deadline: the answer lacks nothing."""
    for fault in (here.embedder.fault, here.store.meaning, here.store.rows):
        fault.mode = "stubborn"
    asked = asyncio.create_task(here.recall("blue whale", lanes={}))
    for fault in (here.embedder.fault, here.store.meaning, here.store.rows):
        await until(lambda fault=fault: fault.under_way > 0)  # type: ignore[misc]
        await asyncio.sleep(0.05)
        assert not asked.done()
        fault.released.set()
    answer = await asked
    assert set(statuses(answer).values()) == {"ok"}
    assert not answer.degraded


async def test_a_deadline_that_the_caller_gives_holds_inside_this_process_too(here: Arrangement) -> None:
    """The lane is late; the rows of what the others found are read all the same, however long that takes."""
    here.store.meaning.mode = "frozen"
    here.store.rows.mode = "stubborn"
    asked = asyncio.create_task(here.recall("blue whale", weights={"graph": 0}, lanes={"vector": {"deadline": 0.05}}))
    await until(lambda: here.store.rows.under_way > 0)
    await asyncio.sleep(0.2)
    assert not asked.done()
    here.store.rows.released.set()
    answer = await asked
    assert statuses(answer) == {"vector": "late", "keyword": "ok", "graph": "skipped"}
    assert len(answer) == 10
    assert not here.gates.of("vector", here.store).why_skipped("work")


async def test_a_slow_embedder_inside_takes_nothing_from_a_store_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres and the packaged model on a busy processor: embedding takes longer than a lane waits for the store."""
    monkeypatch.setattr(faulty, "FaultyEmbedder", EmbedsHere)
    monkeypatch.setattr(lanes, "Deadline", partial(Deadline, 0.3))
    async with arranged(tmp_path / "memory.db", *WHALES, patience=0.3) as memory:
        memory.embedder.fault.mode = "stubborn"
        asked = asyncio.create_task(memory.recall("blue whale", lanes={}))
        await until(lambda: memory.embedder.fault.under_way == 1)
        await asyncio.sleep(0.5)
        memory.embedder.fault.released.set()
        answer = await asked
    assert set(statuses(answer).values()) == {"ok"}
