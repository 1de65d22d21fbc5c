"""Recalls are counted off their path, and memories scored by what was counted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect import AsyncRecollect, AsyncSpace, BackendUnavailable, Draft, InvalidRequest, RecallFailed
from recollect.engine import quality, usage
from recollect.engine.quality import BATCH, HALF_LIFE
from recollect.engine.scoring import HOUR, Scoring
from recollect.engine.usage import HitCounter, hour_of, leg_usage
from recollect.recipes import RECIPES
from recollect.stores.sqlite.ledger import SqliteLedger
from recollect.stores.sqlite.store import SqliteStore
from recollect.types import (
    Bucket,
    Contribution,
    Hit,
    LaneReport,
    LegUsage,
    Memory,
    Recall,
    Snippet,
    Usage,
    Why,
)
from tests.conftest import FlakyEmbedder

BALANCED = RECIPES["balanced"]


def hit(*lanes: str) -> Hit:
    why = Why(Contribution(lane, 1, 1.0, 1.0, 1.0, lane.split("-")[-1]) for lane in lanes)
    return Hit(Memory("-".join(lanes), "work", "text"), 1.0, why, lambda: Snippet(""), lambda: 0.5)


def recalled(*hits: Hit, lanes: Sequence[LaneReport] = (), degraded: bool = False) -> Recall:
    return Recall(hits, degraded, tuple(lanes), 1.0, "question", "balanced")


async def settled(work: AsyncSpace, *texts: str) -> None:
    await work.remember_many(Draft(text, id=text.split()[-1]) for text in texts)
    await work.settle()


def test_a_hit_counts_for_every_leg_that_found_it() -> None:
    """Once for each leg, whichever of its lanes, and never for what is no lane: an exact match, its quality."""
    lanes = [LaneReport(lane.name, lane.leg, "ok", ms=2.0) for lane in RECIPES["sci"].lanes]
    found = leg_usage(
        RECIPES["sci"],
        lanes,
        [hit("episodic-vector", "semantic-vector", "semantic-keyword", "exact"), hit("identity-vector", "quality")],
    )
    assert found == {"vector": LegUsage(2, 3, 6.0), "keyword": LegUsage(1, 3, 6.0)}


def test_lanes_that_did_not_answer_are_counted_by_what_became_of_them() -> None:
    """Late and failed ones took their time; a skipped one was not run; one of weight 0 was not wanted."""
    recipe = BALANCED.with_(weights={"keyword": 0})
    lanes = [
        LaneReport("vector", "vector", "late", ms=2000.0),
        LaneReport("keyword", "keyword", "skipped", "its weight is 0"),
        LaneReport("graph", "graph", "skipped", "its breaker is open", ms=0.5),
    ]
    assert leg_usage(recipe, lanes, ()) == {
        "vector": LegUsage(searches=1, ms=2000.0, late=1),
        "graph": LegUsage(skipped=1),
    }
    failed = [LaneReport("vector", "vector", "failed", ms=1.0)]
    assert leg_usage(recipe, failed, ()) == {"vector": LegUsage(searches=1, ms=1.0, failed=1)}


async def test_a_recall_is_counted(work: AsyncSpace) -> None:
    """Each of its legs with what it found of the answer, in the bucket of its hour."""
    await settled(work, "the red umbrella a", "the red bicycle b")
    answer = await work.recall("red umbrella")
    again = await work.recall("nothing like it", weights={"vector": 0, "graph": 0})
    assert len(again) == 0
    used = await work.usage()
    assert (used.space, used.since, used.total.recalls, used.total.degraded) == ("work", None, 2, 0)
    assert used.total.legs["keyword"].hits == sum(any(p.lane == "keyword" for p in one.why) for one in answer)
    assert used.total.legs["vector"].hits == sum(any(p.lane == "vector" for p in one.why) for one in answer)
    assert (used.total.legs["keyword"].searches, used.total.legs["vector"].searches) == (2, 1)
    assert used.total.legs["keyword"].ms > 0
    assert sum(bucket.usage.recalls for bucket in used.buckets) == 2
    assert all(bucket.start.minute == bucket.start.second == bucket.start.microsecond == 0 for bucket in used.buckets)


async def test_degraded_and_failed_recalls_are_counted(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """A degraded answer, and a recall that had none."""
    await settled(work, "the red umbrella a")
    embedder.down = True
    assert (await work.recall("red umbrella")).degraded
    with pytest.raises(RecallFailed):
        await work.recall("red umbrella", weights={"keyword": 0, "graph": 0})
    total = (await work.usage()).total
    assert (total.recalls, total.degraded, total.failed) == (2, 1, 1)
    assert total.legs["vector"].failed == 2
    assert total.legs["keyword"].failed == 0


async def test_usage_since(client: AsyncRecollect, work: AsyncSpace) -> None:
    """A time, or how long ago; buckets that begin before its hour are left out."""
    await settled(work, "the red umbrella a")
    now = datetime.now(UTC)
    await client._store.ledger.count_usage(
        "work", [Bucket(hour_of(now - timedelta(hours=n)), Usage(1)) for n in (1, 30)]
    )
    assert (await work.usage()).total.recalls == 2
    assert (await work.usage("24h")).total.recalls == 1
    assert (await work.usage("2d")).total.recalls == 2
    assert (await work.usage(now - timedelta(hours=2))).total.recalls == 1
    assert (await work.usage((now + timedelta(days=1)).isoformat())).total == Usage()
    for wrong in ("soon", "7", "d", "-7d", 7):
        with pytest.raises(InvalidRequest, match="7d"):
            await work.usage(wrong)  # type: ignore[arg-type]


async def test_several_processes_count_together(url: str, work: AsyncSpace) -> None:
    """What one client counts is added to what another did, when each closes."""
    await settled(work, "the red umbrella a")
    for _ in range(2):
        async with AsyncRecollect(url, embedder="hashing") as other:
            await other.space("work").recall("umbrella", weights={"vector": 0, "graph": 0})
    assert (await work.usage()).total.recalls == 2
    assert (await work.get("a")).hits == 2


class NotingLedger(SqliteLedger):
    """Notes what it is told to count, and can refuse it."""

    def __init__(self) -> None:
        self.usage_told: list[tuple[str, list[Bucket]]] = []
        self.told = asyncio.Event()
        self.down = False

    async def count_usage(self, space: str, buckets: Sequence[Bucket]) -> None:
        await asyncio.sleep(0)
        if self.down:
            raise BackendUnavailable("down", backend="sqlite")
        self.usage_told.append((space, list(buckets)))
        self.told.set()


class NotingStore(SqliteStore):
    ledger: NotingLedger

    def __init__(self) -> None:
        self.ledger = NotingLedger()
        self.hits_told: list[tuple[str, dict[str, int]]] = []

    async def mark_hits(self, space: str, hits: Mapping[str, int], *, now: datetime) -> None:
        self.hits_told.append((space, dict(hits)))


async def test_counts_are_written_once_for_many_recalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush has one call for each space, however many recalls there were; nothing new, nothing written."""
    monkeypatch.setattr(usage, "hour_of", lambda moment: datetime(2026, 5, 3, tzinfo=UTC))
    store = NotingStore()
    counter = HitCounter(store)
    for _ in range(3):
        counter.count("work", BALANCED, recalled(hit("vector")))
    counter.count("home", BALANCED, recalled(degraded=True))
    assert store.ledger.usage_told == []
    await counter.close()
    await counter.flush()
    told = [(space, [bucket.usage.recalls for bucket in buckets]) for space, buckets in store.ledger.usage_told]
    assert told == [("work", [3]), ("home", [1])]
    assert store.hits_told == [("work", {"vector": 3})]


