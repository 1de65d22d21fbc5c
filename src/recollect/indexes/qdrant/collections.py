"""The collections of one Qdrant: their names, how they are created, and which one is live.

A generation's vectors are reached through an alias, so a new collection can be filled while the old one answers, and
replace it in one step for every process.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import blake2s
from secrets import token_hex
from typing import Any, Final, TypeAlias

from qdrant_client import AsyncQdrantClient, models

from recollect.errors import BackendError, BackendUnavailable
from recollect.indexes.qdrant import points
from recollect.indexes.qdrant.connection import Connection
from recollect.indexes.qdrant.failures import BACKEND, CollectionMissing
from recollect.settings import QdrantSettings
from recollect.types import Generation

IndexParams: TypeAlias = (
    models.KeywordIndexParams | models.DatetimeIndexParams | models.FloatIndexParams | models.BoolIndexParams
)

NEEDED: Final = (1, 19)
"""The first Qdrant that can match the prefix of a keyword, which `source_prefix` needs."""
_FIRST: Final = "0" * 8
_SLUG: Final = 40
_LINKS: Final = 16  # per point, among the points of its space
_CARE: Final = 128  # candidates looked at for each link when a graph is built
_SCANNED: Final = 20_000  # points that pass a filter, up to which all are compared: 2 ms at 384 dimensions
_KEYWORD: Final = models.KeywordIndexType.KEYWORD
_DATETIME: Final = models.DatetimeIndexParams(type=models.DatetimeIndexType.DATETIME, enable_hnsw=False)
_NAME: Final = models.KeywordIndexParams(type=_KEYWORD, enable_hnsw=False)
INDEXES: Final[Mapping[str, IndexParams]] = {
    points.SPACE: models.KeywordIndexParams(type=_KEYWORD, is_tenant=True),
    points.NAMESPACE: _NAME,
    points.KIND: _NAME,
    points.TAGS: _NAME,
    points.THREAD: _NAME,
    points.SOURCE: models.KeywordIndexParams(type=_KEYWORD, prefix=True, enable_hnsw=False),
    points.TIME: _DATETIME,
    points.QUALITY: models.FloatIndexParams(type=models.FloatIndexType.FLOAT, enable_hnsw=False),
    points.SUPERSEDED: models.BoolIndexParams(type=models.BoolIndexType.BOOL, enable_hnsw=False),
    points.EXPIRES_AT: _DATETIME,
}
"""The index of each payload field. Each space has its own graph: no search goes beyond one."""


def alias_of(prefix: str, generation: Generation) -> str:
    """The alias of a generation: readable, bounded and unique to its model."""
    slug = re.sub(r"[^a-z0-9]+", "-", generation.model.lower())[:_SLUG].strip("-")
    digest = blake2s(generation.model.encode(), digest_size=4).hexdigest()
    return f"{prefix}_{slug}-{digest}_{generation.dimensions}"


async def ensure(connection: Connection, alias: str, generation: Generation, settings: QdrantSettings) -> None:
    """Ensure that the alias leads to a collection for this generation, with an index for every filter."""
    version = (await connection.call(lambda client: client.info())).version
    if _numbers(version) < NEEDED:
        needed = ".".join(map(str, NEEDED))
        raise BackendError(f"{connection.address} is version {version}: install {needed} or newer", backend=BACKEND)
    try:
        known = await connection.call(lambda client: client.get_collection(alias))
    except CollectionMissing:
        await _create_first(connection, alias, generation, settings)
        known = await connection.call(lambda client: client.get_collection(alias))
    _check(connection, alias, known.config.params.vectors, generation)
    await _index(connection, alias, INDEXES.keys() - known.payload_schema.keys())


async def create_beside(connection: Connection, alias: str, generation: Generation, settings: QdrantSettings) -> str:
    """Create an empty collection that the alias does not lead to. Other unused collections are removed: if two rebuilds
    run at once, the first fails.
    """
    live = await _target(connection, alias)
    for name in await _made_for(connection, alias):
        if name != live:
            await _drop(connection, name)
    name = f"{alias}_{token_hex(4)}"
    await _create(connection, name, generation, settings)
    return name


async def switch(connection: Connection, alias: str, name: str) -> None:
    """Point the alias to this collection, and delete the one that it led to."""
    before = await _target(connection, alias)
    await _point(connection, alias, name)
    if before is not None and before != name:
        with suppress(BackendUnavailable):  # the next rebuild removes it
            await _drop(connection, before)


async def exists(connection: Connection, alias: str) -> bool:
    """Whether the alias leads to a collection."""
    return await _target(connection, alias) is not None


async def drop(connection: Connection, alias: str) -> None:
    """Remove the collection that the alias leads to, if there is one."""
    target = await _target(connection, alias)
    if target is not None:
        await _drop(connection, target)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


async def _create_first(connection: Connection, alias: str, generation: Generation, settings: QdrantSettings) -> None:
    """Create it under a fixed name, so that of two processes the slower one finds it."""
    name = f"{alias}_{_FIRST}"
    try:
        await _create(connection, name, generation, settings)
    except BackendError:
        if not await connection.call(lambda client: client.collection_exists(name)):
            raise
    await _point(connection, alias, name)


async def _create(connection: Connection, name: str, generation: Generation, settings: QdrantSettings) -> None:
    int8 = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
    await connection.call(
        lambda client: client.create_collection(
            name,
            vectors_config=models.VectorParams(
                size=generation.dimensions, distance=models.Distance.COSINE, on_disk=settings.on_disk
            ),
            hnsw_config=graphs(generation.dimensions, on_disk=settings.on_disk),
            quantization_config=models.ScalarQuantization(scalar=int8) if settings.quantisation == "int8" else None,
            shard_number=settings.shard_number,
            replication_factor=settings.replication_factor,
        )
    )
    await _index(connection, name, INDEXES.keys())


def graphs(dimensions: int, *, on_disk: bool = False) -> models.HnswConfigDiff:
    """A graph for each large space, and none over all; few passing points are compared exactly."""
    return models.HnswConfigDiff(
        m=0,
        payload_m=_LINKS,
        ef_construct=_CARE,
        full_scan_threshold=max(_SCANNED * dimensions * 4 // 1024, 10),
        on_disk=on_disk,
    )


async def _index(connection: Connection, name: str, fields: Iterable[str]) -> None:
    for field in sorted(fields):
        await connection.call(partial(_create_index, name=name, field=field))


def _create_index(client: AsyncQdrantClient, name: str, field: str) -> Coroutine[Any, Any, models.UpdateResult]:
    return client.create_payload_index(name, field, INDEXES[field])


def _check(connection: Connection, name: str, vectors: object, generation: Generation) -> None:
    if isinstance(vectors, models.VectorParams):
        if (vectors.size, vectors.distance) == (generation.dimensions, models.Distance.COSINE):
            return
        found = f"vectors of {vectors.size} dimensions compared by {vectors.distance.value}"
    else:
        found = "vectors with names"
    raise BackendError(
        f"the collection {name} of {connection.address} holds {found}, and {generation.model} needs vectors of "
        f"{generation.dimensions} dimensions compared by {models.Distance.COSINE.value}: delete the collection, or "
        "choose another prefix in the URL",
        backend=BACKEND,
    )


async def _target(connection: Connection, alias: str) -> str | None:
    """The collection that the alias leads to."""
    known = await connection.call(lambda client: client.get_aliases())
    return next((one.collection_name for one in known.aliases if one.alias_name == alias), None)


async def _made_for(connection: Connection, alias: str) -> list[str]:
    known = await connection.call(lambda client: client.get_collections())
    ours = re.compile(re.escape(alias) + r"_[0-9a-f]{8}")
    return [one.name for one in known.collections if ours.fullmatch(one.name)]


async def _point(connection: Connection, alias: str, name: str) -> None:
    """Point the alias to a collection, in one step even if it leads elsewhere."""
    leads = models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=name, alias_name=alias))
    await connection.call(lambda client: client.update_collection_aliases([leads]))


async def _drop(connection: Connection, name: str) -> None:
    await connection.call(lambda client: client.delete_collection(name))
