"""What external indexes have still to be told, and who may tell them."""

from __future__ import annotations

from recollect.conformance.samples import HERE, MODEL, NOW, memory, record, unit
from recollect.ports import Store
from recollect.types import Edge, Scored

VECTORS = "vectors here"
LINKS = "links here"
LONG = 60.0


async def waiting(store: Store, index: str) -> list[str]:
    return [entry.id for entry in await store.ledger.waiting(index, limit=100)]


async def told(store: Store, index: str) -> list[str]:
    """The ids that wait, which are delivered then."""
    entries = await store.ledger.waiting(index, limit=100)
    await store.ledger.delivered(index, entries)
    return [entry.id for entry in entries]


async def _furnish(store: Store) -> None:
    await store.set_generation(MODEL)
    await store.add(HERE, [record(id, f"umbrella {id}", vector=unit(1)) for id in ("a", "b", "c")])
    await store.ledger.feed(VECTORS, "vector")
    await store.ledger.feed(LINKS, "graph")


async def spec_an_index_is_first_told_of_everything(store: Store) -> None:
    """The first time an index is fed all that is there waits for it, of every space; asking again adds nothing."""
    await _furnish(store)
    await store.add("there", [record("d", space="there")])
    assert await told(store, LINKS) == ["a", "b", "c", "d"]
    await store.ledger.feed(LINKS, "graph")
    assert await waiting(store, LINKS) == []


async def spec_nothing_is_noted_for_nobody(store: Store) -> None:
    """Without an index there is nothing to tell."""
    await store.add(HERE, [record("a")])
    assert await waiting(store, VECTORS) == []
    assert await store.ledger.lag(VECTORS) == (0, None)


async def spec_a_vector_index_is_told_of_vectors_and_of_what_filters_ask(store: Store) -> None:
    """New and removed vectors, changed fields, what was superseded and what was forgotten; not links, not hits."""
    await _furnish(store)
    assert await told(store, VECTORS) == ["a", "b", "c"]
    await store.link(HERE, [Edge("a", "b")])
    await store.link_nearest(HERE, {"a": [Scored("b", 1)]})
    await store.mark_hits(HERE, {"a": 1}, now=NOW)
    assert await told(store, VECTORS) == []
    await store.add(HERE, [record("d"), record("e", vector=unit(0, 1))])
    assert await told(store, VECTORS) == ["e"]
    await store.put_vectors(HERE, [(memory("d"), unit(1))])
    assert await told(store, VECTORS) == ["d"]
    await store.update(HERE, "a", {"tags": ("x",)}, now=NOW)
    await store.supersede(HERE, "b", "c", now=NOW)
    await store.forget(HERE, ["e"])
    assert sorted(await told(store, VECTORS)) == ["a", "b", "e"]


async def spec_a_graph_index_is_told_of_memories_and_links(store: Store) -> None:
    """A link is a change of the memory at which it begins; so is its end, with the memory at its other end too."""
    await _furnish(store)
    await told(store, LINKS)
    await store.link(HERE, [Edge("a", "b"), Edge("a", "c", "refers to", 0.5)])
    assert await told(store, LINKS) == ["a"]
    await store.link(HERE, [Edge("a", "b", strength=0.5)])
    assert await told(store, LINKS) == ["a"]
    await store.unlink(HERE, "a", "b")
    assert await told(store, LINKS) == ["a"]
    await store.add(HERE, [record("d", edges=[Edge("b", "d")])])
    assert sorted(await told(store, LINKS)) == ["b", "d"]
    await store.forget(HERE, ["c"])
    assert "c" in await told(store, LINKS)


async def spec_what_changes_while_it_is_delivered_waits_again(store: Store) -> None:
    """An entry is taken out under the number that was read: a later change of the same memory stays. Changes that
    nobody has read are one entry.
    """
    await _furnish(store)
    await told(store, VECTORS)
    await store.update(HERE, "a", {"kind": "semantic"}, now=NOW)
    read = await store.ledger.waiting(VECTORS, limit=10)
    await store.update(HERE, "a", {"kind": "identity"}, now=NOW)
    await store.update(HERE, "a", {"kind": "message"}, now=NOW)
    await store.ledger.delivered(VECTORS, read)
    assert await told(store, VECTORS) == ["a"]
    assert await waiting(store, VECTORS) == []


async def spec_whatever_changes_again_before_it_is_told_is_one_entry(store: Store) -> None:
    """Every kind of change can be made again while the one before still waits."""
    await _furnish(store)
    for index in (VECTORS, LINKS):
        await told(store, index)
    for strength in (0.5, 0.25):
        await store.link(HERE, [Edge("a", "b", strength=strength)])
        await store.link_nearest(HERE, {"a": [Scored("c", strength)]})
        await store.put_vectors(HERE, [(memory("a", "umbrella a"), unit(1, strength))])
        await store.update(HERE, "a", {"quality": strength}, now=NOW)
    assert await told(store, LINKS) == ["a"]
    assert await told(store, VECTORS) == ["a"]
    for _ in range(2):
        await store.add(HERE, [record("d", vector=unit(1), edges=[Edge("d", "a")])])
        await store.forget(HERE, ["d"])
    assert "d" in await told(store, LINKS)
    assert await told(store, VECTORS) == ["d"]


async def spec_the_lag_says_how_many_wait_and_since_when(store: Store) -> None:
    """None when nothing waits."""
    await _furnish(store)
    waiting, since = await store.ledger.lag(VECTORS)
    assert waiting == 3
    assert since is not None
    await told(store, VECTORS)
    assert await store.ledger.lag(VECTORS) == (0, None)


async def spec_an_index_can_be_told_again(store: Store) -> None:
    """Of some ids of a space, gone ones too, or of everything there is."""
    await _furnish(store)
    await told(store, VECTORS)
    await store.ledger.enter(VECTORS, HERE, ["b", "gone"])
    assert sorted(await told(store, VECTORS)) == ["b", "gone"]
    await store.ledger.enter(VECTORS)
    assert await told(store, VECTORS) == ["a", "b", "c"]


async def spec_one_at_a_time_feeds_an_index(store: Store) -> None:
    """A lease keeps others away until it ends or is given back; whoever has it can prolong it."""
    await _furnish(store)
    assert await store.ledger.lease(VECTORS, "one", LONG)
    assert not await store.ledger.lease(VECTORS, "other", LONG)
    assert await store.ledger.lease(LINKS, "other", LONG)
    assert await store.ledger.lease(VECTORS, "one", -LONG)
    assert await store.ledger.lease(VECTORS, "other", LONG)
    await store.ledger.release(VECTORS, "one")
    assert not await store.ledger.lease(VECTORS, "one", LONG)
    await store.ledger.release(VECTORS, "other")
    assert await store.ledger.lease(VECTORS, "one", LONG)
