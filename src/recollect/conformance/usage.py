"""How a space is used, counted by the hour, and what its memories are worth by that."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from recollect.conformance.samples import ALL, HERE, MODEL, NOW, ids, nearest, record, unit
from recollect.ports import USES, Store
from recollect.types import Bucket, LegUsage, Usage, Use

HOUR = timedelta(hours=1)
FIRST = NOW.replace(minute=0, second=0, microsecond=0)
VECTOR = LegUsage(hits=5, searches=2, ms=1.5, late=1)
GRAPH = LegUsage(searches=1, ms=0.25, failed=1, skipped=3)
ONE = Usage(recalls=2, degraded=1, legs={"vector": VECTOR, "graph": GRAPH})


async def spec_usage_is_added_up_by_the_hour(store: Store) -> None:
    """What is counted for an hour is added to what was; hours come oldest first, from a given one on."""
    await store.add(HERE, [record("a")])
    other = Usage(recalls=1, failed=1, legs={"vector": LegUsage(hits=1), "keyword": LegUsage(hits=7, skipped=1)})
    await store.ledger.count_usage(HERE, [Bucket(FIRST + HOUR, other), Bucket(FIRST, ONE)])
    await store.ledger.count_usage(HERE, [Bucket(FIRST, other)])
    assert list(await store.ledger.usage(HERE, FIRST)) == [Bucket(FIRST, ONE + other), Bucket(FIRST + HOUR, other)]
    assert list(await store.ledger.usage(HERE, FIRST + HOUR)) == [Bucket(FIRST + HOUR, other)]
    assert list(await store.ledger.usage(HERE, FIRST + 2 * HOUR)) == []


async def spec_an_hour_may_have_no_legs(store: Store) -> None:
    """A recall that no leg had to do with is counted, and counting nothing does no harm."""
    await store.add(HERE, [record("a")])
    await store.ledger.count_usage(HERE, [Bucket(FIRST, Usage(recalls=1))])
    await store.ledger.count_usage(HERE, [])
    assert list(await store.ledger.usage(HERE, FIRST)) == [Bucket(FIRST, Usage(recalls=1))]


async def spec_many_count_at_once(store: Store) -> None:
    """Counts of several at the same time are all there, whatever the order of their hours."""
    await store.add(HERE, [record("a")])
    hours = [Bucket(FIRST + n * HOUR, ONE) for n in range(3)]
    await asyncio.gather(*(store.ledger.count_usage(HERE, hours if n % 2 else hours[::-1]) for n in range(10)))
    assert [bucket.usage.recalls for bucket in await store.ledger.usage(HERE, FIRST)] == [20, 20, 20]
    assert {bucket.usage.legs["vector"].hits for bucket in await store.ledger.usage(HERE, FIRST)} == {50}


async def spec_a_space_without_memories_counts_nothing(store: Store) -> None:
    """A space begins with its first memory."""
    await store.ledger.count_usage(HERE, [Bucket(FIRST, ONE)])
    assert list(await store.ledger.usage(HERE, FIRST)) == []
    assert list(await store.spaces()) == []


async def spec_questions_that_led_to_a_use(store: Store) -> None:
    """They come back in the order in which they were noted; what is not there is ignored, and so is an empty space."""
    asked = [Use("who paid?", "a", NOW), Use("which invoice?", "b", NOW + HOUR), Use("which invoice?", "a", NOW + HOUR)]
    await store.ledger.note_uses(HERE, asked)
    assert list(await store.ledger.uses(HERE)) == []
    assert list(await store.spaces()) == []
    await store.add(HERE, [record("a"), record("b")])
    await store.ledger.note_uses(HERE, [asked[0], Use("nothing?", "nothing", NOW)])
    await store.ledger.note_uses(HERE, asked[1:])
    await store.ledger.note_uses(HERE, [])
    assert list(await store.ledger.uses(HERE)) == asked


async def spec_the_newest_uses_of_a_space_are_kept(store: Store) -> None:
    """Those of another space have nothing to do with it."""
    await store.add(HERE, [record("a")])
    await store.add("another", [record("a", space="another")])
    await store.ledger.note_uses("another", [Use("there", "a", NOW)])
    await store.ledger.note_uses(HERE, [Use(f"question {n}", "a", NOW) for n in range(USES)])
    await store.ledger.note_uses(HERE, [Use("one more", "a", NOW)])
    kept = [use.question for use in await store.ledger.uses(HERE)]
    assert (len(kept), kept[0], kept[-1]) == (USES, "question 1", "one more")
    assert [use.question for use in await store.ledger.uses("another")] == ["there"]


async def spec_uses_go_with_the_memory(store: Store) -> None:
    """A question may say what the memory said: nothing of it stays when that is forgotten."""
    await store.add(HERE, [record("a"), record("b")])
    await store.ledger.note_uses(HERE, [Use("one", "a", NOW), Use("two", "b", NOW)])
    await store.forget(HERE, ["a"])
    assert list(await store.ledger.uses(HERE)) == [Use("two", "b", NOW)]
    await store.add(HERE, [record("a")])
    assert list(await store.ledger.uses(HERE)) == [Use("two", "b", NOW)]


async def spec_most_useful_of_a_space(store: Store) -> None:
    """Uses of the most useful memory and a share of its hits, and 0 when there are none."""
    assert await store.most_useful(HERE, 0.25) == 0
    await store.add(HERE, [record("a"), record("b")])
    assert await store.most_useful(HERE, 0.25) == 0
    await store.mark_hits(HERE, {"a": 2, "b": 3}, now=NOW)
    await store.mark_hits(HERE, {"a": 2}, now=NOW)
    assert await store.most_useful(HERE, 0.25) == 1
    await store.mark_used(HERE, ["b"], now=NOW)
    assert await store.most_useful(HERE, 0.25) == 1.75


async def spec_uses_are_counted(store: Store) -> None:
    """`mark_used` counts each id once, keeps the latest time, says how many there are, and changes nothing else."""
    assert await store.mark_used(HERE, ["a"], now=NOW) == 0
    await store.add(HERE, [record("a"), record("b", used=4, last_used_at=NOW)])
    before = await store.get(HERE, ["a", "b"])
    assert (before["b"].used, before["b"].last_used_at) == (4, NOW)
    assert await store.mark_used(HERE, ["a", "b", "nothing"], now=NOW + HOUR) == 2
    assert await store.mark_used(HERE, ["a"], now=NOW) == 1
    assert await store.mark_used(HERE, [], now=NOW) == 0
    assert await store.get(HERE, ["a", "b"]) == {
        "a": replace(before["a"], used=2, last_used_at=NOW + HOUR),
        "b": replace(before["b"], used=5, last_used_at=NOW + HOUR),
    }


async def spec_scoring_is_claimed_by_one(store: Store) -> None:
    """A space that begins is up to date. When it is due, one of several is told so, and where to begin; then it is not
    due until the time has come again.
    """
    now = datetime.now(UTC)
    assert await store.ledger.claim_scoring(HERE, before=now + HOUR, now=now) is None
    await store.add(HERE, [record("a")])
    assert await store.ledger.claim_scoring(HERE, before=now - HOUR, now=now) is None
    later = now + 2 * HOUR
    claims = await asyncio.gather(*(store.ledger.claim_scoring(HERE, before=now + HOUR, now=later) for _ in range(5)))
    assert [claim for claim in claims if claim is not None] == [""]
    await store.ledger.note_scoring(HERE, None, "a")
    assert await store.ledger.claim_scoring(HERE, before=now, now=later) == "a"
    await store.ledger.note_scoring(HERE, later)
    assert await store.ledger.claim_scoring(HERE, before=later - HOUR, now=later + HOUR) is None
    assert await store.ledger.claim_scoring(HERE, before=later, now=later + HOUR) == ""


async def spec_set_qualities_changes_nothing_else(store: Store) -> None:
    """Not the time of the last change, the vector or the hits; what has the quality already is not counted."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1), quality=0.25), record("b", vector=unit(1)), record("c")])
    await store.mark_hits(HERE, {"a": 1}, now=NOW)
    before = await store.get(HERE, ["a", "b", "c"])
    assert await store.set_qualities(HERE, {"a": 0.25, "b": 0.5, "gone": 1.0}) == 1
    assert await store.set_qualities(HERE, {"a": 0.75, "b": 0.5}) == 1
    assert await store.set_qualities(HERE, {}) == 0
    after = await store.get(HERE, ["a", "b", "c"])
    assert after == before | {"a": replace(before["a"], quality=0.75), "b": replace(before["b"], quality=0.5)}
    assert len(await store.vectors(HERE, ["a", "b"])) == 2


async def spec_a_new_quality_is_filtered_by_at_once(store: Store) -> None:
    """`min_quality` goes by the quality that was set last, in lists and in searches that were made before."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record(id, vector=unit(1)) for id in ("a", "b")])
    good = replace(ALL, min_quality=0.5)
    assert await nearest(store, unit(1), good) == ["a", "b"]
    await store.set_qualities(HERE, {"a": 0.49, "b": 0.5})
    assert await nearest(store, unit(1), good) == await ids(store, good) == ["b"]
    await store.set_qualities(HERE, {"a": 1.0})
    assert await nearest(store, unit(1), good) == ["a", "b"]


async def spec_a_vector_index_is_told_of_a_new_quality(store: Store) -> None:
    """For it filters by quality, too; what did not change is not told again."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record(id, vector=unit(1), quality=0.5) for id in ("a", "b")])
    await store.ledger.feed("index", "vector")
    await store.ledger.delivered("index", await store.ledger.waiting("index", limit=10))
    await store.set_qualities(HERE, {"a": 0.5, "b": 0.75})
    assert [entry.id for entry in await store.ledger.waiting("index", limit=10)] == ["b"]
