"""The tables of vectors, one per embedding model (generation): the current one answers, the next one is being filled,
old ones are kept for a while.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from recollect.errors import EmbeddingMismatch, InvalidRequest
from recollect.stores.contents import not_next
from recollect.stores.named_sql import load
from recollect.stores.postgres import migrations
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.rows import rows_of
from recollect.types import Generation

Q = load(__name__, "generations.sql")

State: TypeAlias = Literal["current", "next", "old"]

MOST_DIMENSIONS: Final = {"vector": 2_000, "halfvec": 4_000}
"""Dimensions that pgvector can index."""
_PAGE: Final = 8_192 - 24
"""Bytes of a page without its header."""
_POINTER: Final = 4
"""Bytes of a row's pointer in its page."""
_ROW: Final = 24 + 16 + 8
"""Bytes of a row without its numbers: its header, space and row, and the vector's header."""
_ALIGNED: Final = 8
"""Rows are aligned to this many bytes."""


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """A generation as the database keeps it: `storage` is the type of its vectors, `vector` or `halfvec`."""

    number: int
    generation: Generation
    storage: str
    state: State
    since: datetime | None

    @property
    def table(self) -> str:
        return f"vectors_{self.number}"

    @property
    def index(self) -> str:
        return f"{self.table}_hnsw"

    @property
    def vector_bytes(self) -> int:
        return self.generation.dimensions * (2 if self.storage == "halfvec" else 4)

    @property
    def rows_per_page(self) -> int:
        """How many vectors fit in a page of the table."""
        return _PAGE // (_POINTER + _ALIGNED * -(-(_ROW + self.vector_bytes) // _ALIGNED))


async def all_of(db: Database) -> list[GenerationRow]:
    return [
        GenerationRow(number, Generation(model, dimensions), storage, state, since)
        for number, model, dimensions, storage, state, since in await rows_of(db, Q["all"])
    ]


async def generation(db: Database) -> GenerationRow | None:
    """The current generation."""
    return next((row for row in await all_of(db) if row.state == "current"), None)


async def held(db: Database) -> GenerationRow | None:
    """The current generation, locked until the end of the transaction."""
    await db.execute(Q["lock_shared"])
    return await generation(db)


async def searchable(db: Database, wanted: Generation | None) -> GenerationRow | None:
    """A generation that can be searched, by default the current one; None if there is none. Raises EmbeddingMismatch
    if the wanted one is gone.
    """
    known = {row.generation: row for row in await all_of(db)}
    answering = next((row for row in known.values() if row.state == "current"), None)
    if wanted is None or answering is None:
        return answering
    if wanted not in known:
        raise EmbeddingMismatch.between(answering.generation, wanted.model, wanted.dimensions)
    return known[wanted]


async def next_one(db: Database, wanted: Generation) -> GenerationRow:
    """The next generation. Raises InvalidRequest if that is another."""
    for row in await all_of(db):
        if row.state == "next" and row.generation == wanted:
            return row
    raise not_next(wanted)


async def set_generation(db: Database, wanted: Generation, storage: str) -> None:
    """Record the model of this store's first vectors, and create their table."""
    await db.execute(Q["lock"])
    known = await generation(db)
    if known is None:
        await begin(db, wanted, storage, "current")
    elif known.generation != wanted:
        raise EmbeddingMismatch.between(known.generation, wanted.model, wanted.dimensions)


def _fitting(wanted: Generation, storage: str) -> str:
    if wanted.dimensions > MOST_DIMENSIONS["halfvec"]:
        raise InvalidRequest(
            f"{wanted.model} makes vectors of {wanted.dimensions} dimensions, and pgvector can index at most "
            f"{MOST_DIMENSIONS['halfvec']}: use another model, or set [openai] dimensions"
        )
    return storage if wanted.dimensions <= MOST_DIMENSIONS[storage] else "halfvec"


async def begin(db: Database, wanted: Generation, storage: str, state: State) -> None:
    """Add a generation with an empty table. Vectors too long for an index in the wanted storage get half precision."""
    storage = _fitting(wanted, storage)
    values = {"model": wanted.model, "dimensions": wanted.dimensions, "storage": storage, "state": state}
    ((number,),) = await rows_of(db, Q["add"], **values)
    begun = GenerationRow(number, wanted, storage, state, None)
    sql = Q["create_table"].format(table=begun.table, storage=storage, dimensions=wanted.dimensions)
    await db.execute(sql)
    await _watch(db, begun.table)
    await migrations.secure(db, begun.table)


async def _watch(db: Database, table: str) -> None:
    """Add the outbox triggers to a new table of vectors; they stay disabled while no external index is fed."""
    await db.execute(Q["watch_vectors"].format(table=table))
    if not await rows_of(db, Q["is_fed"]):
        await db.execute(Q["rest"].format(table=table))
