"""remember: copies, vectors that come later, models that do not match, bulk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from recollect import AsyncRecollect, AsyncSpace, Draft, EmbeddingMismatch, InvalidRequest, Memory, NotFound
from recollect.embedders.hashing import HashingEmbedder
from recollect.engine import upkeep
from recollect.engine.remember import BATCH, EMBED_BATCH
from recollect.limits import METADATA_BYTES, TAGS
from recollect.ports import Role
from tests.conftest import FlakyEmbedder

if TYPE_CHECKING:
    from recollect.types import Vectors


async def test_what_is_remembered_comes_back_as_it_was_given(work: AsyncSpace) -> None:
    """Every field survives."""
    when = datetime(2026, 5, 3, 9, 30, tzinfo=UTC)
    made = await work.remember(
        "Invoice 12345 was paid",
        title="Billing",
        kind="message",
        namespace="office",
        tags=["billing", "may"],
        source="mail:42",
        thread="t",
        place=7,
        metadata={"amount": 12.5, "nested": {"ok": True}},
        occurred_at=when,
        expires_at="2099-01-01",
    )
    assert made.created
    memory = await work.get(made.memory.id)
    assert (memory.title, memory.kind, memory.namespace, memory.source) == ("Billing", "message", "office", "mail:42")
    assert (memory.tags, memory.thread, memory.place) == (("billing", "may"), "t", 7)
    assert memory.metadata == {"amount": 12.5, "nested": {"ok": True}}
    assert memory.occurred_at == when
    assert memory.expires_at == datetime(2099, 1, 1, tzinfo=UTC)
    assert memory.embedding == "ready"


async def test_an_exact_copy_is_answered_with_the_first(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """Same namespace, kind and text: not stored twice, said so, and not embedded again."""
    first = await work.remember("The door code is 4711")
    asked = embedder.asked
    second = await work.remember("The door code is 4711", tags=["other"])
    assert (second.created, second.memory.id) == (False, first.memory.id)
    assert embedder.asked == asked
    assert (await work.remember("The door code is 4711", kind="message")).created
    assert (await work.remember("The door code is 4711", namespace="other")).created
    assert (await work.stats()).memories == 3


async def test_what_is_remembered_again_outlives_the_call(work: AsyncSpace) -> None:
    """A memory that is about to expire loses its expiry when its copy has none, and else gets the later one."""
    soon, later = datetime.now(UTC) + timedelta(seconds=30), datetime.now(UTC) + timedelta(days=1)
    for first, again, expected in ((soon, None, None), (soon, later, later), (later, soon, later), (None, soon, None)):
        text = f"The key is under the mat, {first} and {again}"
        one = await work.remember(text, expires_at=first)
        other = await work.remember(text, expires_at=again)
        assert (other.created, other.memory.id, other.memory.expires_at) == (False, one.memory.id, expected)
        assert await work.get(one.memory.id) == other.memory
    for how in ("in bulk", "imported"):
        text = f"The key is with the neighbours, {how}"
        id = (await work.remember(text, expires_at=soon)).memory.id
        lines = [json.dumps({"text": text})]
        await (work.remember_many([Draft(text)]) if how == "in bulk" else work.import_lines(lines))
        assert (await work.get(id)).expires_at is None


async def test_a_copy_takes_over_what_it_lacks(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """New tags and metadata keys, and a source and a time where there was none; nothing is overwritten. Only a title
    that it takes over has it embedded anew, and it is found by that.
    """
    text, first = "It was paid on 3 May", datetime(2026, 5, 3, tzinfo=UTC)
    id = (await work.remember(text, tags=["a", "b"], metadata={"n": 1})).memory.id
    asked = embedder.asked
    said = await work.remember(
        text, tags=["c", "b"], metadata={"n": 2, "m": [3]}, source="mail", occurred_at=first, thread=None
    )
    memory = said.memory
    assert (said.created, memory.id, memory.tags, memory.metadata) == (False, id, ("a", "b", "c"), {"n": 1, "m": [3]})
    assert (memory.source, memory.occurred_at, memory.title) == ("mail", first, "")
    assert embedder.asked == asked
    titled = (await work.remember(text, title="Invoice 12345", source="chat")).memory
    assert (titled.title, titled.source, titled.embedding) == ("Invoice 12345", "mail", "ready")
    assert embedder.asked == asked + 1
    assert [hit.memory.id for hit in await work.recall("Invoice", weights={"vector": 0, "graph": 0})] == [id]
    assert (await work.remember(text, title="Another")).memory == titled == await work.get(id)
    assert [memory.id for memory in (await work.list(tags=["c"])).memories] == [id]


async def test_a_copy_has_no_more_than_a_memory_may(work: AsyncSpace) -> None:
    """Tags and metadata that would be too many stay out; what was there stays."""
    many = [f"tag {n}" for n in range(TAGS - 1)]
    large = {"large": "x" * (METADATA_BYTES - 100)}
    await work.remember("note", tags=many, metadata=large)
    memory = (await work.remember("note", tags=["one more", "and another"], metadata={"more": "y" * 200})).memory
    assert (memory.tags, memory.metadata) == ((*many, "one more"), large)


async def test_a_turn_that_changed_is_still_known_again(work: AsyncSpace) -> None:
    """A turn without a place of its own that says the same is a copy, also after the first one was given a tag."""
    first = (await work.remember("Good morning", thread="talk")).memory
    await work.update(first.id, tags=["polite"])
    again = await work.remember("Good morning", thread="talk", tags=["twice"])
    assert (again.created, again.memory.id, again.memory.tags) == (False, first.id, ("polite", "twice"))


async def test_an_id_that_says_something_else_is_refused(work: AsyncSpace) -> None:
    """A new text under a known id is not dropped unheard; the same text under it is a copy, before an update and
    after it.
    """
    await work.remember("one", id="k")
    with pytest.raises(InvalidRequest, match=r"memory 'k' already exists with another text: update it"):
        await work.remember("two", id="k")
    assert not (await work.remember("one", id="k")).created
    await work.update("k", text="two")
    assert not (await work.remember("two", id="k")).created
    assert (await work.stats()).memories == 1


async def test_what_is_true_again_can_be_remembered_again(work: AsyncSpace) -> None:
    """A superseded or expired memory is no original: the same text is stored anew, and found."""
    first = (await work.remember("the password is A")).memory.id
    second = await work.supersede(first, "the password is B")
    again = await work.supersede(second.id, "the password is A")
    assert again.id != first
    assert [hit.memory.id for hit in await work.recall("password")] == [again.id]
    gone = (await work.remember("the shop is closed", expires_at="2001-01-01")).memory.id
    back = await work.remember("the shop is closed")
    assert (back.created, back.memory.id != gone) == (True, True)
    assert not (await work.remember("the shop is closed")).created


async def test_a_conversation_may_repeat_itself(work: AsyncSpace) -> None:
    """The same words in another thread, or at another place, are another turn; the very same turn is not."""
    for thread, place in (("one", 1), ("two", 1), ("one", 2)):
        assert (await work.remember("Thank you!", kind="message", thread=thread, place=place)).created
    assert not (await work.remember("Thank you!", kind="message", thread="one", place=2)).created
    assert (await work.stats()).memories == 3


async def test_only_what_holds_can_be_superseded_or_supersede(work: AsyncSpace) -> None:
    """A second correction of the same memory, and a correction by one that is corrected, are refused."""
    a, b, c = [(await work.remember(text)).memory.id for text in ("nuts", "walnuts", "almonds")]
    await work.supersede(a, by=b)
    with pytest.raises(InvalidRequest, match="supersede that one"):
        await work.supersede(a, by=c)
    with pytest.raises(InvalidRequest, match="itself superseded"):
        await work.supersede(c, by=a)


async def test_a_memory_is_stored_while_the_embedder_is_down_and_embedded_later(
    work: AsyncSpace, embedder: FlakyEmbedder
) -> None:
    """It is found by its words at once, and by its meaning when the embedder is back."""
    embedder.down = True
    made = await work.remember("The boiler was serviced in March")
    assert made.memory.embedding == "pending"
    answer = await work.recall("boiler")
    assert [hit.memory.id for hit in answer] == [made.memory.id]
    assert answer.degraded
    embedder.down = False
    await work.settle()
    assert (await work.get(made.memory.id)).embedding == "ready"
    assert not (await work.recall("boiler serviced")).degraded


async def test_what_waits_for_a_vector_gets_it_in_the_running_process(
    work: AsyncSpace, embedder: FlakyEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to ask: it is tried again until the embedder is back."""
    monkeypatch.setattr(upkeep, "RETRY_SECONDS", (0.01, 0.01))
    embedder.down = True
    made = await work.remember("The boiler was serviced in March")
    embedder.down = False
    async with asyncio.timeout(30):
        while (await work.get(made.memory.id)).embedding != "ready":  # noqa: ASYNC110  # no event tells: that is the point
            await asyncio.sleep(0.01)
    assert (await work.recall("boiler", lanes={"keyword": {"weight": 0}}))[0].memory.id == made.memory.id


