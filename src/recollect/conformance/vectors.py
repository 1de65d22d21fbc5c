"""Searching by meaning: the nearest vectors, whichever way the store finds them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from hashlib import sha256
from statistics import fmean, pstdev

import numpy as np

from recollect.conformance.samples import ALL, HERE, MODEL, NOW, memory, nearest, record, unit
from recollect.ports import Store
from recollect.types import Filter, Generation, Record

CLOSE = 1e-3
"""How exact a score must be: an index may keep its vectors in half precision."""


async def spec_nearest_first(store: Store) -> None:
    """Hits come by cosine, and the cosine is their score."""
    await store.set_generation(MODEL)
    directions = {"east": unit(1), "north": unit(0, 1), "between": unit(1, 1), "west": unit(-1)}
    await store.add(HERE, [record(id, vector=vector) for id, vector in directions.items()])
    hits = (await store.search_vectors(HERE, unit(1), ALL, limit=10)).hits
    assert [hit.id for hit in hits] == ["east", "between", "north", "west"]
    for hit, cosine in zip(hits, (1.0, math.sqrt(0.5), 0.0, -1.0), strict=True):
        assert math.isclose(hit.score, cosine, abs_tol=CLOSE)
    assert await nearest(store, unit(1), limit=2) == ["east", "between"]


async def spec_the_nearest_to_a_memory_are_others(store: Store) -> None:
    """Each memory's nearest, best first, without itself; one without a vector has none."""
    await store.set_generation(MODEL)
    near = {"east": unit(1), "between": unit(1, 1), "north": unit(0, 1)}
    await store.add(HERE, [record("silent"), *(record(id, vector=vector) for id, vector in near.items())])
    found = await store.nearest_to(HERE, ["east", "silent"], limit=2)
    assert {id: [hit.id for hit in hits] for id, hits in found.items()} == {"east": ["between", "north"]}


async def spec_the_background_is_how_the_space_compares(store: Store) -> None:
    """Mean and deviation of the cosines of the space's memories, and how many there are."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("east", vector=unit(1)), record("north", vector=unit(0, 1))])
    background = (await store.search_vectors(HERE, unit(1), ALL, limit=1)).background
    assert background is not None
    assert math.isclose(background.mean, 0.5, abs_tol=CLOSE)
    assert math.isclose(background.deviation, 0.5, abs_tol=CLOSE)
    assert background.count == 2


async def spec_the_background_depends_on_what_the_space_holds_alone(store: Store) -> None:
    """Of more than 256 vectors it is told by those whose titles and texts have the lowest SHA-256, whatever came first,
    and whatever was forgotten, changed or superseded since.
    """
    await store.set_generation(MODEL)
    angles = {f"{number:03}": 0.01 * number for number in range(300)}

    async def told() -> tuple[float, float, int]:
        background = await store.vector_background(HERE, unit(1))
        assert background is not None
        assert (await store.search_vectors(HERE, unit(1), ALL, limit=1)).background == background
        return background.mean, background.deviation, background.count

    def wanted() -> tuple[float, float, int]:
        lowest = sorted(angles, key=lambda one: sha256(f"\nmemory {one}".encode()).digest())[:256]
        cosines = [math.cos(angles[id]) for id in lowest]
        count = len(angles) if len(lowest) == 256 else len(lowest)
        return fmean(cosines), pstdev(cosines), count

    def close(some: tuple[float, float, int], others: tuple[float, float, int]) -> bool:
        return all(math.isclose(one, other, abs_tol=CLOSE) for one, other in zip(some, others, strict=True))

    def records(ids: Iterable[str]) -> list[Record]:
        return [record(id, vector=unit(math.cos(angles[id]), math.sin(angles[id]))) for id in ids]

    for some in ([*angles][250:], [*angles][:7], [*angles][7:250]):
        await store.add(HERE, records(some))
        await store.vector_background(HERE, unit(1))
    assert close(await told(), wanted())
    await store.supersede(HERE, "001", "002", now=NOW)
    assert close(await told(), wanted())
    gone = [*angles][100:120]
    await store.forget(HERE, gone)
    angles = {id: angle for id, angle in angles.items() if id not in gone}
    assert close(await told(), wanted())
    angles["003"] = math.pi
    await store.update(HERE, "003", {"text": "memory 003"}, vector=unit(-1), now=NOW)
    assert close(await told(), wanted())


async def spec_ties_go_by_id(store: Store) -> None:
    """The same score is ordered by id, also at the limit."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record(id, vector=unit(1)) for id in "dbac"])
    assert await nearest(store, unit(1)) == ["a", "b", "c", "d"]
    assert await nearest(store, unit(1), limit=2) == ["a", "b"]


async def spec_what_has_no_vector_is_not_found(store: Store) -> None:
    """Without vectors, or without any model, the answer is empty and no error."""
    await store.add(HERE, [record("a")])
    assert await nearest(store, unit(1)) == []
    await store.set_generation(MODEL)
    assert await nearest(store, unit(1)) == []
    assert await store.vectors(HERE, ["a"]) == {}


async def spec_vectors_come_back(store: Store) -> None:
    """`vectors` gives the vectors that were stored, for those ids that have one."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1, 2, 3, 4)), record("b")])
    (stored,) = (await store.vectors(HERE, ["a", "b", "nothing"])).items()
    assert stored[0] == "a"
    assert stored[1].dtype == np.float32
    assert np.allclose(stored[1], unit(1, 2, 3, 4), atol=CLOSE)


async def spec_a_change_shows_in_the_next_search(store: Store) -> None:
    """Added, replaced and forgotten vectors count from the next search on, and ever after."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1))])
    assert await nearest(store, unit(1)) == ["a"]
    await store.add(HERE, [record("b", vector=unit(1, 0.1)), record("c")])
    assert await nearest(store, unit(1)) == ["a", "b"]
    await store.put_vectors(HERE, [(memory("a"), unit(-1)), (memory("c"), unit(1))])
    assert await nearest(store, unit(1)) == ["c", "b", "a"]
    await store.forget(HERE, ["c"])
    assert await nearest(store, unit(1)) == ["b", "a"]


async def spec_a_replaced_vector_is_found_once(store: Store) -> None:
    """However often a vector is replaced, its memory is one hit."""
    await store.set_generation(MODEL)
    await store.add(HERE, [record("a", vector=unit(1)), record("b", vector=unit(0, 1))])
    for angle in (0.1, 0.2, 0.3):
        await store.put_vectors(HERE, [(memory("a"), unit(1, angle))])
        assert await nearest(store, unit(1)) == ["a", "b"]


async def spec_filters_lose_nothing(store: Store) -> None:
    """At every width of the filter the nearest ten are those of a comparison with all."""
    vectors = np.random.default_rng(7).standard_normal((600, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kinds = ["tenth" if n % 10 == 0 else "fiftieth" if n % 50 == 1 else "rest" for n in range(len(vectors))]
    await store.set_generation(Generation("wide", 16))
    await store.add(HERE, [record(f"{n:03}", vector=vectors[n], kind=kind) for n, kind in enumerate(kinds)])
    for passing in (set(kinds), {"tenth"}, {"fiftieth"}):
        rows = np.flatnonzero([kind in passing for kind in kinds])
        kept = 0
        for question in vectors[100:110]:
            best = rows[np.argsort(-(vectors[rows] @ question))][:10]
            kept += len({f"{n:03}" for n in best} & set(await nearest(store, question, Filter(kinds=tuple(passing)))))
        assert kept >= 99, f"{100 - kept} of the 100 nearest were lost among {passing}"