async def test_the_flush_comes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some time after the first recall, without anybody asking; and again after the next one."""
    monkeypatch.setattr(usage, "FLUSH_SECONDS", 0.0)
    store = NotingStore()
    counter = HitCounter(store)
    for _ in range(2):
        counter.count("work", BALANCED, recalled())
        await store.ledger.told.wait()
        store.ledger.told.clear()
    await counter.close()
    assert [bucket.usage.recalls for _, buckets in store.ledger.usage_told for bucket in buckets] == [1, 1]


async def test_closing_does_not_cut_off_what_is_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a flush has begun to write is written, and what was counted meanwhile as well."""
    store = NotingStore()
    counter = HitCounter(store)
    counter.count("work", BALANCED, recalled())
    flushing = asyncio.create_task(counter.flush())
    await asyncio.sleep(0)
    counter.count("work", BALANCED, recalled())
    await counter.close()
    await flushing
    assert sum(b.usage.recalls for _, told in store.ledger.usage_told for b in told) == 2


async def test_a_store_that_is_down_loses_counts_and_no_more() -> None:
    """The recall is long answered; counting goes on when the store is back."""
    store = NotingStore()
    counter = HitCounter(store)
    store.ledger.down = True
    counter.count("work", BALANCED, recalled())
    await counter.flush()
    store.ledger.down = False
    counter.count("work", BALANCED, recalled())
    await counter.close()
    assert [b.usage.recalls for _, told in store.ledger.usage_told for b in told] == [1]


