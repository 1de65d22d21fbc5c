"""How Qdrant's collections are called and made, and made anew while they answer."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import models

from recollect.conformance.samples import ALL, HERE, MODEL, raises, unit
from recollect.errors import BackendError, ConfigError
from recollect.indexes.qdrant.address import parse
from recollect.indexes.qdrant.collections import INDEXES, alias_of
from recollect.indexes.qdrant.index import QdrantIndex
from recollect.indexes.qdrant.points import point_id
from recollect.settings import QdrantSettings
from recollect.types import Generation
from tests.indexes.qdrant_process import QdrantProcess
from tests.indexes.qdrant_samples import KEY, administrator, change, collections, held, nearest, using

pytest_plugins = ["tests.indexes.qdrant_fixtures"]

# Made anew


async def test_it_is_made_anew_while_it_answers(qdrant_url: str) -> None:
    """A shadow is seen by nobody until it is published, and by everybody from then on; no search fails meanwhile."""
    async with using(qdrant_url) as index:
        await index.apply(HERE, [change("old", unit(1))])
        stop = asyncio.Event()
        seen: list[tuple[str, ...]] = []

        async def search() -> None:
            while not stop.is_set():
                seen.append(tuple(await nearest(index, unit(1))))

        searching = [asyncio.create_task(search()) for _ in range(3)]
        for round in range(3):
            shadow = await index.shadow()
            await shadow.apply(HERE, [change(f"new {round}", unit(1))])
            assert await held(shadow) == [f"new {round}"]
            assert f"new {round}" not in await held(index)
            await index.publish(shadow)
            assert await held(index) == [f"new {round}"]
        stop.set()
        await asyncio.gather(*searching)
        assert {*seen} <= {("old",), ("new 0",), ("new 1",), ("new 2",)}


async def test_what_takes_its_place_is_seen_by_every_process(corner: str, qdrant_server: QdrantProcess) -> None:
    """A client that knows nothing of the rebuild answers from the new collection, and the old one is gone."""
    async with using(corner) as index, using(corner) as other:
        await index.apply(HERE, [change("old", unit(1))])
        assert await held(other) == ["old"]
        shadow = await index.shadow()
        await shadow.apply(HERE, [change("new", unit(1))])
        await index.publish(shadow)
        assert await held(other) == ["new"]
        await other.apply(HERE, [change("newer", unit(1))])
        assert await held(index) == ["new", "newer"]
    assert len(await collections(qdrant_server, corner)) == 1


async def test_what_a_rebuild_left_that_came_to_nothing_is_removed_by_the_next(
    corner: str, qdrant_server: QdrantProcess
) -> None:
    """An abandoned shadow takes no space for ever; and should it still be filled, that fails instead of being lost."""
    async with using(corner) as index:
        abandoned = await index.shadow()
        await abandoned.apply(HERE, [change("a", unit(1))])
        await abandoned.close()
        assert len(await collections(qdrant_server, corner)) == 2
        shadow = await index.shadow()
        assert len(await collections(qdrant_server, corner)) == 2
        with raises(BackendError, "recollect rebuild"):
            await abandoned.apply(HERE, [change("b", unit(1))])
        await index.publish(shadow)


async def test_only_its_own_shadow_is_published(qdrant_url: str) -> None:
    """An index of something else never takes its place."""
    async with using(qdrant_url) as index:
        with pytest.raises(ValueError, match="no shadow"):
            await index.publish(index)


# How collections are made


async def test_a_collection_is_made_for_tenants(corner: str, qdrant_server: QdrantProcess) -> None:
    """The space is the tenant and has a graph of its own; every other field that is filtered has an index."""
    settings = QdrantSettings(quantisation="int8", shard_number=3, replication_factor=2, on_disk=True)
    async with using(corner, settings=settings), administrator(qdrant_server) as client:
        made = await client.get_collection(alias_of(parse(corner).prefix, MODEL))
    config = made.config
    assert config.params.vectors == models.VectorParams(size=4, distance=models.Distance.COSINE, on_disk=True)
    assert (config.hnsw_config.m, config.hnsw_config.payload_m, config.hnsw_config.on_disk) == (0, 16, True)
    assert isinstance(config.quantization_config, models.ScalarQuantization)
    assert (config.params.shard_number, config.params.replication_factor) == (3, 2)
    tenant = made.payload_schema["space"].params
    assert isinstance(tenant, models.KeywordIndexParams)
    assert tenant.is_tenant


async def test_two_that_begin_at_once_share_a_collection(corner: str) -> None:
    """Neither loses what it writes."""
    first, second = QdrantIndex(corner), QdrantIndex(corner)
    await asyncio.gather(*(each.use(MODEL) for each in (first, second) * 4))
    await asyncio.gather(first.apply(HERE, [change("a", unit(1))]), second.apply(HERE, [change("b", unit(1))]))
    assert await held(first) == await held(second) == ["a", "b"]
    await asyncio.gather(first.close(), second.close())


async def test_a_collection_that_was_half_made_is_finished(corner: str, qdrant_server: QdrantProcess) -> None:
    """Whoever was stopped after making a collection, and before its indexes and its alias, does no harm."""
    alias = alias_of(parse(corner).prefix, MODEL)
    async with administrator(qdrant_server) as client:
        await client.create_collection(
            f"{alias}_00000000", models.VectorParams(size=MODEL.dimensions, distance=models.Distance.COSINE)
        )
        async with using(corner):
            made = await client.get_collection(alias)
    assert made.payload_schema.keys() == INDEXES.keys()
    assert len(await collections(qdrant_server, corner)) == 1


@pytest.mark.parametrize(
    ("size", "distance", "said"), [(7, models.Distance.COSINE, "7 dimensions"), (4, models.Distance.DOT, "by Dot")]
)
async def test_a_collection_of_another_shape_is_refused(
    corner: str, qdrant_server: QdrantProcess, size: int, distance: models.Distance, said: str
) -> None:
    """The sentence names what is there and what is needed; nothing is changed."""
    index = QdrantIndex(corner)
    async with administrator(qdrant_server) as client:
        await client.create_collection(
            alias_of(parse(corner).prefix, MODEL), models.VectorParams(size=size, distance=distance)
        )
        with raises(BackendError, said, "4 dimensions compared by Cosine", MODEL.model):
            await index.use(MODEL)
    with raises(BackendError, said):
        await index.search_vectors(HERE, unit(1), ALL, limit=1)
    await index.close()


async def test_a_vector_of_another_dimension_is_refused(corner: str) -> None:
    """With the engine's own reason."""
    async with using(corner) as index:
        with raises(BackendError, "HTTP 400"):
            await index.apply(HERE, [change("a", np.ones(3, np.float32))])


