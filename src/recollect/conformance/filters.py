"""Filters mean the same wherever one looks: in lists, by words, by meaning and along links."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from recollect.conformance.capabilities import offers
from recollect.conformance.samples import ALL, HERE, MODEL, NOW, found, ids, nearest, reached, record, unit
from recollect.ports import Store
from recollect.types import Edge, Filter, Record

EVERYTHING = Filter(include_superseded=True, include_expired=True)
HOUR = timedelta(hours=1)


async def _check(store: Store, records: list[Record], cases: dict[Filter, str]) -> None:
    """Store `records`, all saying "umbrella", all in one direction, all linked to a hub; then each filter must let
    through the ids of its case (one letter each), whichever way one looks.
    """
    await store.set_generation(MODEL)
    batch = [
        replace(given, vector=unit(1), memory=replace(given.memory, text=f"umbrella {given.memory.id}"))
        for given in records
    ]
    await store.add(HERE, [*batch, record("hub", kind="hub")])
    if offers(store, "links"):
        await store.link(HERE, [Edge("hub", given.memory.id) for given in batch])
    for where, expected in cases.items():
        await _check_everywhere(store, where, [given.memory.id for given in batch], sorted(expected))


async def _check_everywhere(store: Store, where: Filter, candidates: list[str], expected: list[str]) -> None:
    seen = {
        "list": [id for id in await ids(store, where) if id != "hub"],
        "visible": sorted(await store.visible(HERE, candidates, where)),
        "vectors": sorted(await nearest(store, unit(1), where, limit=100)),
    }
    if offers(store, "words"):
        seen["words"] = sorted(await found(store, "umbrella", where, limit=100))
    if offers(store, "links"):
        seen["links"] = sorted(await reached(store, ["hub"], where, limit=100))
    wrong = {way: result for way, result in seen.items() if result != expected}
    assert not wrong, f"{where} should let through {expected}, but: {wrong}"


async def spec_kinds(store: Store) -> None:
    """`kinds` lets through any of the named ones."""
    records = [record("a", kind="fact"), record("b", kind="message"), record("c", kind="chunk")]
    cases = {("fact",): "a", ("fact", "chunk"): "ac", ("none",): "", (): "abc"}
    await _check(store, records, {Filter(kinds=kinds): expected for kinds, expected in cases.items()})


async def spec_namespaces(store: Store) -> None:
    """`namespaces` lets through any of the named ones."""
    records = [record("a"), record("b", namespace="x"), record("c", namespace="y")]
    await _check(store, records, {Filter(namespaces=("default",)): "a", Filter(namespaces=("x", "y")): "bc"})


async def spec_tags(store: Store) -> None:
    """`tags` asks for all of them, each whole, and in its own case."""
    records = [record("a", tags=("x", "y")), record("b", tags=("x",)), record("c"), record("d", tags=("xy", "X"))]
    cases = {("x",): "ab", ("y", "x"): "a", ("x", "z"): "", ("X",): "d"}
    await _check(store, records, {Filter(tags=tags): expected for tags, expected in cases.items()})


async def spec_source_prefix(store: Store) -> None:
    """`source_prefix` is literal: no character in it is a wildcard, and case counts."""
    sources = {"a": "git/a_b%", "b": "git/axb%c", "c": "git/a_b", "d": "Git/a_b", "e": "", "f": "git/\U0010ffffx"}
    cases = {
        Filter(source_prefix="git/"): "abcf",
        Filter(source_prefix="git/a_b"): "ac",
        Filter(source_prefix="git/a_b%"): "a",
        Filter(source_prefix="git/*"): "",
        Filter(source_prefix="git/\U0010ffff"): "f",
        Filter(source_prefix="\U0010ffff"): "",
    }
    await _check(store, [record(id, source=source) for id, source in sources.items()], cases)


async def spec_thread(store: Store) -> None:
    """`thread` lets through one thread."""
    records = [record("a", thread="t"), record("b", thread="u"), record("c"), record("d", thread="t")]
    await _check(store, records, {Filter(thread="t"): "ad", Filter(thread="v"): ""})


async def spec_time_range(store: Store) -> None:
    """`since` is inclusive and `until` exclusive, on when it happened or else when it was stored."""
    records = [
        record("a", occurred_at=NOW),
        record("b", occurred_at=NOW + HOUR),
        record("c", created_at=NOW + HOUR),
        record("d", created_at=NOW + 9 * HOUR, occurred_at=NOW - HOUR),
    ]
    cases = {
        Filter(since=NOW): "abc",
        Filter(until=NOW + HOUR): "ad",
        Filter(since=NOW, until=NOW + HOUR): "a",
        Filter(since=NOW + timedelta(microseconds=1)): "bc",
    }
    await _check(store, records, cases)


async def spec_quality_keeps_the_unscored(store: Store) -> None:
    """`min_quality` is a floor for what was scored; what never was is kept."""
    records = [record("a", quality=0.2), record("b", quality=0.5), record("c")]
    await _check(store, records, {Filter(min_quality=0.5): "bc", Filter(min_quality=0.0): "abc"})


async def spec_superseded_is_left_out(store: Store) -> None:
    """What was superseded is seen only when asked for."""
    records = [record("a", superseded_by="b"), record("b")]
    await _check(store, records, {ALL: "b", Filter(include_superseded=True): "ab"})


async def spec_expired_is_left_out(store: Store) -> None:
    """What expires at or before `now` is seen only when asked for."""
    records = [record("a", expires_at=NOW), record("b", expires_at=NOW + HOUR), record("c")]
    cases = {Filter(now=NOW): "bc", Filter(now=NOW - HOUR): "abc", Filter(now=NOW, include_expired=True): "abc"}
    await _check(store, records, cases)


async def spec_without_now_it_is_now(store: Store) -> None:
    """A filter that does not say when asks about this moment."""
    await _check(store, [record("a", expires_at=NOW), record("b")], {Filter(): "b"})


async def spec_all_together(store: Store) -> None:
    """A memory has to pass every part of a filter."""
    wanted: dict[str, Any] = {
        "kind": "message",
        "namespace": "n",
        "tags": ("x", "y"),
        "source": "s/1",
        "thread": "t",
        "quality": 0.9,
    }
    spoilt: dict[str, Any] = {
        "kind": "fact",
        "namespace": "o",
        "tags": ("x",),
        "source": "z",
        "thread": "u",
        "quality": 0.1,
    }
    near_misses = [record(id, **{**wanted, field: spoilt[field]}) for id, field in zip("bcdefg", spoilt, strict=True)]
    where = Filter(("message",), ("n",), ("x", "y"), "s/", "t", NOW, NOW + HOUR, 0.5, now=NOW)
    await _check(store, [record("a", **wanted), *near_misses], {where: "a", EVERYTHING: "abcdefg"})


async def spec_filters_come_before_the_limit(store: Store) -> None:
    """A narrow filter still fills the answer, however many better hits it hides."""
    await store.set_generation(MODEL)
    crowd = [record(f"m{number:03}", f"umbrella umbrella {number}", vector=unit(1)) for number in range(300)]
    rare = [record(f"z{n}", f"there was an umbrella in corner {n}", vector=unit(1, 1), kind="rare") for n in range(3)]
    await store.add(HERE, [record("hub"), *crowd, *rare])
    links = [Edge("hub", given.memory.id, strength=1.0) for given in crowd]
    await store.link(HERE, [*links, *(Edge("hub", given.memory.id, strength=0.1) for given in rare)])
    where = Filter(kinds=("rare",))
    assert await nearest(store, unit(1), where, limit=3) == ["z0", "z1", "z2"]
    assert sorted(await found(store, "umbrella", where, limit=3)) == ["z0", "z1", "z2"]
    assert await reached(store, ["hub"], where, limit=3) == ["z0", "z1", "z2"]


async def spec_long_sources_are_stored_and_found(store: Store) -> None:
    """A source may be as long as a draft's, in whatever script, and is found by any of its beginnings."""
    for letter in ("a", "ж", "語", "🜁"):
        source = letter * 2000
        await store.add(HERE, [record(letter, source=source), record(letter + "!", source=source[:-1] + "!")])
        for prefix, expected in ((letter, 2), (source[:1000], 2), (source, 1), (source[:1000] + "!", 0)):
            page = await store.list(HERE, Filter(source_prefix=prefix, now=NOW), limit=10)
            assert len(page.memories) == expected, (letter, len(prefix))
