"""From one embedding model to the next, while others read and write."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recollect.conformance.samples import ALL, HERE, MODEL, NOW, memory, nearest, raises, record, unit
from recollect.errors import EmbeddingMismatch, InvalidRequest
from recollect.ports import Store
from recollect.types import Edge, Generation, Scored

NEXT = Generation("conformance-next", 4)
WIDE = Generation("conformance-wide", 8)


async def _fill(store: Store, generation: Generation = NEXT) -> None:
    """Turn each vector of the current generation around, and store it as one of the next."""
    missing = await store.generations.unembedded(HERE, generation, after="", limit=100)
    vectors = await store.vectors(HERE, [one.id for one in missing])
    turned = [(one, np.roll(vectors[one.id], 1)) for one in missing]
    await store.generations.put(HERE, generation, turned)


async def _states(store: Store) -> dict[str, tuple[str, int]]:
    return {one.generation.model: (one.state, one.vectors) for one in await store.generations.all()}


async def spec_the_next_generation_is_filled_while_the_current_one_answers(store: Store) -> None:
    """`unembedded` lists what lacks a vector of the next generation, by id; nothing of it is found before `publish`."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("b", vector=unit(1)), record("a", vector=unit(0, 1)), record("waits")])
    await store.generations.begin(NEXT)
    missing = await store.generations.unembedded(HERE, NEXT, after="", limit=10)
    assert [one.id for one in missing] == ["a", "b"]
    assert [one.id for one in await store.generations.unembedded(HERE, NEXT, after="a", limit=10)] == ["b"]
    await store.generations.put(HERE, NEXT, [(missing[0], unit(1)), (memory("gone"), unit(1))])
    assert [one.id for one in await store.generations.unembedded(HERE, NEXT, after="", limit=10)] == ["b"]
    assert (await nearest(store, unit(1)))[0] == "b"
    assert await store.generation() == MODEL
    assert await _states(store) == {MODEL.model: ("current", 2), NEXT.model: ("next", 1)}


async def spec_publish_switches_in_one_step(store: Store) -> None:
    """Only when nothing lacks a vector; the old vectors stay, and answer whoever asks for their generation."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1)), record("b", vector=unit(0, 1))])
    await store.generations.begin(NEXT)
    assert not await store.generations.publish(NEXT, without={})
    assert await store.generation() == MODEL
    await _fill(store)
    assert await store.generations.publish(NEXT, without={})
    assert await store.generation() == NEXT
    assert (await nearest(store, unit(0, 1)))[0] == "a"
    old = await store.search_vectors(HERE, unit(0, 1), ALL, limit=1, generation=MODEL)
    assert [hit.id for hit in old.hits] == ["b"]
    assert np.allclose((await store.vectors(HERE, ["a"], generation=MODEL))["a"], unit(1))
    assert np.allclose((await store.vectors(HERE, ["a"]))["a"], unit(0, 1))
    assert await _states(store) == {MODEL.model: ("old", 2), NEXT.model: ("current", 2)}


async def spec_models_of_different_width_do_not_meet(store: Store) -> None:
    """A generation has dimensions of its own, and a background of its own."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1)), record("b", vector=unit(0, 1))])
    await store.generations.begin(WIDE)
    wide = np.eye(8, dtype=np.float32)
    missing = await store.generations.unembedded(HERE, WIDE, after="", limit=10)
    await store.generations.put(HERE, WIDE, [(one, wide[4 + n]) for n, one in enumerate(missing)])
    assert await store.generations.publish(WIDE, without={})
    assert (await nearest(store, wide[5]))[0] == "b"
    assert (await store.vector_background(HERE, wide[5])) is not None
    assert (await store.vector_background(HERE, unit(1), generation=MODEL)) is not None


async def spec_what_is_written_meanwhile_is_caught_up(store: Store) -> None:
    """A memory that is new, or says something else, lacks a vector of the next generation again; a vector that was made
    of another text is dropped.
    """
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1)), record("b", vector=unit(0, 1))])
    await store.generations.begin(NEXT)
    await _fill(store)
    await store.add(HERE, [record("c", vector=unit(0, 0, 1))])
    before = (await store.get(HERE, ["a"]))["a"]
    await store.update(HERE, "a", {"text": "another text"}, vector=unit(1, 1), now=NOW)
    await store.generations.put(HERE, NEXT, [(before, unit(1))])
    assert [one.id for one in await store.generations.unembedded(HERE, NEXT, after="", limit=10)] == ["a", "c"]
    assert not await store.generations.publish(NEXT, without={})
    assert not await store.generations.publish(NEXT, without={HERE: ["c"]})
    await _fill(store)
    await store.forget(HERE, ["b"])
    assert await store.generations.publish(NEXT, without={})
    assert sorted(await store.vectors(HERE, ["a", "b", "c"])) == ["a", "c"]
    assert sorted(await store.vectors(HERE, ["a", "b", "c"], generation=MODEL)) == ["a", "c"]


