"""From one embedding model to the next, in a file large enough to have an index beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from recollect.conformance.samples import ALL, HERE, MODEL, record
from recollect.stores.sqlite import generations
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite.usearch import Manifest
from recollect.stores.sqlite.vector_views import Limits
from recollect.stores.sqlite.vectors import VectorSearch
from recollect.types import Generation

NEXT = Generation("next", 8)
COUNT = 300


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A store in which 200 vectors are already many."""
    opened = SqliteStore(tmp_path / "memory.db")
    small = VectorSearch(tmp_path / "memory.db.vectors", Limits(exact_rows=200, tail_rows=50, rest_seconds=0.0))
    opened._vectors = opened.generations._search = small
    await opened.open()
    yield opened
    await opened.close()


async def filled(store: SqliteStore, count: int) -> np.ndarray:
    """A store with vectors of one model, and of the next that is not published yet."""
    vectors = np.random.default_rng(1).normal(size=(count, NEXT.dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    await store.set_generation(MODEL)
    await store.add(HERE, [record(f"{n:04}", vector=np.eye(4, dtype=np.float32)[n % 4]) for n in range(count)])
    await store.generations.begin(NEXT)
    missing = await store.generations.unembedded(HERE, NEXT, after="", limit=count)
    await store.generations.put(HERE, NEXT, list(zip(missing, vectors, strict=True)))
    return vectors


def published(store: SqliteStore) -> Manifest | None:
    """The index of the next generation, as any process finds it."""
    return Manifest.read(store.path.with_name("memory.db.vectors"), "1-2")


async def test_the_index_is_there_at_the_switch(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its graph, and with every vector in it: the first recall after the switch need not wait for a build."""
    vectors = await filled(store, COUNT)
    switch, seen = generations._publish, list[Manifest | None]()

    def watched(*given: object) -> bool:
        seen.append(published(store))
        return switch(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(generations, "_publish", watched)
    assert await store.generations.publish(NEXT, without={})
    (manifest,) = seen
    assert manifest is not None
    assert manifest.graph is not None
    assert manifest.count == COUNT
    found = await store.search_vectors(HERE, vectors[7], ALL, limit=1)
    assert [hit.id for hit in found.hits] == ["0007"]
    assert published(store) == manifest


async def test_a_small_space_gets_no_index(store: SqliteStore) -> None:
    """It is compared as a whole."""
    await filled(store, 100)
    assert await store.generations.publish(NEXT, without={})
    assert published(store) is None


async def test_a_build_that_fails_does_not_hold_up_the_switch(store: SqliteStore) -> None:
    """Searches are exact then."""
    vectors = await filled(store, COUNT)
    store.path.with_name("memory.db.vectors").write_text("a file where the folder of the index should be")
    assert await store.generations.publish(NEXT, without={})
    found = await store.search_vectors(HERE, vectors[7], ALL, limit=1)
    assert [hit.id for hit in found.hits] == ["0007"]