async def test_one_text_that_cannot_be_embedded_does_not_hold_up_the_others(
    work: AsyncSpace, embedder: FlakyEmbedder
) -> None:
    """The one at fault is marked as failed and stays findable by its words; the others get their vectors."""
    drafts = [Draft(f"note number {n}") for n in range(10)]
    await work.remember_many([*drafts, Draft(f"bad note {embedder.poison}")])
    await work.settle()
    states = {memory.text: memory.embedding for memory in (await work.list()).memories}
    assert {states[draft.text] for draft in drafts} == {"ready"}
    assert states[f"bad note {embedder.poison}"] == "failed"
    assert (await work.recall("bad"))[0].memory.embedding == "failed"


async def test_a_changed_title_is_embedded_anew(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """A title is part of the meaning; with the embedder down the memory waits for its new vector."""
    id = (await work.remember("see there", title="Apples")).memory.id
    embedder.down = True
    assert (await work.update(id, title="Bicycles")).embedding == "pending"
    embedder.down = False
    await work.settle()
    assert (await work.get(id)).embedding == "ready"


async def test_another_model_is_refused_with_what_to_do(url: str) -> None:
    """Two generations are never compared: not written, not asked."""
    async with AsyncRecollect(url, embedder=HashingEmbedder(64)) as r:
        await r.space("work").remember("one")
    async with AsyncRecollect(url, embedder=HashingEmbedder(32)) as r:
        with pytest.raises(EmbeddingMismatch, match="recollect reembed"):
            await r.space("work").remember("two")
        with pytest.raises(EmbeddingMismatch, match="64 dimensions"):
            await r.space("work").recall("one")


async def test_each_memory_is_linked_to_its_three_nearest(work: AsyncSpace) -> None:
    """Links named `similar`, as strong as the two are alike, and never more than three of one's own."""
    texts = [f"the cat sat on the mat number {n}" for n in range(6)]
    made = [(await work.remember(text)).memory.id for text in texts]
    lines = [line async for line in work.export()]
    links = [line for line in lines if "from" in line]
    assert {line["relation"] for line in links} == {"similar"}
    assert sum(line["from"] == made[-1] for line in links) == 3
    assert all(0 < line["strength"] <= 1 for line in links)


async def test_a_bulk_load_reports_progress_and_links_afterwards(work: AsyncSpace) -> None:
    """Batches are acknowledged one by one; the links are there once it has settled."""
    seen: list[int] = []
    loaded = await work.remember_many((Draft(f"note number {n}") for n in range(150)), on_progress=seen.append)
    assert (loaded.created, loaded.copies) == (150, 0)
    assert seen == [64, 128, 150]
    await work.settle()
    assert (await work.stats()).edges > 0
    again = await work.remember_many(Draft(f"note number {n}") for n in range(151))
    assert (again.created, again.copies) == (1, 150)


async def test_a_bad_memory_in_a_bulk_load_is_named_and_its_batch_left_out(work: AsyncSpace) -> None:
    """The earlier batches stay; the sentence says which one was bad."""
    drafts = [Draft(f"note {n}") for n in range(64)] + [Draft("fine"), Draft(" ")]
    with pytest.raises(InvalidRequest, match="memory 66 of the batch: text is empty"):
        await work.remember_many(drafts)
    assert (await work.stats()).memories == 64


@pytest.mark.parametrize("vector", [None, [1.0] + [0.0] * 255], ids=["to be embedded", "with vectors"])
async def test_an_id_with_another_text_in_a_bulk_load_is_named(work: AsyncSpace, vector: list[float] | None) -> None:
    """Whether the other text is in the store, in the batch before, or in the same one; nothing is overwritten, what
    came with it is stored, and the same text is a copy.
    """
    await work.remember("stored", id="k", vector=vector)
    batch = BATCH if vector else EMBED_BATCH
    before = [Draft(f"note {n}", id=f"n{n}", vector=vector) for n in range(batch)]
    for bad, id in ((["other"], "k"), (["other"], "n0"), (["one", "two"], "new")):
        after = [Draft("fine", vector=vector), *(Draft(text, id=id, vector=vector) for text in bad)]
        with pytest.raises(
            InvalidRequest, match=rf"memory {batch + len(after)} of the batch: memory '{id}' already exists"
        ):
            await work.remember_many([*before, *after])
    assert [(await work.get(id)).text for id in ("k", "n0", "new")] == ["stored", "note 0", "one"]
    assert (await work.stats()).memories == batch + 3
    loaded = await work.remember_many([*before, Draft("stored", id="k", vector=vector)])
    assert (loaded.created, loaded.copies) == (0, batch + 1)


async def test_of_two_texts_under_one_id_at_once_one_is_refused(work: AsyncSpace) -> None:
    """Whoever comes second is told, also where neither could see the other."""
    loads = (work.remember_many([Draft(text, id="k")]) for text in ("one", "two"))
    outcomes = await asyncio.gather(*loads, return_exceptions=True)
    assert [type(one) for one in outcomes].count(InvalidRequest) == 1
    assert (await work.stats()).memories == 1


@pytest.mark.parametrize("given_from", [EMBED_BATCH, 300])
async def test_memories_are_numbered_in_the_order_in_which_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_from: int
) -> None:
    """Also where the first ones take longest to embed, and the last ones need not be: what goes by the order of rows
    is then the same in every store.
    """
    embed = HashingEmbedder.embed
    pauses = iter([0.2])

    async def first_slowly(self: HashingEmbedder, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        if len(texts) > 1:
            await asyncio.sleep(next(pauses, 0))
        return await embed(self, texts, space=space, role=role)

    monkeypatch.setattr(HashingEmbedder, "embed", first_slowly)
    ids = [f"{n:03}" for n in range(300)]
    given = [1.0] * HashingEmbedder().dimensions
    async with AsyncRecollect(f"sqlite:///{tmp_path}/m.db", embedder="hashing") as recollect:
        await recollect.space("work").remember_many(
            Draft(f"note number {id}", id=id, vector=None if int(id) < given_from else given) for id in ids
        )
    with closing(apsw.Connection(str(tmp_path / "m.db"))) as db:
        assert [id for (id,) in db.execute("SELECT id FROM memories ORDER BY row")] == ids


async def test_batches_that_depend_on_each_other_keep_their_order(work: AsyncSpace) -> None:
    """Batches are stored side by side, but the turns of a thread follow each other, and of copies the first counts,
    which the others join in their order.
    """
    turns = [Draft(f"turn {n}", thread="t") for n in range(300)]
    await work.remember_many(turns)
    page = await work.list(limit=300, thread="t")
    assert [memory.place for memory in sorted(page.memories, key=lambda one: int(one.text.split()[1]))] == [*range(300)]
    notes = [Draft(f"note {n % 100}", tags=(str(n),)) for n in range(300)]
    loaded = await work.remember_many(notes)
    assert (loaded.created, loaded.copies) == (100, 200)
    kept = {memory.text: memory.tags for memory in (await work.list(limit=500)).memories if memory.thread is None}
    assert kept == {f"note {n}": (str(n), str(n + 100), str(n + 200)) for n in range(100)}


async def test_given_vectors_are_used_and_checked(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """A vector that comes along is not computed; one of another dimension is refused."""
    vector = [1.0] + [0.0] * (embedder.dimensions - 1)
    made = await work.remember("anything", vector=vector)
    assert embedder.asked == 0
    hits = await work.recall("something else", vector=vector, weights={"keyword": 0, "graph": 0})
    assert hits[0].memory.id == made.memory.id
    with pytest.raises(InvalidRequest, match="dimensions"):
        await work.remember("other", vector=[1.0, 2.0])


async def test_an_update_is_embedded_anew_and_found_by_its_new_words(work: AsyncSpace) -> None:
    """The old words no longer find it."""
    id = (await work.remember("The meeting is on Monday")).memory.id
    changed = await work.update(id, text="The appointment is on Thursday", tags=["moved"])
    assert (changed.text, changed.tags, changed.embedding) == ("The appointment is on Thursday", ("moved",), "ready")
    only_words = {"vector": 0, "graph": 0}
    assert [h.memory.id for h in await work.recall("Thursday", weights=only_words)] == [id]
    assert len(await work.recall("Monday", weights=only_words)) == 0
    with pytest.raises(NotFound):
        await work.update("nobody", text="x")


async def test_a_superseded_memory_gives_way_to_its_correction(work: AsyncSpace) -> None:
    """The old one stays readable, points at the new one, and is recalled only when asked for."""
    old = (await work.remember("The office is in Rome")).memory.id
    new = await work.supersede(old, "The office is in Milan")
    assert (await work.get(old)).superseded_by == new.id
    assert [h.memory.id for h in await work.recall("where is the office")] == [new.id]
    both = await work.recall("where is the office", include_superseded=True)
    assert {h.memory.id for h in both} == {old, new.id}
    with pytest.raises(InvalidRequest, match="itself"):
        await work.supersede(new.id, "The office is in Milan")
    with pytest.raises(InvalidRequest):
        await work.supersede(new.id, by=old)
    with pytest.raises(NotFound):
        await work.supersede("nobody", "x")
    for bad in ({}, {"text": "x", "by": old}, {"by": old, "kind": "fact"}):
        with pytest.raises(InvalidRequest, match="supersede needs"):
            await work.supersede(new.id, **bad)  # type: ignore[arg-type]


async def test_of_corrections_at_once_one_holds(work: AsyncSpace) -> None:
    """The others are told which one it was, and what they would have said instead is not stored."""
    old = (await work.remember("The office is in Rome")).memory.id
    tries = (work.supersede(old, f"The office is in town {n}") for n in range(5))
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    (new,) = [one for one in outcomes if isinstance(one, Memory)]
    refused = [str(one) for one in outcomes if isinstance(one, InvalidRequest)]
    assert refused == [f"memory {old!r} is already superseded by {new.id!r}: supersede that one"] * 4
    assert [memory.id for memory in (await work.list()).memories] == [new.id]


async def test_what_is_remembered_beside_corrections_stays(work: AsyncSpace) -> None:
    """Two supersede one memory while others remember their texts: what was acknowledged is there, whoever won."""
    for n in range(30):
        old = (await work.remember(f"The office is in town {n}")).memory.id
        texts = [f"The office is in village {n}", f"The office is in city {n}"]
        corrections = [asyncio.create_task(work.supersede(old, text)) for text in texts]
        remembered = [asyncio.create_task(work.remember(text)) for text in texts]
        outcomes = await asyncio.gather(*corrections, return_exceptions=True)
        (holds,) = [one for one in outcomes if isinstance(one, Memory)]
        assert (await work.get(old)).superseded_by == holds.id
        for one in await asyncio.gather(*remembered):
            assert (await work.get(one.memory.id)).superseded_by is None


async def test_a_correction_that_is_refused_changes_nothing(work: AsyncSpace) -> None:
    """Neither what it would have replaced, nor the copy that its tags would have joined."""
    old = (await work.remember("The office is in Rome")).memory.id
    new = await work.supersede(old, "The office is in Milan")
    copy = (await work.remember("The office is in Turin")).memory
    for text, id in (("The office is in Turin", None), ("The office is in Bari", copy.id), ("Nothing new", new.id)):
        with pytest.raises(InvalidRequest):
            await work.supersede(old, text, tags=["moved"], id=id)
    with pytest.raises(InvalidRequest, match="already exists with another text"):
        await work.supersede(new.id, "The office is in Bari", id=copy.id)
    with pytest.raises(InvalidRequest, match="itself"):
        await work.supersede(new.id, "The office is in Milan", tags=["moved"])
    assert (await work.list()).memories == (new, copy)


async def test_a_memory_has_a_history(work: AsyncSpace) -> None:
    """Its versions, oldest first, whichever is named; what has none is its own, and what is not here has none."""
    ids = [(await work.remember("The office is in Rome")).memory.id]
    for city in ("Milan", "Turin"):
        ids.append((await work.supersede(ids[-1], f"The office is in {city}")).id)
    for id in ids:
        assert [version.id for version in await work.history(id)] == ids
    alone = (await work.remember("The cat is called Minka")).memory
    assert await work.history(alone.id) == [alone]
    with pytest.raises(NotFound, match="holds no memory 'nobody'"):
        await work.history("nobody")
    with pytest.raises(InvalidRequest, match="id is empty"):
        await work.history("")


async def test_a_correction_stays_where_the_old_fact_was(work: AsyncSpace) -> None:
    """Namespace, kind and tags are taken over, so whoever looked there finds it; others can be given."""
    old = (await work.remember("I live in Rome", namespace="hr", kind="identity", tags=["home"])).memory.id
    new = await work.supersede(old, "I live in Milan")
    assert (new.namespace, new.kind, new.tags) == ("hr", "identity", ("home",))
    newer = await work.supersede(new.id, "I live in Turin", tags=["city"])
    assert (newer.namespace, newer.tags) == ("hr", ("city",))


async def test_forgotten_is_forgotten(work: AsyncSpace) -> None:
    """Not by words, not by meaning, not by id."""
    id = (await work.remember("a secret about zebras")).memory.id
    assert await work.forget(id, "nobody") == 1
    assert len(await work.recall("zebras")) == 0
    with pytest.raises(NotFound):
        await work.get(id)


async def test_no_space_sees_another(client: AsyncRecollect) -> None:
    """Every call of the wrong space finds nothing and changes nothing."""
    mine, other = client.space("mine"), client.space("other")
    id = (await mine.remember("the alarm code is 9876")).memory.id
    here = (await other.remember("hello there")).memory.id
    assert [h.memory.id for h in await other.recall("alarm code 9876")] in ([], [here])
    for call in (other.get(id), other.update(id, text="x"), other.neighbors(id), other.supersede(id, "x")):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(NotFound):
        await other.link(here, id)
    assert await other.forget(id) == 0
    assert id not in {m.id for m in (await other.list()).memories}
    assert not [line async for line in other.export() if line.get("id") == id]
    assert (await mine.get(id)).text == "the alarm code is 9876"


async def test_links_and_neighbors(work: AsyncSpace) -> None:
    """A path is as strong as the product of its links; either direction counts."""
    a, b, c = [(await work.remember(t)).memory.id for t in ("alpha", "beta", "gamma")]
    lines = [line async for line in work.export() if "from" in line]
    for line in lines:
        await work.unlink(line["from"], line["to"])
    await work.link(a, b, "causes", 0.5)
    await work.link(b, c, "causes", 0.8)
    near = await work.neighbors(c, depth=2)
    assert [(n.memory.id, round(n.strength, 9), n.steps) for n in near] == [(b, 0.8, 1), (a, 0.4, 2)]
    for bad in (0, 1.5, float("nan")):
        with pytest.raises(InvalidRequest, match="strength"):
            await work.link(a, b, strength=bad)
    with pytest.raises(InvalidRequest, match="itself"):
        await work.link(a, a)
    for depth in (0, 4):
        with pytest.raises(InvalidRequest, match="depth"):
            await work.neighbors(a, depth=depth)
