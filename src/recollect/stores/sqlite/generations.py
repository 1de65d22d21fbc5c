"""Embedding models (generations): the current one answers, the next one is being filled, old ones are kept a while."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import apsw

from recollect.errors import EmbeddingMismatch
from recollect.ports import GenerationState
from recollect.stores import contents
from recollect.stores.contents import Space
from recollect.stores.named_sql import load
from recollect.stores.nearest import text_digest
from recollect.stores.sqlite import records, vectors
from recollect.stores.sqlite.connections import Connections
from recollect.stores.sqlite.rows import (
    current,
    fetch,
    generation_state,
    micros,
    number_of,
    optional_moment,
    row_numbers,
    tick,
)
from recollect.types import SIMILAR, Generation, Memory

if TYPE_CHECKING:
    from recollect.types import Vector

Q = load(__name__, "generations.sql")
_DROPPED_AT_ONCE: Final = 5_000
"""Vectors deleted in one transaction: others write between two."""
_BUILD_TRIES: Final = 3
"""One index is built at a time: another space's, or another process's, may come first."""


def model_of(db: apsw.Connection) -> Generation | None:
    known = current(db)
    return known[1] if known else None


def set_first(db: apsw.Connection, wanted: Generation) -> None:
    """Record the model of the first vectors."""
    known = current(db)
    if known is None:
        db.execute(Q["add"], (wanted.model, wanted.dimensions, "current", micros(datetime.now(UTC))))
    elif known[1] != wanted:
        raise EmbeddingMismatch.between(known[1], wanted.model, wanted.dimensions)


def current_for(db: apsw.Connection, given: Sequence[Vector]) -> int:
    """The number of the generation that these vectors are stored in."""
    known = current(db)
    if known is None:
        raise contents.unknown_generation()
    contents.check_dimensions(given, known[1])
    return known[0]


def _next(db: apsw.Connection, wanted: Generation) -> int:
    number, state = generation_state(db, wanted)
    if state != "next":
        raise contents.not_next(wanted)
    return number


def _all(db: apsw.Connection) -> list[GenerationState]:
    return [
        GenerationState(Generation(model, dimensions), state, optional_moment(since), count)
        for _, model, dimensions, state, since, count in db.execute(Q["all"])
    ]


def _begin(db: apsw.Connection, wanted: Generation) -> None:
    if contents.check_may_begin(wanted, _all(db)):
        return
    now = micros(datetime.now(UTC))
    number, state = generation_state(db, wanted)
    if not number:
        db.execute(Q["add"], (wanted.model, wanted.dimensions, "next", now))
    elif state == "gone":
        db.execute(Q["renew"], (number, now))
    else:
        db.execute(Q["set_state"], (number, "next", now))


def _unembedded(db: apsw.Connection, name: str, wanted: Generation, after: str, limit: int) -> list[Memory]:
    space = Space(number_of(db, name), name)
    found = db.execute(Q["unembedded"], (space.number, after, _next(db, wanted), limit))
    return list(fetch(db, space, [id for (id,) in found]).values())


def _put(db: apsw.Connection, name: str, wanted: Generation, embedded: Sequence[tuple[Memory, Vector]]) -> None:
    number, space = _next(db, wanted), Space(number_of(db, name), name)
    contents.check_dimensions((vector for _, vector in embedded), wanted)
    stored = fetch(db, space, [memory.id for memory, _ in embedded])
    made = contents.fitting(embedded, {id: contents.passage(memory) for id, memory in stored.items()})
    rows = row_numbers(db, space.number, made)
    pairs = [vectors.VectorRow(row, text_digest(*contents.passage(stored[id])), made[id]) for id, row in rows.items()]
    vectors.put(db, space.number, number, tick(db), pairs)


def _publish(db: apsw.Connection, wanted: Generation, without: Mapping[str, Sequence[str]]) -> bool:
    number, known = _next(db, wanted), current(db)
    if known is None:
        raise contents.unknown_generation()
    skipped = {row for space, ids in without.items() for id in ids for (row,) in db.execute(Q["row_of"], (space, id))}
    lacking = {row for _, row in db.execute(Q["rows_without"], (known[0], number, len(skipped) + 1))}
    if not lacking <= skipped:
        return False
    db.executemany(Q["wait_again"], ((row,) for row in lacking))
    now = micros(datetime.now(UTC))
    db.execute(Q["set_state"], (known[0], "old", now))
    db.execute(Q["set_state"], (number, "current", now))
    db.execute(Q["note_old_links"])
    tick(db)
    return True


def _relink(db: apsw.Connection) -> bool:
    space = db.execute(Q["old_links"]).get
    if space is None:
        return False
    db.execute(Q["wait_for_links"], (space,))
    db.execute(Q["drop_links"], (space, SIMILAR))
    db.execute(Q["note_links_dropped"], (space,))
    return True


def _drop_some(db: apsw.Connection, wanted: Generation) -> bool:
    """Delete some of its vectors; whether none are left."""
    number, state = generation_state(db, wanted)
    contents.check_may_drop(wanted, state)
    if state == "gone":
        return True
    db.execute(Q["drop_some"], (number, _DROPPED_AT_ONCE))
    if db.changes() == _DROPPED_AT_ONCE:
        return False
    db.execute(Q["set_state"], (number, "gone", micros(datetime.now(UTC))))
    tick(db)
    return True


class SqliteGenerations:
    """`recollect.ports.Generations` in the store's file."""

    def __init__(self, connections: Connections, search: vectors.VectorSearch) -> None:
        self._connections = connections
        self._search = search

    async def all(self) -> Sequence[GenerationState]:
        return await self._connections.read(_all)

    async def begin(self, generation: Generation) -> None:
        await self._connections.write(lambda db: _begin(db, generation))

    async def unembedded(self, space: str, generation: Generation, *, after: str, limit: int) -> Sequence[Memory]:
        return await self._connections.read(lambda db: _unembedded(db, space, generation, after, limit))

    async def put(self, space: str, generation: Generation, embedded: Sequence[tuple[Memory, Vector]]) -> None:
        await self._connections.write(lambda db: _put(db, space, generation, embedded))

    async def publish(self, generation: Generation, *, without: Mapping[str, Sequence[str]]) -> bool:
        await self._build_indexes(generation)
        return await self._connections.write(lambda db: _publish(db, generation, without))

    async def _build_indexes(self, generation: Generation) -> None:
        """Write the index files of the next generation, so that the first recalls after the switch find them. Without
        them, searches are exact but slower: a build that fails holds nothing up.
        """
        for name in await self._connections.read(records.spaces):
            for _ in range(_BUILD_TRIES):
                if not await self._connections.read(partial(self._awaits_index, name, generation)):
                    break
                await asyncio.to_thread(self._search.settle)

    def _awaits_index(self, name: str, generation: Generation, db: apsw.Connection) -> bool:
        return self._search.awaits_index(db, number_of(db, name), _next(db, generation), generation.dimensions)

    async def relink(self) -> bool:
        return await self._connections.write(_relink)

    async def drop(self, generation: Generation) -> None:
        while not await self._connections.write(lambda db: _drop_some(db, generation)):
            pass