async def test_score_gives_every_memory_its_quality(work: AsyncSpace) -> None:
    """By uses against the space's most and by age, null before; a hit is a tenth of a use; superseded and expired ones,
    too; nothing is lost. What was stored 90 days ago and never used has lost half. The source: "knowledge that was
    captured but never proved useful doesn't clutter results".
    """
    texts = [f"umbrella number {n}" for n in range(BATCH + 2)]
    now, long_ago = datetime.now(UTC), datetime.now(UTC) - HALF_LIFE
    of_use = {
        "0": Draft("", used=9, last_used_at=now),
        "1": Draft("", used=99, last_used_at=now),
        "2": Draft("", used=99, last_used_at=long_ago, created_at=long_ago),
        "5": Draft("", hits=90, last_hit_at=now),
        "6": Draft("", created_at=long_ago),
    }
    await work.remember_many(
        replace(of_use.get(str(n), Draft("")), text=text, id=str(n)) for n, text in enumerate(texts)
    )
    await work.settle()
    await work.supersede("3", by="4")
    before = await work.get("0")
    assert before.quality is None
    seen: list[int] = []
    rated = await work.score(on_progress=seen.append)
    assert (rated.memories, rated.changed, seen) == (len(texts), len(texts), [BATCH, len(texts)])
    qualities = [(await work.get(id)).quality for id in ("0", "1", "2", "3", "4", "5", "6")]
    assert qualities == [0.75, 1.0, 0.5, 0.5, 0.5, 0.75, 0.25]
    after = await work.get("0")
    assert (after.updated_at, after.embedding, after.used) == (before.updated_at, "ready", 9)
    assert (await work.stats()).memories == len(texts)


async def test_score_can_be_run_again(work: AsyncSpace, client: AsyncRecollect) -> None:
    """What stays the same is not written again; what was set by hand is overwritten."""
    await settled(work, "the red umbrella a", "the red bicycle b")
    assert (await work.score()).changed == 2
    assert (await work.score()).changed == 0
    await work.update("a", quality=0.9)
    await work.recall("bicycle", weights={"vector": 0, "graph": 0})
    assert (await work.score()).changed == 2
    assert [(await work.get(id)).quality for id in "ab"] == [0.5, 0.5688]
    assert await work.used("b") == 1
    assert (await work.score()).changed == 1
    assert [(await work.get(id)).quality for id in "ab"] == [0.5, 1.0]
    assert (await client.space("empty").score()).memories == 0


async def test_uses_are_told(work: AsyncSpace, client: AsyncRecollect) -> None:
    """`used` counts each id once and says how many there are; being returned is counted apart."""
    await settled(work, "the red umbrella a", "the red bicycle b")
    assert await work.used("a", "a", "nothing") == 1
    assert await work.used("a", "b") == 2
    assert await work.used() == 0
    assert await client.space("empty").used("a") == 0
    told = await work.get("a")
    assert (told.used, told.hits) == (2, 0)
    assert told.last_used_at is not None
    with pytest.raises(InvalidRequest, match="id"):
        await work.used("")


