"""A few vectors of each space, kept in the process: they tell how a question compares with the space at large, and how
much of it passes a filter.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from recollect.stores.named_sql import load
from recollect.stores.nearest import background, spread
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.filters import where_clause
from recollect.stores.postgres.generations import GenerationRow
from recollect.stores.postgres.rows import rows_of
from recollect.stores.postgres.vector_bytes import read_vectors
from recollect.types import Background, Filter

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

Q = load(__name__, "vectors.sql")

MEMORY: Final = 64 << 20
"""Bytes of samples that are kept, those of the spaces asked last."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Some vectors of a space that has `total`, as of the time when it had seen so many `changes`."""

    total: int
    changes: int
    rows: list[int]
    vectors: Vectors

    def is_current(self, changes: int) -> bool:
        """Whether no more than a hundredth of the space is other than it was."""
        return 100 * (changes - self.changes) <= self.total

    def background(self, vector: Vector) -> Background:
        return background(self.vectors, vector, self.total)

    async def passing(self, db: Database, space: int, where: Filter) -> int:
        """About how many of the space's vectors belong to memories that pass the filter."""
        condition, values = where_clause(space, where)
        sql = Q["count_passing"].format(where=condition)
        counted: list[tuple[int]] = await rows_of(db, sql, sample=self.rows, **values)
        return round(self.total * counted[0][0] / len(self.rows))


class Samples:
    """The samples of the spaces that were asked last, taken anew when a space has changed."""

    def __init__(self) -> None:
        self._samples: OrderedDict[tuple[int, int], Sample] = OrderedDict()
        self._turns: WeakValueDictionary[tuple[int, int], asyncio.Lock] = WeakValueDictionary()

    async def of(self, db: Database, space: int, generation: GenerationRow) -> Sample:
        """A sample of a space's vectors. Where many ask at once, one takes it and the others wait for that."""
        key = (space, generation.number)
        ((changes,),) = await rows_of(db, Q["changes"], space=space)
        async with self._turns.setdefault(key, asyncio.Lock()):
            sample = self._samples.get(key)
            if sample is None or not sample.is_current(changes):
                sample = await _take(db, space, generation, changes)
            self._keep(key, sample)
        return sample

    def _keep(self, key: tuple[int, int], sample: Sample) -> None:
        self._samples[key] = sample
        self._samples.move_to_end(key)
        held = sum(one.vectors.nbytes for one in self._samples.values())
        while held > MEMORY and len(self._samples) > 1:
            _, dropped = self._samples.popitem(last=False)
            held -= dropped.vectors.nbytes


async def _take(db: Database, space: int, generation: GenerationRow, changes: int) -> Sample:
    table, dimensions = generation.table, generation.generation.dimensions
    ((total,),) = await rows_of(db, Q["count"].format(table=table), space=space)
    positions = spread(total).tolist() if total else []
    rows, vectors = await read_vectors(
        db, Q["sample"].format(table=table), dimensions, space=space, positions=positions
    )
    return Sample(total, changes, rows, vectors)
