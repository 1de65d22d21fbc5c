"""Qdrant beside a store: the index that answers the vector leg."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
from qdrant_client import AsyncQdrantClient, models

from recollect.errors import BackendError, BackendUnavailable, EmbeddingMismatch
from recollect.indexes.qdrant import collections, points
from recollect.indexes.qdrant.address import parse
from recollect.indexes.qdrant.connection import Connection
from recollect.indexes.qdrant.failures import BACKEND, CollectionMissing
from recollect.indexes.qdrant.filters import conditions, outside, within
from recollect.ports import Change, ExternalIndex, Store, VectorHits
from recollect.settings import QdrantSettings, Settings
from recollect.types import Background, Filter, Generation, Scored

if TYPE_CHECKING:
    from recollect.types import Vector

T = TypeVar("T")
Question: TypeAlias = Callable[[AsyncQdrantClient, str], Coroutine[Any, Any, T]]
"""What is asked of the client, and of which collection."""

_WRITTEN: Final = 64  # points in one request; the local mode waits for the disk at each, which may take 20 ms
_FETCHED: Final = 512  # points with vectors in one request: of 1,536 dimensions, 15 MB of JSON
_LISTED: Final = 1_000  # points without vectors in one request
_QUESTIONS: Final = 32  # in one request
_TIES: Final = (16, 1_024)
"""Hits asked for beyond the wanted: ties go by id, and Qdrant chooses among them by itself. More when these all tie."""
_EFFORT: Final = 6
_LEAST_EFFORT: Final = 256
_OVERSAMPLING: Final = 2.0


class Compare(Protocol):
    """A store, as far as it says what cosines are measured against."""

    async def vector_background(
        self, space: str, /, vector: Vector, *, generation: Generation | None = None
    ) -> Background | None: ...


class QdrantIndex:
    """The vectors of one store, in the collection of the generation that `use` names. Before that, it holds nothing."""

    name = BACKEND

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 5.0,
        settings: QdrantSettings = QdrantSettings(),  # noqa: B008 (frozen)
        background: Compare | None = None,
    ) -> None:
        """Raises ConfigError for a URL that names no Qdrant; nothing is reached yet. `background` is the store's, so
        that scores are measured against the same with this index as without.
        """
        self._connection = Connection(parse(url), key or settings.key, timeout)
        self._settings = settings
        self._generation: Generation | None = None
        self._collection: str | None = None
        self._is_ready = False
        self._is_shadow = False
        self._background = background
        self._others: dict[Generation, QdrantIndex] = {}

    def __repr__(self) -> str:
        return f"QdrantIndex({str(self._connection.address)!r})"

    @classmethod
    def from_url(cls, url: str, settings: Settings, store: Store) -> QdrantIndex:
        """The index beside a store, which says what cosines are measured against."""
        return cls(url, settings=settings.qdrant, background=store)

    @property
    def in_process(self) -> bool:
        return self._connection.in_process

    # Lifetime

    async def open(self) -> None:
        try:
            await self.check()
        except BackendUnavailable:
            return  # it may come back

    async def close(self) -> None:
        if not self._is_shadow:
            await self._connection.close()

    async def use(self, generation: Generation) -> None:
        """Hold the vectors of this generation from now on. An engine that is down is no error here: the collection is
        then looked for, and made, by the first call that reaches it.
        """
        self._generation = generation
        self._collection = collections.alias_of(self._connection.address.prefix, generation)
        self._is_ready = False
        await self.open()

    async def of(self, generation: Generation) -> QdrantIndex:
        if generation == self._generation:
            return self
        twin = copy(self)
        twin._is_shadow = True
        twin._generation = generation
        twin._collection = collections.alias_of(self._connection.address.prefix, generation)
        twin._is_ready = False
        return twin

    async def drop(self, generation: Generation) -> None:
        await collections.drop(self._connection, collections.alias_of(self._connection.address.prefix, generation))

    async def _of_another(self, generation: Generation) -> QdrantIndex:
        """The index of a generation other than the current one, which it must hold already."""
        if generation not in self._others:
            twin = await self.of(generation)
            if not await collections.exists(self._connection, str(twin._collection)):
                raise EmbeddingMismatch.between(self._generation or generation, generation.model, generation.dimensions)
            self._others[generation] = twin
        return self._others[generation]

    async def check(self) -> None:
        if self._collection is None:
            await self._connection.call(lambda client: client.get_collections())
        else:
            await self._ask(lambda client, collection: client.get_collection(collection))

    async def shadow(self) -> QdrantIndex:
        generation, alias = await self._ready()
        twin = copy(self)  # over the same connection, which stays this one's
        twin._is_shadow = True
        twin._collection = await collections.create_beside(self._connection, alias, generation, self._settings)
        return twin

    async def publish(self, shadow: ExternalIndex) -> None:
        generation, alias = await self._ready()
        if not isinstance(shadow, QdrantIndex) or not shadow._is_shadow or shadow._generation != generation:
            raise ValueError(f"{shadow!r} is no shadow of {self!r}")
        await collections.switch(self._connection, alias, str(shadow._collection))

    # What it holds

    async def apply(self, space: str, changes: Sequence[Change]) -> None:
        latest = {change.id: change for change in changes}
        kept = {
            id: points.point(space, change.memory, change.vector)
            for id, change in latest.items()
            if change.memory is not None and change.vector is not None
        }
        if self._generation is None and not kept:
            return
        for batch in points.batches([*kept.values()], _WRITTEN):
            await self._put(batch)
        for ids in points.batches(sorted(latest.keys() - kept.keys()), _WRITTEN):
            await self._remove(space, ids)

    async def count(self, space: str) -> int:
        if self._generation is None:
            return 0
        return (await self._ask(lambda client, name: client.count(name, within(space), exact=True))).count

    async def ids(self, space: str) -> AsyncIterator[str]:
        """In no order."""
        following: models.ExtendedPointId | None = None
        while self._generation is not None:
            found, following = await self._page(within(space), [points.ID], after=following)
            for point in found:
                yield points.field(point, points.ID)
            if following is None:
                return

    async def spaces(self) -> Sequence[str]:
        # Not by a facet: the local mode writes values that look like UUIDs in its own way.
        known: set[str] = set()
        while self._generation is not None:
            found, _ = await self._page(outside(sorted(known)), [points.SPACE])
            if not found:
                break
            known.update(points.field(point, points.SPACE) for point in found)
        return sorted(known)

    # Vectors

    async def search_vectors(
        self,
        space: str,
        vector: Vector,
        where: Filter,
        *,
        limit: int,
        ef_search: int | None = None,
        generation: Generation | None = None,
    ) -> VectorHits:
        if generation is not None and generation != self._generation:
            other = await self._of_another(generation)
            return await other.search_vectors(space, vector, where, limit=limit, ef_search=ef_search)
        if self._generation is None:
            return VectorHits([])
        found, background = await asyncio.gather(
            self._nearest(vector, conditions(space, where), limit, ef_search), self._compared(space, vector)
        )
        hits = points.ranked(found, limit)
        threaded = {points.field(point, points.ID) for point in found if points.field(point, points.THREAD) is not None}
        return VectorHits(hits, background, frozenset(threaded.intersection(hit.id for hit in hits)))

    async def nearest_to(self, space: str, ids: Sequence[str], *, limit: int) -> dict[str, list[Scored]]:
        own = await self.vectors(space, ids)
        nearest: dict[str, list[Scored]] = {}
        for batch in points.batches([*own], _QUESTIONS):
            requests = [_others(space, id, own[id], limit) for id in batch]
            answers = await self._batch(requests)
            nearest |= {
                id: points.ranked(answer.points, len(answer.points)) for id, answer in zip(batch, answers, strict=True)
            }
        return nearest

    async def vectors(
        self, space: str, ids: Sequence[str], *, generation: Generation | None = None
    ) -> dict[str, Vector]:
        if generation is not None and generation != self._generation:
            return await (await self._of_another(generation)).vectors(space, ids)
        found: dict[str, Vector] = {}
        if self._generation is None:
            return found
        for batch in points.batches(ids, _FETCHED):
            wanted = [points.point_id(space, id) for id in batch]
            found |= {points.field(point, points.ID): _vector(point) for point in await self._retrieve(wanted)}
        return found

    # What is asked of the client

    async def _ready(self) -> tuple[Generation, str]:
        """The generation, and the collection that holds it, looked for and made once."""
        generation, collection = self._generation, self._collection
        if generation is None or collection is None:
            raise BackendError(
                f"{self._connection.address} cannot hold vectors before it is told which model made them",
                backend=BACKEND,
            )
        if not self._is_ready:
            await collections.ensure(self._connection, collection, generation, self._settings)
            self._is_ready = True
        return generation, collection

    async def _ask(self, question: Question[T]) -> T:
        _, collection = await self._ready()
        try:
            return await self._connection.call(lambda client: question(client, collection))
        except CollectionMissing:
            # A rebuild let go of it while this was under way: the alias leads to what took its place, if anything did.
            return await self._connection.call(lambda client: question(client, collection))

    async def _put(self, batch: Sequence[models.PointStruct]) -> None:
        await self._ask(
            lambda client, name: client.upsert(name, [*batch], wait=True, ordering=models.WriteOrdering.MEDIUM)
        )

    async def _remove(self, space: str, ids: Sequence[str]) -> None:
        selected = models.PointIdsList(points=[points.point_id(space, id) for id in ids])
        await self._ask(
            lambda client, name: client.delete(name, selected, wait=True, ordering=models.WriteOrdering.MEDIUM)
        )

    async def _page(
        self, where: models.Filter, fields: list[str], *, after: models.ExtendedPointId | None = None
    ) -> tuple[list[models.Record], models.ExtendedPointId | None]:
        """Some points by id, beginning with `after`, and the id with which the next page begins."""
        return await self._ask(
            lambda client, name: client.scroll(name, where, limit=_LISTED, offset=after, with_payload=fields)
        )

    async def _compared(self, space: str, vector: Vector) -> Background | None:
        if self._background is None:
            return None
        return await self._background.vector_background(space, vector, generation=self._generation)

    async def _nearest(
        self, vector: Vector, where: models.Filter, limit: int, ef_search: int | None
    ) -> list[models.ScoredPoint]:
        """The best, and enough of those that tie with the last of them."""
        for slack in _TIES:
            found = await self._query(vector.tolist(), where, limit + slack, ef_search)
            if len(found) < limit + slack or points.cosine(found[-1]) < points.cosine(found[limit - 1]):
                break
        return found

    async def _query(
        self, numbers: list[float], where: models.Filter, count: int, ef_search: int | None
    ) -> list[models.ScoredPoint]:
        answer = await self._ask(
            lambda client, name: client.query_points(
                name,
                numbers,
                query_filter=where,
                limit=count,
                with_payload=[points.ID, points.THREAD],
                search_params=effort(count, ef_search),
            )
        )
        return answer.points

    async def _batch(self, requests: list[models.QueryRequest]) -> list[models.QueryResponse]:
        return await self._ask(lambda client, name: client.query_batch_points(name, requests))

    async def _retrieve(self, ids: list[str]) -> list[models.Record]:
        return await self._ask(
            lambda client, name: client.retrieve(name, ids, with_payload=[points.ID], with_vectors=True)
        )


def effort(count: int, ef_search: int | None = None) -> models.SearchParams:
    """How thoroughly a graph is searched; `ef_search` takes the place of the measured effort.

    Measured on Qdrant's own engine, 50,000 vectors of 384 dimensions: without ACORN, filters that pass a half to a
    fifth of a space lose up to a quarter of the nearest; with it, and this effort, less than one in a hundred.
    """
    return models.SearchParams(
        hnsw_ef=ef_search or max(_LEAST_EFFORT, _EFFORT * count),
        acorn=models.AcornSearchParams(enable=True, max_selectivity=1.0),
        quantization=models.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING),
    )


def _others(space: str, id: str, vector: Vector, limit: int) -> models.QueryRequest:
    """Which memories of the space, whatever their state, are nearest to one of them."""
    itself = models.HasIdCondition(has_id=[points.point_id(space, id)])
    count = limit + _TIES[0]
    return models.QueryRequest(
        query=vector.tolist(),
        filter=models.Filter(must=[within(space)], must_not=[itself]),
        limit=count,
        with_payload=[points.ID],
        params=effort(count),
    )


def _vector(point: models.Record) -> Vector:
    return np.array(point.vector, np.float32)