async def test_questions_that_led_to_a_use(work: AsyncSpace) -> None:
    """They are kept with the memory's id, and go when it is forgotten; one that cannot be a question is refused."""
    await settled(work, "the red umbrella a", "the red bicycle b")
    await work.used("a", "a", "nothing", query="what is red?")
    await work.used("b")
    await work.used("nothing", query="what is not there?")
    await work.used("b", query="a bicycle?")
    assert [(use.question, use.id) for use in await work.uses()] == [("what is red?", "a"), ("a bicycle?", "b")]
    with pytest.raises(InvalidRequest, match="the query is empty"):
        await work.used("a", query=" ")
    assert (await work.get("a")).used == 1
    await work.forget("a")
    assert [use.id for use in await work.uses()] == ["b"]
    assert not [line async for line in work.export() if "a bicycle?" in str(line)]


async def test_a_space_that_was_not_scored_for_a_day_is_scored_when_it_is_used(url: str) -> None:
    """In the background, by whoever uses it next; not before, so a memory stays unscored for its first day, and the
    recipe with a floor keeps it.
    """
    async with AsyncRecollect(url, embedder="hashing") as r:
        await r.space("work").remember("the red umbrella", id="a")
    async with AsyncRecollect(url, embedder="hashing") as r:
        assert len(await r.space("work").recall("umbrella", recipe="pgmemory")) == 1
    async with AsyncRecollect(url, embedder="hashing") as r:
        assert (await r.space("work").get("a")).quality is None
        await r._store.ledger.note_scoring("work", datetime.now(UTC) - timedelta(days=1))
    async with AsyncRecollect(url, embedder="hashing") as r:
        await r.space("work").recall("umbrella")
    async with AsyncRecollect(url, embedder="hashing") as r:
        assert (await r.space("work").get("a")).quality is not None


async def test_what_never_proved_useful_is_left_out_by_itself(url: str) -> None:
    """Nobody calls `score`. pgmemory: "knowledge that was captured but never proved useful doesn't clutter results"."""
    stored = datetime.now(UTC) - timedelta(days=300)
    async with AsyncRecollect(url, embedder="hashing") as r:
        work = r.space("work")
        await work.remember_many(
            Draft(f"the {id} umbrella", id=id, created_at=stored) for id in ("useful", "returned", "useless")
        )
        await work.remember("the new umbrella", id="new")
        await work.used("useful")
        await r._store.mark_hits("work", {"returned": 1}, now=datetime.now(UTC))
        assert len((await work.list(min_quality=0.05)).memories) == 4
        await r._store.ledger.note_scoring("work", datetime.now(UTC) - timedelta(days=1))
    async with AsyncRecollect(url, embedder="hashing") as r:
        await r.space("work").remember("something else", namespace="elsewhere")
    async with AsyncRecollect(url, embedder="hashing") as r:
        found = await r.space("work").recall("umbrella", recipe="pgmemory", namespaces=["default"])
        assert {hit.memory.id for hit in found} == {"useful", "returned", "new"}


