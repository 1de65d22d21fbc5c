"""What SQLite and Postgres stores have in common: the columns of a memory, what a filter lets through, and the methods
that search by vector.
"""

from __future__ import annotations

import builtins
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from recollect.ports import VectorHits
from recollect.stores.contents import json_text
from recollect.types import Background, EmbeddingState, Filter, Generation, Memory, Scored

if TYPE_CHECKING:
    from recollect.types import Vector

T = TypeVar("T")
Columns: TypeAlias = tuple[Any, ...]
Share: TypeAlias = Literal["search", "rows", "other"]
"""What a call needs a connection for; see `recollect.stores.postgres.pool`."""
_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


class Codec(NamedTuple):
    """A memory as the columns of a row: its own fields, then its hits and uses. Databases differ in times and tags."""

    write_time: Callable[[datetime], Any]
    read_time: Callable[[Any], datetime]
    write_tags: Callable[[tuple[str, ...]], Any]
    read_tags: Callable[[Any], tuple[str, ...]]

    def encode(self, memory: Memory, *, place: int | None, embedding: EmbeddingState) -> Columns:
        """A memory's columns. The store decides its place and the state of its embedding."""
        m, time = memory, self.write_time
        return (
            m.id, m.text, m.namespace, m.kind, m.title, self.write_tags(m.tags), m.source, m.thread, place,
            json_text(m.metadata) if m.metadata else "{}", time(m.created_at), time(m.updated_at),
            m.occurred_at and time(m.occurred_at), m.expires_at and time(m.expires_at), m.superseded_by, m.quality,
            embedding, m.hits, m.last_hit_at and time(m.last_hit_at), m.used, m.last_used_at and time(m.last_used_at),
        )  # fmt: skip

    def decode(self, space: str, columns: Columns) -> Memory:
        (
            id, text, namespace, kind, title, tags, source, thread, place, metadata, created_at, updated_at,
            occurred_at, expires_at, superseded_by, quality, embedding, hits, last_hit_at, used, last_used_at,
        ) = columns  # fmt: skip
        time = self.read_time
        return Memory(
            id, space, text, namespace, kind, title, self.read_tags(tags), source, thread, place,
            {} if metadata == "{}" else json.loads(metadata), time(created_at), time(updated_at),
            None if occurred_at is None else time(occurred_at), None if expires_at is None else time(expires_at),
            superseded_by, quality, hits, None if last_hit_at is None else time(last_hit_at),
            used, None if last_used_at is None else time(last_used_at), embedding,
        )  # fmt: skip


def is_unfiltered(where: Filter) -> bool:
    """Whether a filter hides at most superseded and expired memories."""
    unfiltered = Filter(
        include_superseded=where.include_superseded, include_expired=where.include_expired, now=where.now
    )
    return where == unfiltered


def first_after(prefix: str) -> str:
    """The first string that sorts, by code point, after all that begin with `prefix`; empty if there is none."""
    stem = prefix.rstrip(chr(_LAST))
    if not stem:
        return ""
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)


class SqlStore(ABC):
    """Searches by vector: each finds the numbers of the space and of the generation, then asks `_vectors`."""

    _vectors: Any
    """The backend's `VectorSearch`: synchronous on SQLite, asynchronous on Postgres."""

    @abstractmethod
    async def _read_vectors(
        self,
        space: str,
        work: Callable[[Any, int, Any], Any],
        nothing: T,
        generation: Generation | None = None,
        share: Share = "search",
    ) -> T:
        """What `work` finds with a connection, the number of the space and the generation; `nothing` where the space
        has no vectors.
        """

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
        work = partial(self._vectors.search, vector=vector, where=where, limit=limit, ef_search=ef_search)
        return await self._read_vectors(space, work, VectorHits([]), generation)

    async def vector_background(
        self, space: str, vector: Vector, *, generation: Generation | None = None
    ) -> Background | None:
        return await self._read_vectors(space, partial(self._vectors.background, vector=vector), None, generation)

    async def nearest_to(self, space: str, ids: Sequence[str], *, limit: int) -> dict[str, builtins.list[Scored]]:
        return await self._read_vectors(
            space, partial(self._vectors.nearest_to, ids=ids, limit=limit), {}, share="other"
        )

    async def vectors(
        self, space: str, ids: Sequence[str], *, generation: Generation | None = None
    ) -> dict[str, Vector]:
        return await self._read_vectors(space, partial(self._vectors.fetch, ids=ids), {}, generation, "rows")
