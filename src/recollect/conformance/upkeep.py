"""What is made up for later, the vectors that memories wait for and the links to their nearest, and what a memory takes
along to another store.
"""

from __future__ import annotations

from dataclasses import replace

from recollect.conformance.samples import HERE, MODEL, NOW, edges, memory, nearest, record, unit
from recollect.ports import Store
from recollect.types import SIMILAR, Edge, Scored


async def spec_pending_waits_for_a_vector(store: Store) -> None:
    """What was stored without a vector is pending, oldest first, until `put_vectors` brings it."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("b"), record("a"), record("c", vector=unit(1))])
    assert [memory.id for memory in await store.pending(HERE, limit=10)] == ["b", "a"]
    assert [memory.id for memory in await store.pending(HERE, limit=1)] == ["b"]
    await store.put_vectors(HERE, [(memory("b"), unit(0, 1)), (memory("gone"), unit(1))])
    assert [memory.id for memory in await store.pending(HERE, limit=10)] == ["a"]
    assert (await store.get(HERE, ["b"]))["b"].embedding == "ready"
    assert (await nearest(store, unit(0, 1)))[0] == "b"


async def spec_a_vector_of_another_text_is_dropped(store: Store) -> None:
    """`put_vectors` leaves out a memory whose title or text changed while its vector was made."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a"), record("b"), record("c")])
    waiting = await store.pending(HERE, limit=10)
    await store.update(HERE, "a", {"text": "new"}, now=NOW)
    await store.update(HERE, "b", {"title": "new"}, now=NOW)
    await store.update(HERE, "c", {"quality": 0.5}, now=NOW)
    await store.put_vectors(HERE, [(memory, unit(1)) for memory in waiting])
    assert [memory.id for memory in await store.pending(HERE, limit=10)] == ["a", "b"]
    assert list(await store.vectors(HERE, ["a", "b", "c"])) == ["c"]


async def spec_what_cannot_be_embedded_waits_no_longer(store: Store) -> None:
    """`fail_vectors` takes memories out of `pending`, but not their vector from those that have one; a new text is
    worth another try.
    """
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a"), record("b"), record("c", vector=unit(1))])
    await store.fail_vectors(HERE, ["a", "c", "gone"])
    assert [memory.id for memory in await store.pending(HERE, limit=10)] == ["b"]
    assert [memory.embedding for memory in (await store.get(HERE, ["a", "c"])).values()] == ["failed", "ready"]
    assert (await store.stats(HERE)).pending == 1
    assert (await store.update(HERE, "a", {"text": "new"}, now=NOW)).embedding == "pending"


async def spec_unlinked_until_linked(store: Store) -> None:
    """What has a vector but no links to its nearest yet is unlinked, until `link_nearest` brings them."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("b", vector=unit(1)), record("a", vector=unit(0, 1)), record("pending")])
    await store.add(HERE, [record("c", vector=unit(1, 1), edges=[Edge("c", "a", strength=0.5)], linked=True)])
    assert await store.unlinked(HERE, limit=10) == ["b", "a"]
    await store.link_nearest(HERE, {"b": []})
    assert await store.unlinked(HERE, limit=10) == ["a"]
    assert await store.unlinked(HERE, limit=0) == []


async def spec_what_was_forgotten_meanwhile_is_not_linked(store: Store) -> None:
    """`link_nearest` and `add` leave out links whose end is gone, and keep the others."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1)), record("b", vector=unit(1))])
    await store.link_nearest(HERE, {"a": [Scored("gone", 1), Scored("b", 0.5)], "gone": [Scored("b", 1)]})
    await store.add(HERE, [record("c", edges=[Edge("c", "gone"), Edge("c", "b")])])
    linked = await edges(store)
    assert sorted(linked, key=lambda edge: edge.source) == [Edge("a", "b", SIMILAR, 0.5), Edge("c", "b")]
    assert await store.unlinked(HERE, limit=10) == ["b"]


async def spec_update_of_the_text_makes_its_nearest_anew(store: Store) -> None:
    """A new text or title has to be linked anew, and what had it among its nearest as well; all other links stay."""
    kept = [Edge("a", "b", "cause"), Edge("c", "b", SIMILAR)]
    for change in ({"text": "new"}, {"title": "New"}):
        await store.set_generation(MODEL)
        await store.add(HERE, [record(id, vector=unit(1), linked=True) for id in "abc"])
        await store.link(HERE, [Edge("a", "b", SIMILAR), Edge("b", "a", SIMILAR), *kept])
        await store.update(HERE, "a", change, vector=unit(0, 1), now=NOW)
        assert await edges(store) == kept
        assert await store.unlinked(HERE, limit=10) == ["a", "b"]
        await store.forget(HERE, ["a", "b", "c"])