async def test_scoring_that_was_cut_off_goes_on_where_it_ended(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that closes stops after the batch at hand, and the next one takes the next."""
    monkeypatch.setattr(quality, "BATCH", 1)
    async with AsyncRecollect(url, embedder="hashing") as r:
        work = r.space("work")
        await work.remember_many(Draft(f"umbrella {id}", id=id) for id in "abc")
        await r._store.ledger.note_scoring("work", None)
        for scored in ("a", "ab", "abc", "abc"):
            closing: list[asyncio.Task[None]] = []

            async def close_meanwhile(scoring: Scoring, closing: list[asyncio.Task[None]]) -> None:
                closing.append(asyncio.create_task(scoring.close()))
                await asyncio.sleep(0)

            scoring = Scoring(r._store, lambda: close_meanwhile(scoring, closing))  # noqa: B023 - called in this turn
            scoring.on_use("work")
            await asyncio.wait(scoring._tasks)
            await asyncio.gather(*closing)
            page = await work.list()
            assert "".join(m.id for m in page.memories if m.quality is not None) == scored


async def test_a_space_is_scored_by_one_at_a_time(url: str) -> None:
    """Whoever comes second finds it done."""
    async with AsyncRecollect(url, embedder="hashing") as one, AsyncRecollect(url, embedder="hashing") as other:
        await one.space("work").remember("the red umbrella", id="a")
        await one._store.ledger.note_scoring("work", None)
        claims = [
            await r._store.ledger.claim_scoring("work", before=datetime.now(UTC) - HOUR, now=datetime.now(UTC))
            for r in (one, other)
        ]
    assert claims == ["", None]


async def test_every_space_is_scored_while_scores_are_kept(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`keep_scores`, which a server calls, begins at once with those that were not scored for an hour."""
    async with AsyncRecollect(url, embedder="hashing") as r:
        noted: asyncio.Queue[str] = asyncio.Queue()
        note = r._store.ledger.note_scoring

        async def noting(space: str, scored_at: datetime | None, after: str | None = None) -> None:
            await note(space, scored_at, after)
            noted.put_nowait(space)

        for name in ("work", "home", "new"):
            await r.space(name).remember("the red umbrella", id="a")
        for name in ("work", "home"):
            await note(name, datetime.now(UTC) - HOUR)
        monkeypatch.setattr(r._store.ledger, "note_scoring", noting)
        await r.keep_scores()
        assert {await noted.get(), await noted.get()} == {"work", "home"}
        qualities = {name: (await r.space(name).get("a")).quality for name in ("work", "home", "new")}
        assert qualities == {"work": 0.5, "home": 0.5, "new": None}


async def test_a_store_that_cannot_be_scored_answers_all_the_same(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure in the background is nobody's answer; what is no failure of the store's is logged."""
    async with AsyncRecollect(url, embedder="hashing") as r:
        await r.space("work").remember("the red umbrella", id="a")

        async def refuse(*_: object, **__: object) -> str | None:
            raise next(errors)

        errors = iter([BackendUnavailable("down", backend="sqlite"), ZeroDivisionError()])
        monkeypatch.setattr(r._store.ledger, "claim_scoring", refuse)
        for told in (0, 1):
            scoring = Scoring(r._store, r._engine.hits.flush)
            scoring.on_use("work")
            await asyncio.wait(scoring._tasks)
            assert len([entry for entry in caplog.records if entry.levelname == "ERROR"]) == told


async def test_writers_go_on_while_memories_are_scored(work: AsyncSpace, client: AsyncRecollect) -> None:
    """What is forgotten, changed or added meanwhile stays so."""
    await settled(work, *(f"umbrella number {n}" for n in range(BATCH + 1)))

    async def write() -> None:
        await work.forget("7")
        await work.update("8", title="changed")
        await work.remember("something new", id="zz")

    await asyncio.gather(work.score(), write())
    assert (await work.get("8")).title == "changed"
    assert (await work.stats()).memories == BATCH + 1


async def test_a_recipe_may_weigh_by_quality(work: AsyncSpace) -> None:
    """Not unless it says so; then the better of two equals comes first, and why says what its quality did."""
    await settled(work, "red umbrella in the hall a", "red umbrella in the hall b")
    await work.update("a", quality=0.1)
    await work.update("b", quality=1.0)
    for recipe in ("novamem", "polyant", "pgmemory"):
        options: dict[str, Any] = {
            "recipe": recipe,
            "lanes": {"vector": {"kinds": []}, "keyword": {"kinds": []}},
            "limit": 1,
        }
        plain = await work.recall("red umbrella", **options)
        assert all(part.lane != "quality" for part in plain[0].why)
        found = await work.recall("red umbrella", quality_weight=0.9, **options)
        assert found[0].memory.id == "b"
        (part,) = (part for part in found[0].why if part.lane == "quality")
        assert (part.raw, part.normalised) == (1.0, 1.0)


async def test_an_exact_match_keeps_its_place_whatever_its_quality(work: AsyncSpace) -> None:
    """Who asks for invoice 12346 does not want invoice 12345, however often that was of use."""
    await settled(work, *(f"Invoice {n} was paid in May, said {n}" for n in range(12340, 12350)))
    await work.update("12346", quality=0.0)
    for n in (12345, 12347):
        await work.update(str(n), quality=1.0)
    found = await work.recall("invoice 12346", quality_weight=1.0)
    assert found[0].memory.id == "12346"
    assert found[0].score == pytest.approx(sum(part.contribution for part in found[0].why))


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan"), "much", True])
async def test_a_wrong_quality_weight_is_refused(work: AsyncSpace, weight: float) -> None:
    """It is a number from 0 to 1."""
    with pytest.raises(InvalidRequest, match="quality_weight"):
        await work.recall("umbrella", quality_weight=weight)