async def test_an_old_server_is_refused(mortal_qdrant: QdrantProcess) -> None:
    """One that cannot match the beginning of a source would answer a filter with an error, or wrongly."""
    mortal_qdrant.behave(version="1.18.3")
    index = QdrantIndex(mortal_qdrant.url, key=KEY)
    with raises(BackendError, "1.18.3", "1.19 or newer"):
        await index.use(MODEL)
    await index.close()


@given(st.lists(st.builds(Generation, st.text(min_size=1), st.integers(1, 65536)), min_size=2, unique=True))
def test_each_generation_has_a_collection_of_its_own(generations: list[Generation]) -> None:
    """Names are different for different models, bounded, and of characters that a collection may have."""
    names = [alias_of("p" * 64, generation) for generation in generations]
    assert len({*names}) == len(names)
    assert all(len(name) < 200 and name.isascii() and not set('<>:"/\\|?* ') & {*name} for name in names)


@given(st.text(), st.text(), st.text(), st.text())
def test_no_two_memories_share_a_point(space: str, id: str, other_space: str, other_id: str) -> None:
    """Whatever the names of spaces and the ids are made of."""
    same = (space, id) == (other_space, other_id)
    assert (point_id(space, id) == point_id(other_space, other_id)) is same
    assert point_id(space, id + other_id) != point_id(space + id, other_id) or not id


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"quantisation": "int4"}, "'int4', and must be one of: none, int8"),
        ({"shard_number": 0}, "shard_number of Qdrant is 0"),
        ({"replication_factor": -1}, "replication_factor of Qdrant is -1"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], said: str) -> None:
    """Before anything is reached, with the value and what it may be."""
    with raises(ConfigError, said):
        QdrantSettings(**settings)
