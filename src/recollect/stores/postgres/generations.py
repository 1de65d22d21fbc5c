"""Which models made the vectors, and where those of each model are: one generation answers, a next one is filled beside
it, old ones are kept for a while.
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
"""What pgvector can index."""
_PAGE: Final = 8_192 - 24
"""Bytes of a page without its header."""
_POINTER: Final = 4
"""Bytes by which a page finds a row."""
_ROW: Final = 24 + 16 + 8
"""Bytes of a row without its numbers: its header, space and row, and the vector's header."""
_ALIGNED: Final = 8
"""Rows begin at a multiple of so many bytes."""


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
    """Every generation that has vectors or gets them."""
    return [
        GenerationRow(number, Generation(model, dimensions), storage, state, since)
        for number, model, dimensions, storage, state, since in await rows_of(db, Q["all"])
    ]


async def generation(db: Database) -> GenerationRow | None:
    """The one that answers."""
    return next((row for row in await all_of(db) if row.state == "current"), None)


async def held(db: Database) -> GenerationRow | None:
    """The one that answers, until the end of a transaction that writes vectors."""
    await db.execute(Q["lock_shared"])
    return await generation(db)


async def searchable(db: Database, wanted: Generation | None) -> GenerationRow | None:
    """A generation that can be searched, by default the one that answers; None while there is none. Raises
    EmbeddingMismatch for one that cannot.
    """
    known = {row.generation: row for row in await all_of(db)}
    answering = next((row for row in known.values() if row.state == "current"), None)
    if wanted is None or answering is None:
        return answering
    if wanted not in known:
        raise EmbeddingMismatch.between(answering.generation, wanted.model, wanted.dimensions)
    return known[wanted]


async def next_one(db: Database, wanted: Generation) -> GenerationRow:
    """The next generation, which is this one. Raises InvalidRequest."""
    for row in await all_of(db):
        if row.state == "next" and row.generation == wanted:
            return row
    raise not_next(wanted)


async def set_generation(db: Database, wanted: Generation, storage: str) -> None:
    """Record the model of this store's first vectors, and make their table."""
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
            f"{MOST_DIMENSIONS['halfvec']}: use another model, or let it make shorter ones ([openai] dimensions)"
        )
    return storage if wanted.dimensions <= MOST_DIMENSIONS[storage] else "halfvec"


async def begin(db: Database, wanted: Generation, storage: str, state: State) -> None:
    """A generation with an empty table. What is too long to be indexed in the wanted storage is stored in half
    precision.
    """
    storage = _fitting(wanted, storage)
    values = {"model": wanted.model, "dimensions": wanted.dimensions, "storage": storage, "state": state}
    ((number,),) = await rows_of(db, Q["add"], **values)
    begun = GenerationRow(number, wanted, storage, state, None)
    sql = Q["create_table"].format(table=begun.table, storage=storage, dimensions=wanted.dimensions)
    await db.execute(sql)
    await _watch(db, begun.table)
    await migrations.secure(db, begun.table)


async def _watch(db: Database, table: str) -> None:
    """Note the changes of a new table of vectors in the outbox, if there is an index to be told."""
    await db.execute(Q["watch_vectors"].format(table=table))
    if not await rows_of(db, Q["is_fed"]):
        await db.execute(Q["rest"].format(table=table))
