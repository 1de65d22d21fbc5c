"""The source of truth: what is remembered is there, once, until it is forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np

from recollect.conformance.samples import (
    ALL,
    HERE,
    MODEL,
    NOW,
    edges,
    found,
    ids,
    memory,
    nearest,
    raises,
    record,
    unit,
)
from recollect.errors import EmbeddingMismatch, InvalidRequest, NotFound
from recollect.ports import Store
from recollect.types import Edge, Filter, Generation, Memory

COMPLETE = Memory(
    id="complete",
    space=HERE,
    text="Grüße, 世界 'quoted' \"twice\"",
    namespace="notes",
    kind="message",
    title="A title",
    tags=("b", "a", "ü"),
    source="https://example.org/a?b=c",
    thread="t1",
    place=7,
    metadata={"n": 1, "deep": {"list": [1, 2.5, None, True, "ü"]}},
    created_at=NOW,
    updated_at=NOW + timedelta(microseconds=1),
    occurred_at=NOW - timedelta(days=365 * 80),
    expires_at=NOW + timedelta(days=365 * 80),
    superseded_by="another",
    quality=0.25,
    hits=3,
    last_hit_at=NOW,
    embedding="pending",
)
SYNTAX = "'; DROP TABLE memories; -- \" * NEAR(a b) title:x {a} %s $1 \\"


async def spec_every_field_comes_back(store: Store) -> None:
    """A memory is read back as it was stored, to the last field and the last microsecond, and as `add` answered."""
    (answer,) = await store.add(HERE, [replace(record("x"), memory=COMPLETE)])
    assert answer == (COMPLETE, True)
    assert await store.get(HERE, ["complete"]) == {"complete": COMPLETE}


async def spec_times_are_utc(store: Store) -> None:
    """Times come back in UTC: a time of another zone is the same moment, one without a zone is taken as UTC."""
    rome = timezone(timedelta(hours=2))
    naive = datetime(2024, 5, 3, 9, 0)
    await store.add(HERE, [record("a", created_at=naive, occurred_at=NOW.astimezone(rome))])
    stored = (await store.get(HERE, ["a"]))["a"]
    assert stored.created_at == naive.replace(tzinfo=UTC)
    assert stored.occurred_at == NOW
    assert stored.occurred_at.utcoffset() == timedelta(0)


async def spec_an_exact_copy_is_not_stored(store: Store) -> None:
    """Same namespace, kind and text: answered with the first, in the same batch and in a later one."""
    first, twice = await store.add(HERE, [record("a", "the same"), record("b", "the same", title="other")])
    (again,) = await store.add(HERE, [record("c", "the same")])
    assert [answer.created for answer in (first, twice, again)] == [True, False, False]
    assert {answer.memory.id for answer in (first, twice, again)} == {"a"}
    assert await ids(store) == ["a"]


async def spec_a_copy_takes_over_what_it_lacks(store: Store) -> None:
    """Tags, metadata keys, source and times join what is there, in one batch and in later ones; nothing is overwritten,
    and a record that does not join changes nothing.
    """
    await store.add(HERE, [record("a", "same", tags=("x",), metadata={"n": 1}), record("b", "same", tags=("y", "x"))])
    first = (await store.get(HERE, ["a"]))["a"]
    assert first.tags == ("x", "y")
    later = record("c", "same", tags=("z",), metadata={"n": 2, "m": 3}, source="mail", occurred_at=NOW)
    ((kept, created),) = await store.add(HERE, [replace(later, joins=False)])
    assert (kept, created) == (first, False)
    ((joined, created),) = await store.add(HERE, [later])
    assert (joined.id, joined.tags, joined.metadata, created) == ("a", ("x", "y", "z"), {"n": 1, "m": 3}, False)
    assert (joined.source, joined.occurred_at) == ("mail", NOW)
    again = record("d", "same", source="other", occurred_at=NOW + timedelta(days=1))
    assert await store.add(HERE, [again]) == [(joined, False)]
    assert await store.get(HERE, ["a"]) == {"a": joined}
    assert await ids(store, replace(ALL, tags=("z",))) == ["a"]


async def spec_a_copy_lives_as_long_as_the_longer(store: Store) -> None:
    """No expiry is the longest life; what has expired is not called back."""
    day = timedelta(days=1)
    soon, late = datetime.now(UTC) + day, datetime.now(UTC) + 2 * day
    for text, first, again, expected in (
        ("one", soon, None, None), ("two", None, soon, None), ("three", soon, late, late), ("four", late, soon, late)
    ):  # fmt: skip
        await store.add(HERE, [record(text, text, expires_at=first)])
        ((joined, created),) = await store.add(HERE, [record(f"again {text}", text, expires_at=again)])
        assert (joined.id, joined.expires_at, created) == (text, expected, False)
    await store.add(HERE, [record("gone", expires_at=NOW)])
    await store.add(HERE, [record("gone")])
    assert (await store.get(HERE, ["gone"]))["gone"].expires_at == NOW


async def spec_what_joins_at_once_is_kept(store: Store) -> None:
    """Of many copies that bring a tag each, every tag is there in the end."""
    await store.add(HERE, [record("a", "same")])
    await asyncio.gather(*(store.add(HERE, [record(f"copy {n}", "same", tags=(f"t{n}",))]) for n in range(10)))
    assert sorted((await store.get(HERE, ["a"]))["a"].tags) == [f"t{n}" for n in range(10)]


async def spec_a_title_that_joins_is_found(store: Store) -> None:
    """By its words; a vector that comes with it takes the place of the old one, and without one the memory waits."""
    await store.set_generation(MODEL)
    for id, vector in (("a", unit(0, 1)), ("b", None)):
        await store.add(HERE, [record(id, vector=unit(1))])
        ((joined, _),) = await store.add(HERE, [record("copy", f"memory {id}", title=f"umbrella {id}", vector=vector)])
        assert (joined.id, joined.title) == (id, f"umbrella {id}")
        assert joined.embedding == ("pending" if vector is None else "ready")
    assert await found(store, "umbrella a") == ["a", "b"]
    assert await nearest(store, unit(0, 1)) == ["a"]


async def spec_an_update_keeps_what_copies_are_known_by(store: Store) -> None:
    """A turn that was given no place is still the original of its copies after another field of it has changed."""
    await store.add(HERE, [record("a", "same", thread="t")])
    await store.update(HERE, "a", {"tags": ("x",)}, now=NOW)
    assert [answer.memory.id for answer in await store.add(HERE, [record("b", "same", thread="t")])] == ["a"]


async def spec_the_same_text_elsewhere_is_no_copy(store: Store) -> None:
    """The same text in another namespace, kind or space is another memory."""
    batch = [record("a", "same"), record("b", "same", namespace="other"), record("c", "same", kind="message")]
    assert all(answer.created for answer in await store.add(HERE, batch))
    assert (await store.add("there", [record("a", "same", space="there")]))[0].created


async def spec_what_holds_no_more_is_no_copy(store: Store) -> None:
    """What was superseded or has expired may be said again, before and after it, in the same batch and in a later one;
    only the same id is the same memory.
    """
    expired: dict[str, Any] = {"expires_at": NOW}
    superseded: dict[str, Any] = {"superseded_by": "another"}
    for batch in ([expired, {}, expired], [superseded, expired]):
        records = [record(f"{len(batch)}{n}", "the same", **fields) for n, fields in enumerate(batch)]
        assert all(answer.created for answer in await store.add(HERE, records))
    again = [memory("30", "the same", **expired), memory("a", "the same"), memory("b", "the same", **expired)]
    assert [answer and answer.id for answer in await store.copies(HERE, again)] == ["30", "31", None]


async def spec_the_same_id_is_not_stored_again(store: Store) -> None:
    """An id that is taken keeps its first memory, even when the text is new."""
    answers = await store.add(HERE, [record("a", "first"), record("a", "second")])
    answers += await store.add(HERE, [record("a", "third")])
    assert [(answer.memory.text, answer.created) for answer in answers] == [
        ("first", True),
        ("first", False),
        ("first", False),
    ]


async def spec_answers_come_in_the_order_of_the_records(store: Store) -> None:
    """`add` answers each record at its own position."""
    await store.add(HERE, [record("b", "old")])
    answers = await store.add(HERE, [record("c"), record("x", "old"), record("a")])
    assert [answer.memory.id for answer in answers] == ["c", "b", "a"]
    assert await store.add(HERE, []) == []


async def spec_copies_says_what_add_would_answer(store: Store) -> None:
    """`copies` finds the same id and the exact copy without storing anything."""
    await store.add(HERE, [record("a", "old")])
    answers = await store.copies(HERE, [memory("a", "new"), memory("b", "old"), memory("c", "new")])
    assert [answer and answer.id for answer in answers] == ["a", "a", None]
    assert await ids(store) == ["a"]


async def spec_get_leaves_out_what_is_not_there(store: Store) -> None:
    """`get` returns what exists, superseded and expired included, in the order asked for."""
    await store.add(HERE, [record("a", superseded_by="b"), record("b", expires_at=NOW - timedelta(days=1))])
    assert list(await store.get(HERE, ["b", "nothing", "a"])) == ["b", "a"]
    assert await store.get(HERE, []) == {}


async def spec_list_goes_through_all_in_id_order(store: Store) -> None:
    """Pages follow each other without gaps and repetitions; the last one has no cursor."""
    await store.add(HERE, [record(f"{number:02}") for number in (4, 2, 0, 3, 1)])
    assert await _pages(store) == [["00", "01"], ["02", "03"], ["04"]]
    assert (await store.list(HERE, ALL, limit=5)).cursor is None


async def spec_list_can_begin_at_the_end(store: Store) -> None:
    """Newest first: the pages backwards, with cursors that go on downwards."""
    await store.add(HERE, [record(f"{number:02}") for number in (4, 2, 0, 3, 1)])
    assert await _pages(store, newest_first=True) == [["04", "03"], ["02", "01"], ["00"]]
    assert (await store.list(HERE, ALL, limit=5, newest_first=True)).cursor is None


async def _pages(store: Store, *, newest_first: bool = False) -> list[list[str]]:
    """The ids on each page of two."""
    pages, after = [], None
    while True:
        page = await store.list(HERE, ALL, limit=2, after=after, newest_first=newest_first)
        pages.append([memory.id for memory in page.memories])
        if (after := page.cursor) is None:
            return pages


async def spec_update_changes_what_is_named(store: Store) -> None:
    """An update changes the named fields and `updated_at`, and answers with the memory as it is then stored."""
    await store.add(HERE, [replace(record("x"), memory=COMPLETE)])
    later = NOW + timedelta(hours=1)
    changes: dict[str, Any] = {
        "text": "new",
        "title": "",
        "kind": "fact",
        "namespace": "other",
        "tags": ("z",),
        "source": "",
        "metadata": {"k": "v"},
        "occurred_at": None,
        "expires_at": None,
        "quality": 0.5,
        "thread": "t2",
        "place": 3,
    }
    updated = await store.update(HERE, "complete", changes, now=later)
    assert updated == replace(COMPLETE, **changes, updated_at=later)
    assert await store.get(HERE, ["complete"]) == {"complete": updated}
    assert await ids(store, replace(ALL, tags=("z",), include_superseded=True)) == ["complete"]
    assert await ids(store, replace(ALL, tags=("a",), include_superseded=True)) == []


async def spec_update_of_nothing(store: Store) -> None:
    """Updating what is not there, or what cannot be changed, is refused and changes nothing."""
    await store.add(HERE, [record("a")])
    before = await store.get(HERE, ["a"])
    with raises(NotFound, "nothing"):
        await store.update(HERE, "nothing", {"text": "x"}, now=NOW)
    with raises(InvalidRequest, "colour"):
        await store.update(HERE, "a", {"text": "x", "colour": "red"}, now=NOW)
    with raises(InvalidRequest, "id"):
        await store.update(HERE, "a", {"id": "b"}, now=NOW)
    assert await store.get(HERE, ["a"]) == before


async def spec_update_makes_no_copies(store: Store) -> None:
    """An update that would make an exact copy of another memory is refused; the hash follows the text."""
    await store.add(HERE, [record("a", "one"), record("b", "two")])
    with raises(InvalidRequest, "'a'"):
        await store.update(HERE, "b", {"text": "one"}, now=NOW)
    await store.update(HERE, "a", {"text": "three"}, now=NOW)
    await store.update(HERE, "b", {"text": "one"}, now=NOW)
    assert (await store.add(HERE, [record("c", "three")]))[0].memory.id == "a"


async def spec_update_of_the_text_replaces_words_and_vector(store: Store) -> None:
    """A new text is found by its own words only, and waits for its own vector; so does one with a new title."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", "an old umbrella", vector=unit(1))])
    assert (await store.update(HERE, "a", {"text": "a red bicycle"}, now=NOW)).embedding == "pending"
    assert await found(store, "umbrella") == []
    assert await found(store, "bicycle") == ["a"]
    assert await nearest(store, unit(1)) == []
    await store.update(HERE, "a", {"text": "a blue bicycle"}, vector=unit(0, 1), now=NOW)
    assert (await store.get(HERE, ["a"]))["a"].embedding == "ready"
    assert np.allclose((await store.vectors(HERE, ["a"]))["a"], unit(0, 1))
    assert (await store.update(HERE, "a", {"title": "A gift"}, now=NOW)).embedding == "pending"
    assert await store.vectors(HERE, ["a"]) == {}


