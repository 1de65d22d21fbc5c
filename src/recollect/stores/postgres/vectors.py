"""Vectors as rows of the database, one table for each generation, and the search among them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from recollect.ports import VectorHits
from recollect.stores.named_sql import load
from recollect.stores.nearest import LOOKED_AT, NO_NEIGHBOURS, Candidates, Neighbours, neighbours_of_each, others
from recollect.stores.postgres import graph
from recollect.stores.postgres.bulk import Aside, Database, Table, write_rows
from recollect.stores.postgres.filters import is_unfiltered, rows_query, where_clause
from recollect.stores.postgres.generations import GenerationRow, all_of, generation, held, searchable, set_generation
from recollect.stores.postgres.rows import rows_of
from recollect.stores.postgres.vector_bytes import copied, read_vectors
from recollect.stores.postgres.vector_index import Indexing, Limits, look
from recollect.stores.postgres.vector_plan import FEWEST, Walk, choose, is_clear, settings
from recollect.stores.postgres.vector_samples import Sample, Samples, size_of
from recollect.types import Background, Filter, Scored

if TYPE_CHECKING:
    from recollect.stores.nearest import Rows, Scores
    from recollect.types import Vector, Vectors

__all__ = [
    "GenerationRow",
    "VectorSearch",
    "add",
    "generation",
    "held",
    "put",
    "remarks",
    "remove",
    "searchable",
    "set_generation",
]

Q = load(__name__, "vectors.sql")

LINKED_EXACTLY: Final = 20_000
"""Up to so many vectors of a space the nearest to a batch of them are found quicker by multiplying than by an index."""
LINK_EFFORT: Final = 100
"""Of a walk that is to find the nearest three."""
WALKED_TO: Final = 32
"""Vectors that such a walk looks at."""
COMPARED_AT_ONCE: Final = 4_096
LOOKED_UP: Final = 100
"""Memories that are looked up at once, at least."""


async def put(db: Database, space: int, generation: GenerationRow, pairs: Sequence[tuple[int, Vector]]) -> None:
    """Store the vectors of these rows; earlier ones are replaced."""
    await _delete(db, space, generation, [row for row, _ in pairs])
    await add(db, space, generation, pairs)


async def add(db: Database, space: int, generation: GenerationRow, pairs: Sequence[tuple[int, Vector]]) -> None:
    """Store the vectors of rows that have none."""
    columns = {"space": "int4", "row": "int8", "vector": generation.storage}
    table = Table(generation.table, columns, lambda rows: copied(rows, generation.storage))
    await write_rows(db, table, [(space, row, np.asarray(vector)) for row, vector in pairs])
    await db.execute(Q["note_changes"], {"space": space, "changes": len(pairs)})


async def remove(db: Database, space: int, rows: Sequence[int]) -> None:
    """Delete the vectors of these rows, of every generation."""
    deleted = [await _delete(db, space, each, rows) for each in await all_of(db)]
    if any(deleted):
        await db.execute(Q["note_changes"], {"space": space, "changes": sum(deleted)})


async def _delete(db: Database, space: int, generation: GenerationRow, rows: Sequence[int]) -> int:
    """How many there were."""
    sql = Q["delete_vectors"].format(table=generation.table)
    return (await db.execute(sql, {"space": space, "rows": list(rows)})).rowcount


async def remarks(db: Database) -> list[str]:
    """How the vectors are searched."""
    known = await generation(db)
    if known is None:
        return []
    state = await look(db, known)
    if state.ready:
        return ["vectors are found by an index"]
    if state.name:
        return ["the index of the vectors is being built; until then searches compare them one by one"]
    return ["vectors are compared one by one; an index is built once a space has too many for that"]


_Found = tuple[str, float, bool]
"""The id of a memory, the cosine of its vector with what is looked for, and whether it is in a thread."""


class _Question(NamedTuple):
    space: int
    generation: GenerationRow
    vector: Vector
    where: Filter
    limit: int

    def sql(self, name: str, **pieces: str) -> str:
        """A statement with the names of this generation and pieces of a filter put in."""
        return Q[name].format(table=self.generation.table, storage=self.generation.storage, **pieces)

    @property
    def values(self) -> dict[str, object]:
        return {"space": self.space, "vector": self.vector}


class VectorSearch:
    """Finds the nearest vectors of a space: walks the index where that is faster, else compares all that pass the
    filter, also if the index is missing or finds too few.
    """

    def __init__(self, aside: Aside, limits: Limits | None = None) -> None:
        """`aside` gives connections outside the pool, on which indexes are built."""
        self._samples = Samples()
        self._indexing = Indexing(aside, limits or Limits())

    async def search(
        self,
        db: Database,
        space: int,
        generation: GenerationRow,
        vector: Vector,
        where: Filter,
        limit: int,
        ef_search: int | None = None,
    ) -> VectorHits:
        """The nearest memories that pass the filter, by cosine, best first, ties by id. `ef_search` is the effort of
        a walk, if there is one.
        """
        where = where if where.now else replace(where, now=datetime.now(UTC))
        question = _Question(space, generation, np.asarray(vector, np.float32), where, limit)
        sample = await self._samples.of(db, space, generation)
        if not sample.members:
            return VectorHits([])
        walk = await self._choose(db, question, sample, ef_search)
        found = await _walked(db, question, walk) if walk else []
        if len(found) < limit:
            found = await _compared(db, question)
        hits = [Scored(id, score) for id, score, _ in found]
        threaded = frozenset(id for id, _, in_thread in found if in_thread)
        return VectorHits(hits, sample.background(question.vector), threaded)

    async def _choose(self, db: Database, question: _Question, sample: Sample, ef_search: int | None) -> Walk | None:
        memories = sample.size.memories
        if memories <= FEWEST:
            return None
        index = await self._indexing.state(db, question.generation, memories)
        if not index.ready:
            return None
        narrow = not is_unfiltered(question.where)
        passing = await sample.passing(db, question.space, question.where) if narrow else memories
        return choose(passing, index.rows, question.limit, ef_search)

    async def background(
        self, db: Database, space: int, generation: GenerationRow, vector: Vector
    ) -> Background | None:
        """How a vector compares with those of the space at large; None while it has none."""
        return (await self._samples.of(db, space, generation)).background(np.asarray(vector, np.float32))

    async def nearest_to(
        self, db: Database, space: int, generation: GenerationRow, ids: Sequence[str], limit: int
    ) -> dict[str, list[Scored]]:
        """For each of these memories the others that are nearest to it, superseded and expired ones included, and those
        to which it is nearer than their own nearest.
        """
        total = (await size_of(db, space)).memories
        index = await self._indexing.state(db, generation, total)
        if total > LINKED_EXACTLY and index.ready:
            return await _walked_from_each(db, space, generation, ids, limit)
        own = await self.fetch(db, space, generation, ids)
        return await _compared_with_each(db, space, generation, own, limit) if own else {}

    async def fetch(self, db: Database, space: int, generation: GenerationRow, ids: Sequence[str]) -> dict[str, Vector]:
        sql = Q["vectors_by_id"].format(table=generation.table)
        known, vectors = await read_vectors(db, sql, generation.generation.dimensions, space=space, ids=list(ids))
        return dict(zip(known, vectors, strict=True))

    async def awaits_index(self, db: Database, space: int, generation: GenerationRow) -> bool:
        """Whether an index is being built that searches of this space will use; `settle` waits for it."""
        total = (await size_of(db, space)).memories
        return await self._indexing.is_coming(db, generation, total)

    async def settle(self) -> None:
        await self._indexing.settle()

    def loading(self, expected: int) -> AbstractAsyncContextManager[None]:
        return self._indexing.loading(expected)

    async def close(self) -> None:
        await self._indexing.close()


async def _compared(db: Database, question: _Question) -> list[_Found]:
    """The nearest of all that pass, exactly."""
    rows, values = rows_query(question.space, question.where)
    await db.execute(settings(None))
    return await rows_of(db, question.sql("compare", rows=rows), **question.values, limit=question.limit, **values)


async def _walked(db: Database, question: _Question, walk: Walk) -> list[_Found]:
    """About the same by the index, or fewer."""
    condition, values = where_clause(question.space, question.where)
    among = "" if is_unfiltered(question.where) else Q["among"].format(where=condition)
    await db.execute(settings(walk))
    await db.execute(question.sql("walk", among=among), {**question.values, **values})
    nearest: list[tuple[float, int]] = []
    for _ in range(walk.parts):
        part = await rows_of(db, Q["next_part"].format(part=walk.part))
        nearest = sorted([*nearest, *part], reverse=True)
        if len(part) < walk.part or is_clear([cosine for cosine, _ in nearest]):
            break
    return await _looked_up(db, question, nearest)


async def _looked_up(db: Database, question: _Question, nearest: Sequence[tuple[float, int]]) -> list[_Found]:
    """The best of these cosines and rows, in order, that pass; those that tie with the last one are looked up with it,
    for ids decide.
    """
    condition, values = where_clause(question.space, question.where)
    sql = question.sql("walked", where=condition)
    found: list[_Found] = []
    while nearest and len(found) < question.limit:
        least, _ = nearest[: max(question.limit, LOOKED_UP)][-1]
        best = {row: cosine for cosine, row in nearest if cosine >= least}
        nearest = nearest[len(best) :]
        passing = await rows_of(db, sql, space=question.space, rows=list(best), **values)
        found += [(id, best[row], threaded) for row, id, threaded in passing]
    return sorted(found, key=lambda one: (-one[1], one[0]))[: question.limit]


async def _walked_from_each(
    db: Database, space: int, generation: GenerationRow, ids: Sequence[str], limit: int
) -> dict[str, list[Scored]]:
    await db.execute(settings(Walk(LINK_EFFORT, WALKED_TO)))
    sql = Q["walk_from_each"].format(table=generation.table)
    found: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    names: dict[int, str] = {}
    for id, row, name, score in await rows_of(db, sql, space=space, ids=list(ids), limit=WALKED_TO):
        found[id].append((row, score))
        names[row] = name
    near = {id: Candidates(*map(np.array, zip(*pairs, strict=True))) for id, pairs in found.items()}
    seen = np.array(sorted(names), np.int64)
    least = await graph.reach(db, space, seen, limit)
    return {id: others(id, _reaching(candidates, seen, least), names, limit) for id, candidates in near.items()}


def _reaching(near: Candidates, rows: Rows, least: Scores) -> Neighbours:
    takes = near.scores >= least[np.searchsorted(rows, near.rows)]
    return Neighbours(near, Candidates(near.rows[takes], near.scores[takes]))


async def _compared_with_each(
    db: Database, space: int, generation: GenerationRow, own: dict[str, Vector], limit: int
) -> dict[str, list[Scored]]:
    """The vectors come to this process part by part, to be multiplied with many at once, which takes a tenth of the
    time that Postgres would take to compare them one by one.
    """
    wanted, count = np.stack(list(own.values())), limit + LOOKED_AT
    found = [NO_NEIGHBOURS] * len(own)
    async for rows, vectors in _parts(db, space, generation):
        least = await graph.reach(db, space, rows, limit)
        some = await asyncio.to_thread(neighbours_of_each, rows, vectors, wanted, count, least)
        found = [one.joined(other, count) for one, other in zip(found, some, strict=True)]
    seen = np.unique(np.concatenate([part.rows for neighbours in found for part in neighbours])).tolist()
    names = dict(await rows_of(db, Q["ids_by_row"], space=space, rows=seen))
    return {id: others(id, neighbours, names, limit) for id, neighbours in zip(own, found, strict=True)}


async def _parts(db: Database, space: int, generation: GenerationRow) -> AsyncIterator[tuple[Rows, Vectors]]:
    """All vectors of a space, some at a time."""
    sql, dimensions = Q["part"].format(table=generation.table), generation.generation.dimensions
    after = 0
    while True:
        rows, vectors = await read_vectors(db, sql, dimensions, space=space, after=after, limit=COMPARED_AT_ONCE)
        if not rows:
            return
        yield np.array(rows, np.int64), vectors
        after = rows[-1]
