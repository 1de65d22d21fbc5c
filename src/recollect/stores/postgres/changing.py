"""From one generation to the next, in Postgres: `recollect.ports.Generations`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

from recollect.ports import GenerationState
from recollect.stores.contents import Space, check_dimensions, check_may_begin, check_may_drop, fitting
from recollect.stores.postgres import generations, vectors
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.generations import GenerationRow, Q
from recollect.stores.postgres.graph import Q as GRAPH
from recollect.stores.postgres.numbers import Numbers
from recollect.stores.postgres.rows import Q as ROWS
from recollect.stores.postgres.rows import fetch, firsts, rows_of
from recollect.types import SIMILAR, Generation, Memory

if TYPE_CHECKING:
    from recollect.types import Vector

REMEMBERED_SECONDS: Final = 1.0
"""How long a process caches a generation. The table of a dropped one stays twice as long."""


class PostgresGenerations:
    """See `recollect.ports.Generations`. `storage` is the type of new vectors."""

    def __init__(self, numbers: Numbers, search: vectors.VectorSearch, storage: str) -> None:
        self._numbers = numbers
        self._search = search
        self._storage = storage
        self._remembered: dict[Generation, tuple[float, GenerationRow]] = {}

    async def searchable(self, db: Database, wanted: Generation | None) -> GenerationRow | None:
        """A generation that can be searched, cached for a moment; by default the current one."""
        now = monotonic()
        if wanted is not None:
            seen, row = self._remembered.get(wanted, (0.0, None))
            if row is not None and now < seen + REMEMBERED_SECONDS:
                return row
        found = await generations.searchable(db, wanted)
        if found is not None:
            self._remembered[found.generation] = (now, found)
        return found

    async def all(self) -> Sequence[GenerationState]:
        return await self._numbers.connections().read(_states)

    async def begin(self, generation: Generation) -> None:
        async def work(db: Database) -> None:
            await db.execute(Q["lock"])
            known = {row.generation: row for row in await generations.all_of(db)}
            if check_may_begin(generation, [_state(row, 0) for row in known.values()]):
                return
            if generation in known:
                await db.execute(Q["set_state"], {"number": known[generation].number, "state": "next"})
            else:
                await generations.begin(db, generation, self._storage, "next")

        await self._numbers.connections().write(work)

    async def unembedded(self, space: str, generation: Generation, *, after: str, limit: int) -> Sequence[Memory]:
        number = await self._numbers.of(space)

        async def work(db: Database) -> list[Memory]:
            table = (await generations.next_one(db, generation)).table
            ids = await firsts(db, Q["unembedded"].format(table=table), space=number, after=after, limit=limit)
            return [*(await fetch(db, Space(number, space), ids)).values()] if ids else []

        return await self._numbers.connections().read(work, space=number)

    async def put(self, space: str, generation: Generation, embedded: Sequence[tuple[Memory, Vector]]) -> None:
        number = await self._numbers.of(space)
        check_dimensions((vector for _, vector in embedded), generation)

        async def work(db: Database) -> None:
            await db.execute(Q["lock_filling"])
            row = await generations.next_one(db, generation)
            found = await rows_of(db, ROWS["embedding"], space=number, ids=[memory.id for memory, _ in embedded])
            made = fitting(embedded, {id: (title, text) for id, _, title, text in found})
            pairs = [(at, made[id]) for id, at, _, _ in found if id in made]
            if pairs:
                await vectors.put(db, number, row, pairs)

        await self._numbers.connections().write(work, space=number)

    async def publish(self, generation: Generation, *, without: Mapping[str, Sequence[str]]) -> bool:
        await self._build_index(generation)
        return await self._numbers.connections().write(lambda db: _publish(db, generation, without))

    async def _build_index(self, generation: Generation) -> None:
        """Build the index of the next generation, if searches need one."""
        connections = self._numbers.connections()
        row = await connections.read(lambda db: generations.next_one(db, generation))
        for _, number in await connections.read(lambda db: rows_of(db, Q["spaces"])):
            await connections.read(partial(self._search.awaits_index, space=number, generation=row), space=number)
        await self._search.settle()

    async def relink(self) -> bool:
        return await self._numbers.connections().write(_relink)

    async def drop(self, generation: Generation) -> None:
        async def leave(db: Database) -> GenerationRow | None:
            await db.execute(Q["lock"])
            row = next((row for row in await generations.all_of(db) if row.generation == generation), None)
            if row is not None:
                check_may_drop(generation, row.state)
                await db.execute(Q["set_state"], {"number": row.number, "state": "gone"})
            return row

        connections = self._numbers.connections()
        if row := await connections.write(leave):
            await asyncio.sleep(2 * REMEMBERED_SECONDS)  # others may be searching it
            await connections.write(lambda db: db.execute(Q["drop_table"].format(table=row.table)))


def _state(row: GenerationRow, count: int) -> GenerationState:
    return GenerationState(row.generation, row.state, row.since, count)


async def _states(db: Database) -> list[GenerationState]:
    found = []
    for row in await generations.all_of(db):
        count = 0
        for _, space in await rows_of(db, Q["spaces"]):
            await db.execute(Q["enter_space"], {"space": space})
            count += (await firsts(db, Q["count"].format(table=row.table), space=space))[0]
        found.append(_state(row, count))
    return found


async def _publish(db: Database, wanted: Generation, without: Mapping[str, Sequence[str]]) -> bool:
    await db.execute(Q["lock"])
    row, answering = await generations.next_one(db, wanted), await generations.generation(db)
    if answering is None:
        return False
    sql = Q["lacking"].format(current=answering.table, table=row.table)
    waiting: dict[int, list[int]] = {}
    for name, space in await rows_of(db, Q["spaces"]):
        skipped = set(without.get(name, ()))
        await db.execute(Q["enter_space"], {"space": space})
        lacking = await rows_of(db, sql, space=space, limit=len(skipped) + 1)
        if not {id for id, _ in lacking} <= skipped:
            return False
        waiting[space] = [number for _, number in lacking]
    for space, rows in waiting.items():
        await db.execute(Q["enter_space"], {"space": space})
        await db.execute(Q["wait_again"], {"space": space, "rows": rows})
    await db.execute(Q["set_state"], {"number": answering.number, "state": "old"})
    await db.execute(Q["set_state"], {"number": row.number, "state": "current"})
    await db.execute(Q["note_old_links"])
    return True


async def _relink(db: Database) -> bool:
    for space in await firsts(db, Q["old_links"]):
        await db.execute(Q["enter_space"], {"space": space})
        await db.execute(GRAPH["lock_links"], {"space": space})
        await db.execute(Q["wait_for_links"], {"space": space})
        await db.execute(Q["drop_links"], {"space": space, "relation": SIMILAR})
        await db.execute(Q["note_links_dropped"], {"space": space})
        return True
    return False