async def spec_update_of_another_field_keeps_the_vector(store: Store) -> None:
    """What changes neither title nor text leaves the vector and the links alone."""
    await store.set_generation(MODEL)
    link = [Edge("a", "b", "similar")]
    await store.add(HERE, [record("b"), record("a", vector=unit(1), edges=link, linked=True)])
    assert (await store.update(HERE, "a", {"quality": 1.0, "text": "memory a"}, now=NOW)).embedding == "ready"
    assert await nearest(store, unit(1)) == ["a"]
    assert await edges(store) == link
    assert await store.unlinked(HERE, limit=10) == []


async def spec_a_place_needs_a_thread(store: Store) -> None:
    """An update that gives a place to a memory without a thread is refused; with a thread it is fine."""
    await store.add(HERE, [record("a")])
    for changes in ({"place": 3}, {"place": 3, "thread": None}):
        with raises(InvalidRequest, "'a'", "3"):
            await store.update(HERE, "a", changes, now=NOW)
    assert (await store.update(HERE, "a", {"place": 3, "thread": "t"}, now=NOW)).place == 3


async def spec_forget_leaves_nothing(store: Store) -> None:
    """A forgotten memory is in no list, word, vector or link; the count says how many there were."""
    await store.set_generation(MODEL)
    link = [Edge("a", "b")]
    await store.add(HERE, [record("b"), record("a", "an umbrella", vector=unit(1), tags=("t",), edges=link)])
    assert await store.forget(HERE, ["a", "nothing"]) == 1
    assert await store.forget(HERE, ["a"]) == 0
    assert await store.get(HERE, ["a"]) == {}
    assert await ids(store) == ["b"]
    assert await found(store, "umbrella") == []
    assert await nearest(store, unit(1)) == []
    assert await store.vectors(HERE, ["a"]) == {}
    assert await edges(store) == []


