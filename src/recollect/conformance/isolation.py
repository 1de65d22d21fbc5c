"""No call reaches another space, whatever ids it is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeAlias

from recollect.conformance.capabilities import CAPABILITIES, LeftOut
from recollect.conformance.samples import (
    ALL,
    HERE,
    MODEL,
    NOW,
    edges,
    found,
    memory,
    nearest,
    question,
    raises,
    record,
    unit,
)
from recollect.errors import NotFound
from recollect.ports import Ledger, Store
from recollect.types import Bucket, Edge, Scored, Usage, Use

Call: TypeAlias = Callable[[Store], Awaitable[Any]]

THERE = "there"
YEAR = timedelta(days=365)
IDS = ["a", "b"]
EMBEDDED = [(memory("a", "umbrella a"), unit(-1)), (memory("c"), unit(-1))]
OPENING = {"open", "migrate", "close", "bulk", "remarks"}
LEDGER = CAPABILITIES["tokens"] | CAPABILITIES["outbox"] - {"enter"}
WITHOUT_SPACE = {"spaces", "check", "generation", "set_generation", *OPENING, *LEDGER}
"""What concerns the whole store."""


async def _refused(call: Awaitable[Any]) -> None:
    with raises(NotFound):
        await call


async def _edges(store: Store) -> list[Edge]:
    return await edges(store, space=THERE) + await edges(store, IDS, space=THERE)


CALLS: dict[str, tuple[Call, Any]] = {
    "copies": (lambda store: store.copies(THERE, [memory("a", "umbrella a")]), [None]),
    "get": (lambda store: store.get(THERE, IDS), {}),
    "list": (lambda store: _listed(store), []),
    "update": (lambda store: _refused(store.update(THERE, "a", {"text": "stolen"}, now=NOW)), None),
    "forget": (lambda store: store.forget(THERE, IDS), 0),
    "supersede": (lambda store: _refused(store.supersede(THERE, "a", "b", now=NOW)), None),
    "history": (lambda store: store.history(THERE, "a", limit=10), []),
    "beside": (lambda store: store.beside(THERE, IDS, 2), {}),
    "visible": (lambda store: store.visible(THERE, IDS, ALL), set()),
    "sample": (lambda store: store.sample(THERE, ["default"], limit=5), [0, []]),
    "pending": (lambda store: store.pending(THERE, limit=10), []),
    "put_vectors": (lambda store: store.put_vectors(THERE, EMBEDDED), None),
    "fail_vectors": (lambda store: store.fail_vectors(THERE, [*IDS, "c"]), None),
    "unlinked": (lambda store: store.unlinked(THERE, limit=10), []),
    "marks": (lambda store: store.marks(THERE, IDS), {}),
    "mark_hits": (lambda store: store.mark_hits(THERE, dict.fromkeys(IDS, 1), now=NOW), None),
    "mark_used": (lambda store: store.mark_used(THERE, IDS, now=NOW), 0),
    "stats": (lambda store: _counted(store), [0, 0, 0, 0]),
    "search_words": (lambda store: _worded(store), []),
    "search_vectors": (lambda store: _compared(store), []),
    "vector_background": (lambda store: store.vector_background(THERE, unit(1)), None),
    "nearest_to": (lambda store: store.nearest_to(THERE, IDS, limit=3), {}),
    "vectors": (lambda store: store.vectors(THERE, IDS), {}),
    "settle": (lambda store: store.settle(THERE), None),
    "link": (lambda store: _refused(store.link(THERE, [Edge("a", "b")])), None),
    "link_nearest": (lambda store: store.link_nearest(THERE, {"a": [Scored("b", 1)], "b": []}), None),
    "unlink": (lambda store: store.unlink(THERE, "a", "b"), 0),
    "walk": (lambda store: store.walk(THERE, ["a"], ALL, depth=3, limit=10), []),
    "edges": (_edges, []),
    "enter": (lambda store: store.ledger.enter("index", THERE, IDS), None),
    "usage": (lambda store: store.ledger.usage(THERE, NOW - YEAR), []),
    "count_usage": (lambda store: store.ledger.count_usage(THERE, [Bucket(NOW, Usage(recalls=1))]), None),
    "uses": (lambda store: store.ledger.uses(THERE), []),
    "note_uses": (lambda store: store.ledger.note_uses(THERE, [Use("stolen?", id, NOW) for id in IDS]), None),
    "most_useful": (lambda store: store.most_useful(THERE, 0.1), 0),
    "claim_scoring": (lambda store: store.ledger.claim_scoring(THERE, before=NOW - 3 * YEAR, now=NOW), None),
    "note_scoring": (lambda store: store.ledger.note_scoring(THERE, NOW - 2 * YEAR, "stolen"), None),
    "set_qualities": (lambda store: store.set_qualities(THERE, dict.fromkeys(IDS, 0.25)), 0),
    "granted_by": (lambda store: store.ledger.granted_by(THERE), []),
    "granted_to": (lambda store: store.ledger.granted_to(THERE), []),
    "offered_to": (lambda store: store.ledger.offered_to(THERE), []),
    "accept": (lambda store: store.ledger.accept(THERE, "notes", "reader"), False),
    "revoke": (lambda store: store.ledger.revoke(THERE, "notes", "reader"), False),
    "grant": (lambda store: store.ledger.grant(THERE, "notes", "reader", "write"), None),
    "reply": (lambda store: store.ledger.reply(THERE, "key", 500, b"stolen", expires=NOW + YEAR), None),
    "disclaim": (lambda store: store.ledger.disclaim(THERE, "key"), None),
    "claim": (lambda store: store.ledger.claim(THERE, "key", "theirs", now=NOW, expires=NOW + YEAR), None),
    "add": (lambda store: _added(store), [True, 0, []]),
}
"""Every call of a store, made from another space with the ids of this one, and what it must come to. `add` comes last:
with it the other space is one that was used."""


async def _added(store: Store) -> Any:
    """A memory of this space remembered in the other as well, linked to one that only this space has: whether it is
    new there, its place in its thread, and the links; then it is forgotten.
    """
    there = record("a", "umbrella a", thread="t", space=THERE, edges=[Edge("a", "b")])
    (answer,) = await store.add(THERE, [there])
    linked = await _answer(store, lambda store: edges(store, space=THERE), left_out=[])
    await store.forget(THERE, ["a"])
    return answer.created, answer.memory.place, linked


async def _listed(store: Store) -> Any:
    return (await store.list(THERE, ALL, limit=10)).memories


async def _worded(store: Store) -> Any:
    return (await store.search_words(THERE, question("umbrella"), ALL, limit=10)).hits


async def _compared(store: Store) -> Any:
    return (await store.search_vectors(THERE, unit(1), ALL, limit=10)).hits


async def _counted(store: Store) -> Any:
    stats = await store.stats(THERE)
    return (stats.memories, stats.superseded, stats.pending, stats.edges)


async def _vectors(store: Store) -> Any:
    return {id: vector.tolist() for id, vector in (await store.vectors(HERE, IDS)).items()}


FURNISH: tuple[Call, ...] = (
    lambda store: store.link(HERE, [Edge("a", "b", strength=0.5)]),
    lambda store: store.mark_hits(HERE, {"a": 3}, now=NOW),
    lambda store: store.ledger.count_usage(HERE, [Bucket(NOW, Usage(recalls=3))]),
    lambda store: store.ledger.note_uses(HERE, [Use("which umbrella?", "a", NOW)]),
    lambda store: store.ledger.grant(HERE, "notes", "reader", "read"),
    lambda store: store.ledger.claim(HERE, "key", "ours", now=NOW, expires=NOW + YEAR),
)
STATE: tuple[Call, ...] = (
    lambda store: store.get(HERE, [*IDS, "c"]),
    _vectors,
    edges,
    lambda store: found(store, "umbrella"),
    lambda store: nearest(store, unit(1)),
    lambda store: store.unlinked(HERE, limit=10),
    lambda store: store.beside(HERE, IDS, 2),
    lambda store: store.history(HERE, "a", limit=10),
    lambda store: store.stats(HERE),
    lambda store: store.ledger.usage(HERE, NOW - YEAR),
    lambda store: store.ledger.uses(HERE),
    lambda store: store.most_useful(HERE, 0.1),
    lambda store: store.ledger.claim_scoring(HERE, before=NOW - YEAR, now=NOW),
    lambda store: store.ledger.granted_by(HERE),
    lambda store: store.ledger.claim(HERE, "key", "ours", now=NOW, expires=NOW + YEAR),
)
"""All that can be seen of this space."""


async def _furnish(store: Store) -> None:
    await store.set_generation(MODEL)
    batch = [record(id, f"umbrella {id}", vector=unit(1), thread="t", tags=("x",)) for id in IDS]
    await store.add(HERE, [*batch, record("c")])
    for call in FURNISH:
        await _answer(store, call)


async def _state(store: Store) -> list[Any]:
    return [await _answer(store, call) for call in STATE]


async def _answer(store: Store, call: Call, left_out: Any = None) -> Any:
    """What a call answers, lists as lists; `left_out` where the store leaves it out."""
    try:
        answer = await call(store)
    except LeftOut:
        return left_out
    return list(answer) if isinstance(answer, list | tuple) else answer


async def spec_every_call_is_tried(store: Store) -> None:
    """A call that is new to the port is tried from another space as well, or named as one without a space."""
    ports = (Store, Ledger)
    public = {n for port in ports for n in dir(port) if not n.startswith("_") and callable(getattr(port, n))}
    assert public - WITHOUT_SPACE == CALLS.keys()
    assert store.name


async def spec_an_unused_space_is_empty(store: Store) -> None:
    """From a space that nobody used no call sees or changes anything of another."""
    await _furnish(store)
    await _check_calls(store)


async def spec_another_space_sees_nothing(store: Store) -> None:
    """Nor does a space that has memories of its own, with their own ids."""
    await _furnish(store)
    await store.add(THERE, [record("z", "bicycle", space=THERE)])
    await store.forget(THERE, ["z"])
    await _check_calls(store)


async def _check_calls(store: Store) -> None:
    before = await _state(store)
    for name, (call, expected) in CALLS.items():
        answer = await _answer(store, call, left_out=expected)
        assert answer == expected, f"{name} reached another space"
        assert await _state(store) == before, f"{name} changed another space"


async def spec_the_same_ids_in_two_spaces(store: Store) -> None:
    """Two spaces may use the same ids, texts, tags and threads, and each keeps its own."""
    await _furnish(store)
    before = await _state(store)
    batch = [record(id, f"umbrella {id}", vector=unit(0, 1), thread="t", space=THERE, tags=("x",)) for id in IDS]
    assert all(answer.created for answer in await store.add(THERE, batch))
    await store.link(THERE, [Edge("b", "a", "other")])
    await store.update(THERE, "a", {"text": "a bicycle"}, now=NOW)
    await store.supersede(THERE, "b", "a", now=NOW)
    assert await _state(store) == before
    await store.forget(THERE, IDS)
    assert await _state(store) == before


async def spec_rarity_is_a_space_s_own(store: Store) -> None:
    """How rare a word is in a space does not depend on other spaces."""
    await _furnish(store)
    await store.add(HERE, [record(f"k{n}", f"kite number {n}") for n in range(5)])
    assert (await found(store, "kite umbrella"))[0] == "a"
    await store.add(THERE, [record(f"m{n}", f"umbrella number {n}", space=THERE) for n in range(50)])
    assert (await found(store, "kite umbrella"))[0] == "a"
