"""Threads: the order of a conversation or a document, and who stands beside whom."""

from __future__ import annotations

from dataclasses import replace

from recollect.conformance.samples import ALL, HERE, NOW, ids, record
from recollect.ports import Beside, Store


async def spec_a_thread_grows_at_its_end(store: Store) -> None:
    """A memory without a place goes behind the last one of its thread; a given place is kept."""
    await store.add(HERE, [record("a", thread="t"), record("b", thread="t"), record("c", thread="other")])
    await store.add(HERE, [record("d", thread="t", place=10), record("e", thread="t")])
    await store.add(HERE, [record("f", thread="t")])
    order = await store.beside(HERE, ["a"], 10)
    assert order["a"] == Beside((), ("b", "d", "e", "f"))
    stored = await store.get(HERE, ["d", "e", "f"])
    assert [memory.place for memory in stored.values()] == [10, 11, 12]


async def spec_beside_is_nearest_first(store: Store) -> None:
    """`beside` reaches as far as asked, nearest first on each side, and knows nothing outside of threads."""
    await store.add(HERE, [record(id, thread="t", place=place) for place, id in enumerate("ebacd")])
    await store.add(HERE, [record("alone"), record("z", thread="u")])
    around = await store.beside(HERE, ["a", "e", "z", "alone", "nothing"], 2)
    assert around == {"a": Beside(("b", "e"), ("c", "d")), "e": Beside((), ("b", "a")), "z": Beside((), ())}
    assert (await store.beside(HERE, ["a"], 1))["a"] == Beside(("b",), ("c",))


async def spec_a_thread_belongs_to_its_namespace(store: Store) -> None:
    """The same thread name in two namespaces is two threads, each with its own places and neighbours; a memory that
    changes namespaces goes to the end of the other thread.
    """
    one = [record(id, thread="t") for id in "ab"]
    other = [record(id, thread="t", namespace="other") for id in "xyz"]
    await store.add(HERE, [one[0], *other, one[1]])
    stored = await store.get(HERE, ["a", "b", "x", "y", "z"])
    assert [memory.place for memory in stored.values()] == [0, 1, 0, 1, 2]
    assert await store.beside(HERE, ["a", "y"], 5) == {"a": Beside((), ("b",)), "y": Beside(("x",), ("z",))}
    assert await ids(store, replace(ALL, thread="t")) == ["a", "b", "x", "y", "z"]
    assert (await store.update(HERE, "x", {"namespace": "default"}, now=NOW)).place == 2
    assert await store.beside(HERE, ["x", "y"], 5) == {"x": Beside(("b", "a"), ()), "y": Beside((), ("z",))}


async def spec_beside_closes_the_gap(store: Store) -> None:
    """A forgotten memory is nobody's neighbour."""
    await store.add(HERE, [record(id, thread="t") for id in "abc"])
    await store.forget(HERE, ["b"])
    assert (await store.beside(HERE, ["a"], 2))["a"] == Beside((), ("c",))


async def spec_update_moves_between_threads(store: Store) -> None:
    """A memory that changes threads goes to the new one's end, and one that leaves has no place any more."""
    await store.add(HERE, [record(id, thread="t") for id in "abc"] + [record("x", thread="u")])
    assert (await store.update(HERE, "b", {"thread": "u"}, now=NOW)).place == 1
    assert await store.beside(HERE, ["a", "x"], 1) == {"a": Beside((), ("c",)), "x": Beside((), ("b",))}
    assert (await store.update(HERE, "a", {"thread": None}, now=NOW)).place is None
    assert await store.beside(HERE, ["a"], 1) == {}