async def spec_what_was_forgotten_can_be_remembered_again(store: Store) -> None:
    """The same text and id are new again, and nothing of the old memory clings to them."""
    await store.add(HERE, [record("b"), record("a", "same", tags=("old",), edges=[Edge("a", "b")])])
    await store.forget(HERE, ["a"])
    assert (await store.add(HERE, [record("a", "same")]))[0].created
    assert await ids(store, replace(ALL, tags=("old",))) == []
    assert await edges(store) == []


async def spec_hits_are_counted(store: Store) -> None:
    """`mark_hits` counts each answer and keeps the latest time; unknown ids do no harm."""
    await store.add(HERE, [record("a"), record("b")])
    await store.mark_hits(HERE, {"a": 2, "nothing": 1}, now=NOW + timedelta(hours=1))
    await store.mark_hits(HERE, {"a": 1}, now=NOW)
    stored = await store.get(HERE, ["a", "b"])
    assert (stored["a"].hits, stored["a"].last_hit_at) == (3, NOW + timedelta(hours=1))
    assert (stored["b"].hits, stored["b"].last_hit_at) == (0, None)


async def spec_stats_count_a_space(store: Store) -> None:
    """`spaces` names the spaces, and `stats` says what one holds; a space that nobody used holds nothing."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1)), record("b", kind="message"), record("c", namespace="n")])
    await store.add("another", [record("z", space="another")])
    await store.link(HERE, [Edge("a", "b")])
    await store.supersede(HERE, "b", "a", now=NOW)
    assert list(await store.spaces()) == ["another", HERE]
    stats = await store.stats(HERE)
    assert (stats.space, stats.memories, stats.superseded, stats.pending, stats.edges) == (HERE, 3, 1, 2, 1)
    assert dict(stats.kinds) == {"fact": 2, "message": 1}
    assert dict(stats.namespaces) == {"default": 2, "n": 1}
    assert (await store.stats("nobody")).memories == 0


async def spec_one_model_makes_all_vectors(store: Store) -> None:
    """The first generation stays; another model, or other dimensions, is a mismatch that says what to do."""
    assert await store.generation() is None
    await store.set_generation(MODEL)
    await store.set_generation(MODEL)
    assert await store.generation() == MODEL
    for other in (Generation("other", 4), Generation(MODEL.model, 8)):
        with raises(EmbeddingMismatch, MODEL.model, other.model, str(other.dimensions), "reembed"):
            await store.set_generation(other)
    assert await store.generation() == MODEL


async def spec_a_vector_of_another_size_is_refused(store: Store) -> None:
    """A vector that does not fit stores nothing of its batch."""
    await store.set_generation(MODEL)
    with raises(EmbeddingMismatch, "2", "4"):
        await store.add(HERE, [record("a", vector=unit(1)), record("b", vector=np.ones(2, dtype=np.float32))])
    assert await ids(store) == []


async def spec_a_batch_brings_its_links(store: Store) -> None:
    """Records bring links to each other and to what is there; an end that was a copy is the memory it copies."""
    await store.add(HERE, [record("old", "same")])
    batch = [record("a", edges=[Edge("a", "b", "next", 0.5), Edge("a", "copy")]), record("b"), record("copy", "same")]
    await store.add(HERE, batch)
    linked = await edges(store)
    assert sorted(linked, key=lambda edge: edge.target) == [Edge("a", "b", "next", 0.5), Edge("a", "old")]


async def spec_a_batch_is_stored_whole_or_not_at_all(store: Store) -> None:
    """A link that cannot be stores nothing of its batch."""
    with raises(InvalidRequest):
        await store.add(HERE, [record("a", edges=[Edge("a", "b", strength=2.0)]), record("b")])
    assert await ids(store) == []


async def spec_syntax_is_only_text(store: Store) -> None:
    """SQL and query syntax in any field is stored, found and filtered as the text that it is."""
    stored = record(
        SYNTAX, SYNTAX, namespace=SYNTAX, kind=SYNTAX, title=SYNTAX, tags=(SYNTAX,), source=SYNTAX, thread=SYNTAX
    )
    await store.add(HERE, [stored, record("other")])
    where = Filter((SYNTAX,), (SYNTAX,), (SYNTAX,), SYNTAX, SYNTAX, now=NOW)
    assert await ids(store, where) == [SYNTAX]
    assert await store.visible(HERE, [SYNTAX, "other"], where) == {SYNTAX}
    assert list(await store.get(HERE, [SYNTAX])) == [SYNTAX]
    await store.link(HERE, [Edge(SYNTAX, "other", SYNTAX)])
    assert await store.unlink(HERE, SYNTAX, "other", SYNTAX) == 1
    assert await store.forget(HERE, [SYNTAX]) == 1
