"""Samples of each space's vectors, cached and updated at each search. They tell how a question compares with the space
at large, and how much of it passes a filter.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from recollect.stores.named_sql import load
from recollect.stores.nearest import SAMPLE, SampleCache, background
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.filters import where_clause
from recollect.stores.postgres.generations import GenerationRow
from recollect.stores.postgres.rows import rows_of
from recollect.stores.postgres.vector_bytes import read_vectors
from recollect.types import Background, Filter

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

Q = load(__name__, "vectors.sql")


_SETTINGS: Final = ("enable_sort", "enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin")
IN_ORDER: Final = "; ".join(f"SET LOCAL {name} = off" for name in _SETTINGS)
"""Makes Postgres use the index of digests. After a fresh load it has no statistics, and would sort every digest."""
IN_ANY_ORDER: Final = "; ".join(f"SET LOCAL {name} TO DEFAULT" for name in _SETTINGS)


class Size(NamedTuple):
    """How many memories a space holds, and how often it was changed."""

    memories: int
    changes: int


class _Member(NamedTuple):
    """A row of the sample, and the transaction that wrote its vector."""

    row: int
    written_by: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The vectors of a space whose texts have the lowest digests."""

    size: Size
    members: list[_Member]
    vectors: Vectors

    def background(self, vector: Vector) -> Background | None:
        return background(self.vectors, vector, self.size.memories)

    async def passing(self, db: Database, space: int, where: Filter) -> int:
        """About how many of the space's vectors belong to memories that pass the filter."""
        condition, values = where_clause(space, where)
        sql = Q["count_passing"].format(where=condition)
        counted: list[tuple[int]] = await rows_of(db, sql, sample=[one.row for one in self.members], **values)
        return round(self.size.memories * counted[0][0] / len(self.members))


class Samples:
    """The samples of the spaces that were asked last."""

    def __init__(self) -> None:
        self._cache: SampleCache[Sample] = SampleCache()
        self._turns: WeakValueDictionary[tuple[int, int], asyncio.Lock] = WeakValueDictionary()

    async def of(self, db: Database, space: int, generation: GenerationRow) -> Sample:
        """A space's current sample. Of concurrent calls, one reads it and the others wait."""
        key = (space, generation.number)
        size = await size_of(db, space)
        async with self._turns.setdefault(key, asyncio.Lock()):
            sample = self._cache.get(key)
            if sample is None or sample.size != size:
                sample = await _take(db, space, generation, size, sample)
            self._cache.keep(key, sample)
        return sample


async def size_of(db: Database, space: int) -> Size:
    ((memories, changes),) = await rows_of(db, Q["size"], space=space)
    return Size(memories, changes)


async def _take(db: Database, space: int, generation: GenerationRow, size: Size, before: Sample | None) -> Sample:
    """The current sample. Vectors that `before` has are not read again."""
    table, dimensions = generation.table, generation.generation.dimensions
    await db.execute(IN_ORDER)
    found = await rows_of(db, Q["sample"].format(table=table), space=space, limit=SAMPLE)
    await db.execute(IN_ANY_ORDER)
    members = [_Member(*one) for one in found]
    known = dict(zip(before.members, before.vectors, strict=True)) if before else {}
    if missing := {one.row: one for one in members if one not in known}:
        sql = Q["vectors_by_row"].format(table=table)
        rows, vectors = await read_vectors(db, sql, dimensions, space=space, rows=[*missing])
        known |= zip((missing[row] for row in rows), vectors, strict=True)
    return Sample(size, members, np.array([known[one] for one in members], np.float32))