async def spec_what_was_nearest_to_the_forgotten_is_linked_anew(store: Store) -> None:
    """Whoever had a forgotten memory among its nearest is unlinked again; whoever had not is not."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record(id, vector=unit(1), linked=True) for id in "abcd"])
    await store.link(HERE, [Edge("a", "b", SIMILAR), Edge("b", "c", SIMILAR), Edge("d", "b", "cause")])
    await store.forget(HERE, ["b"])
    assert await store.unlinked(HERE, limit=10) == ["a"]


async def spec_what_comes_takes_the_place_of_the_weakest_link(store: Store) -> None:
    """Of those that are linked already, whoever is nearer to what comes than to one of its three nearest is linked to
    it instead of that; others, and links of other relations, stay as they are.
    """
    await store.set_generation(MODEL)
    near = {"b": unit(1, 0.2), "c": unit(1, 0.4), "d": unit(1, 0.8), "e": unit(0, 1, 0.1)}
    await store.add(HERE, [record(id, vector=vector) for id, vector in {"a": unit(1), **near}.items()])
    await store.link(HERE, [Edge("a", "e", "cause")])
    await store.link_nearest(HERE, await store.nearest_to(HERE, [*"abcde"], limit=3))
    assert await _nearest_of(store, "a") == ["b", "c", "d"]
    await store.add(HERE, [record("new", vector=unit(1, 0.1))])
    found = await store.nearest_to(HERE, ["new"], limit=3)
    assert [hit.id for hit in found["new"]][:3] == ["b", "a", "c"]
    await store.link_nearest(HERE, found)
    assert await _nearest_of(store, "a") == ["b", "c", "new"]
    assert await _nearest_of(store, "d") == ["b", "c", "new"]
    assert await _nearest_of(store, "e") == ["b", "c", "d"]
    assert await _nearest_of(store, "new") == ["a", "b", "c"]
    assert Edge("a", "e", "cause") in await edges(store)
    assert await store.unlinked(HERE, limit=10) == []


async def spec_of_equally_near_memories_what_they_say_decides(store: Store) -> None:
    """Five copies of one vector: which of them a memory is linked to depends neither on their ids nor on who came
    first.
    """
    await store.set_generation(MODEL)
    texts = ["one", "two", "three", "four", "five"]
    chosen = []
    for order in (texts, texts[::-1]):
        ids = {text: f"{number}" for number, text in enumerate(order)}
        for text, id in ids.items():
            await store.add(HERE, [record(id, text, vector=unit(1))])
            await store.link_nearest(HERE, await store.nearest_to(HERE, [id], limit=3))
        says = {id: text for text, id in ids.items()}
        chosen.append({text: {says[other] for other in await _nearest_of(store, id)} for text, id in ids.items()})
        await store.forget(HERE, [*says])
    assert chosen[0] == chosen[1]


async def _nearest_of(store: Store, id: str) -> list[str]:
    """What a memory is linked to as one of its nearest, by id."""
    return [edge.target async for edge in store.edges(HERE, [id]) if (edge.source, edge.relation) == (id, SIMILAR)]


async def spec_a_record_from_another_store_brings_its_hash(store: Store) -> None:
    """A given hash decides what is a copy, in place of the memory's fields; `marks` gives it back, and whether the
    memory was linked to its nearest.
    """
    await store.set_generation(MODEL)
    brought = replace(record("b", "same", vector=unit(1), linked=True), hash=b"from elsewhere")
    assert all(answer.created for answer in await store.add(HERE, [record("a", "same"), brought]))
    marks = await store.marks(HERE, ["b", "a", "nothing"])
    assert marks.keys() == {"a", "b"}
    assert marks["b"] == (b"from elsewhere", True)
    assert not marks["a"].linked
    (answer,) = await store.add(HERE, [replace(record("c"), hash=b"from elsewhere")])
    assert (answer.memory.id, answer.created) == ("b", False)
    (answer,) = await store.add(HERE, [replace(record("d", "other"), hash=marks["a"].hash)])
    assert (answer.memory.id, answer.created) == ("a", False)