async def spec_what_cannot_be_embedded_waits_after_the_switch(store: Store) -> None:
    """A memory that the new model cannot embed does not hold up the others."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1)), record("b", vector=unit(0, 1))])
    await store.generations.begin(NEXT)
    (a, _) = await store.generations.unembedded(HERE, NEXT, after="", limit=10)
    await store.generations.put(HERE, NEXT, [(a, unit(1))])
    assert await store.generations.publish(NEXT, without={HERE: ["b"]})
    assert [one.id for one in await store.pending(HERE, limit=10)] == ["b"]


async def spec_vectors_of_another_model_are_not_stored(store: Store) -> None:
    """Whoever still embeds with the old model stores memories that wait for a vector of the new one."""
    await store.set_generation(MODEL)
    await store.generations.begin(NEXT)
    assert await store.generations.publish(NEXT, without={})
    await store.add(HERE, [replace(record("a", vector=unit(1)), generation=MODEL), record("b", vector=unit(0, 1))])
    assert [one.id for one in await store.pending(HERE, limit=10)] == ["a"]
    assert await nearest(store, unit(1)) == ["b"]
    await store.update(HERE, "b", {"text": "new"}, vector=unit(1), generation=MODEL, now=NOW)
    assert await nearest(store, unit(1)) == []
    with raises(EmbeddingMismatch):
        await store.put_vectors(HERE, [(memory("a"), unit(1))], generation=MODEL)


async def spec_an_old_generation_comes_back(store: Store) -> None:
    """It keeps its vectors, so that only what came since must be embedded."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1))])
    await store.generations.begin(NEXT)
    await _fill(store)
    assert await store.generations.publish(NEXT, without={})
    await store.add(HERE, [record("b", vector=unit(0, 1))])
    await store.generations.begin(MODEL)
    missing = await store.generations.unembedded(HERE, MODEL, after="", limit=10)
    assert [one.id for one in missing] == ["b"]
    await store.generations.put(HERE, MODEL, [(missing[0], unit(0, 0, 1))])
    assert await store.generations.publish(MODEL, without={})
    assert await nearest(store, unit(1)) == ["a", "b"]


async def spec_a_dropped_generation_is_gone(store: Store) -> None:
    """Its vectors are deleted, and whoever asks for them is told; it may begin anew, empty."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1))])
    await store.generations.begin(NEXT)
    await _fill(store)
    assert await store.generations.publish(NEXT, without={})
    await store.generations.drop(MODEL)
    assert await _states(store) == {NEXT.model: ("current", 1)}
    with raises(EmbeddingMismatch):
        await store.search_vectors(HERE, unit(1), ALL, limit=1, generation=MODEL)
    await store.generations.begin(MODEL)
    assert [one.id for one in await store.generations.unembedded(HERE, MODEL, after="", limit=10)] == ["a"]


async def spec_one_change_at_a_time(store: Store) -> None:
    """Beginning the same again goes on with it; another one is refused until it is dropped, as is the current one."""
    await store.set_generation(MODEL)
    await store.generations.begin(NEXT)
    await store.generations.begin(NEXT)
    for refused in (WIDE, MODEL):
        with raises(InvalidRequest):
            await store.generations.begin(refused)
    await store.generations.drop(NEXT)
    await store.generations.begin(WIDE)


async def spec_links_are_made_anew_by_the_next_generation(store: Store) -> None:
    """After `publish` memories wait for links to their nearest, and the links of the old vectors go; others stay."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1)), record("b", vector=unit(1)), record("c", vector=unit(0, 1))])
    await store.link_nearest(HERE, {"a": [Scored("b", 0.9)], "b": [Scored("a", 0.9)], "c": [Scored("a", 0.1)]})
    await store.link(HERE, [Edge("a", "c", "causes", 0.5)])
    await store.add("there", [record("d")])
    await store.generations.begin(NEXT)
    await _fill(store)
    assert not await store.generations.relink()
    assert await store.generations.publish(NEXT, without={})
    for _ in (HERE, "there"):
        assert await store.generations.relink()
    assert not await store.generations.relink()
    assert [edge async for edge in store.edges(HERE, ["a", "b", "c"])] == [Edge("a", "c", "causes", 0.5)]
    assert sorted(await store.unlinked(HERE, limit=10)) == ["a", "b", "c"]
