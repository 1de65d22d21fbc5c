"""The HNSW index of each generation: when it is built, and how.

A table begins without an index, which would make each insert ten times slower. The index is built concurrently once a
space is so large that searches would use it; until then searches compare all vectors, which is exact but slower. A
large load drops the index and rebuilds it afterwards. If a process dies in between, the next search rebuilds it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from psycopg import errors

from recollect.errors import RecollectError
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Aside, Database
from recollect.stores.postgres.generations import GenerationRow, generation
from recollect.stores.postgres.rows import rows_of
from recollect.stores.postgres.vector_plan import wants_index

Q = load(__name__, "vectors.sql")
_log = logging.getLogger(__name__)

_NODE: Final = 800
"""Bytes per vector during a build, besides its numbers."""
_MOST_MEMORY: Final = 1 << 30
"""Bytes that a build may use, unless the server's setting is larger. A graph that needs more is finished on disk, which
takes several times as long."""
_NO_ROOM: Final = (errors.DiskFull, errors.OutOfMemory)
"""Raised when shared memory is short, which only parallel workers need."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When indexes are built and dropped."""

    index_rows: int = 20_000
    """Vectors of a space from which an index is built: fewer are compared in 40 ms."""
    load_rows: int = 20_000
    """Size of a load that drops the index, if it is also a quarter of the index."""
    state_seconds: float = 5.0
    """How long the state of an index is cached."""
    calm_seconds: float = 0.3
    """How long a table is watched before a build, which waits while it grows by over 1% a second."""
    rest_seconds: float = 60.0
    """Pause after a failed build."""


class IndexState(NamedTuple):
    """About how many vectors the table has over all spaces, whether its index can be used, and the name of the index if
    there is one.
    """

    rows: int
    ready: bool
    name: str | None = None


async def look(db: Database, generation: GenerationRow) -> IndexState:
    ((pages, valid, name),) = await rows_of(db, Q["index_state"], table=generation.table, index=generation.index)
    return IndexState(pages * generation.rows_per_page, bool(valid), name)


class Indexing:
    """Builds indexes in the background, one at a time."""

    def __init__(self, aside: Aside, limits: Limits) -> None:
        self._aside = aside
        self._limits = limits
        self._states: dict[int, tuple[float, IndexState]] = {}
        self._building: asyncio.Task[None] | None = None
        self._connection: Database | None = None
        self._rested_at = 0.0
        self._refused = False
        self._loads = 0

    async def state(self, db: Database, generation: GenerationRow, vectors: int) -> IndexState:
        """The state of the index, cached for a moment; starts a build if a space with this many vectors needs one. A
        stale state makes a search slow, not wrong.
        """
        seen, state = self._states.get(generation.number, (0.0, None))
        if state is None or time.monotonic() > seen + self._limits.state_seconds:
            state = await look(db, generation)
            self._states[generation.number] = (time.monotonic(), state)
        self._want(generation, vectors, state)
        return state

    async def is_coming(self, db: Database, generation: GenerationRow, vectors: int) -> bool:
        """Whether an index is being built that a space with this many vectors will use."""
        return self._want(generation, vectors, await look(db, generation))

    def _want(self, generation: GenerationRow, vectors: int, state: IndexState) -> bool:
        """Start building a missing index, and say whether it is being built. It is not if no search would use it,
        during a load, after a failed build, and if this role lacks the right.
        """
        if state.ready or vectors <= self._limits.index_rows or not wants_index(vectors, state.rows):
            return False
        if self._loads or self._refused or time.monotonic() < self._rested_at:
            return False
        if self._building is None or self._building.done():
            self._building = asyncio.create_task(self._run(generation))
        return True

    async def settle(self) -> None:
        """Wait for the current build, if any."""
        if self._building:
            await asyncio.wait([self._building])

    async def close(self) -> None:
        """Stop waiting for a build. The server finishes it."""
        if self._building and not self._building.done():
            if self._connection:
                self._connection.pgconn.finish()
            self._building.cancel()
            await asyncio.wait([self._building])

    @asynccontextmanager
    async def loading(self, expected: int) -> AsyncIterator[None]:
        """Around a load of about `expected` vectors, 0 if unknown: no index is built meanwhile, a large load drops the
        existing one, and ANALYZE runs afterwards.
        """
        self._loads += 1
        ended = asyncio.Event()
        watching = asyncio.create_task(self._watch(expected, ended))
        try:
            yield
        finally:
            self._loads -= 1
            ended.set()
            await asyncio.wait([watching])

    async def _watch(self, expected: int, ended: asyncio.Event) -> None:
        large = expected >= self._limits.load_rows
        if not large and await _within(1.0, ended):
            return
        try:
            async with self._aside() as db:
                known = await generation(db)
                if known:
                    await self._follow(db, known, expected, ended)
        except RecollectError:
            _log.debug("the load keeps the index as it is", exc_info=True)

    async def _follow(self, db: Database, generation: GenerationRow, expected: int, ended: asyncio.Event) -> None:
        first = now = await look(db, generation)
        while not ended.is_set():
            loaded = max(expected, now.rows - first.rows)
            if now.name and loaded > max(self._limits.load_rows, first.rows // 4):
                await db.execute(Q["drop_index"].format(index=now.name))
                self._states.pop(generation.number, None)
            await _within(1.0, ended)
            now = await look(db, generation)
        if now.rows - first.rows > self._limits.load_rows:
            await db.execute(Q["analyze"].format(table=generation.table))

    async def _run(self, generation: GenerationRow) -> None:
        try:
            await self._build_alone(generation)
        except RecollectError as error:
            self._rested_at = time.monotonic() + self._limits.rest_seconds
            self._refused = isinstance(error.__cause__, errors.InsufficientPrivilege)
            _log.warning("the index %s could not be built: %s; searches are exact, but slower", generation.index, error)
        finally:
            self._connection = None
            self._states.pop(generation.number, None)

    async def _build_alone(self, generation: GenerationRow) -> None:
        """Build the index, or wait a moment if another process does."""
        async with self._aside() as guard, guard.transaction():
            await guard.execute(Q["never_idle"])
            ((alone,),) = await rows_of(guard, Q["lock_building"].format(index=generation.index))
            if not alone:
                await asyncio.sleep(self._limits.calm_seconds)
                return
            async with self._aside() as db:
                await self._calm(db, generation)
                if await _cleared(db, generation):
                    self._connection = db
                    await _build(db, generation)

    async def _calm(self, db: Database, generation: GenerationRow) -> None:
        """Wait until no process is loading the table."""
        before = -1
        while (now := (await look(db, generation)).rows) > before * (1 + self._limits.calm_seconds / 100):
            before = now
            await asyncio.sleep(self._limits.calm_seconds)


async def _within(seconds: float, ended: asyncio.Event) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), seconds)
    return ended.is_set()


async def _cleared(db: Database, generation: GenerationRow) -> bool:
    """Whether an index must and can be built: no process builds one. Drops an invalid one."""
    try:
        async with db.transaction():
            await db.execute(Q["lock_table"].format(table=generation.table))
    except errors.LockNotAvailable:
        return False
    state = await look(db, generation)
    if state.name and not state.ready:
        await db.execute(Q["drop_index"].format(index=state.name))
    return not state.ready


async def _build(db: Database, generation: GenerationRow) -> None:
    """Build with parallel workers, or without if shared memory is short."""
    rows = (await look(db, generation)).rows
    needed = min(rows * (generation.vector_bytes + _NODE), _MOST_MEMORY)
    create = Q["create_index"].format(index=generation.index, table=generation.table, storage=generation.storage)
    await db.execute(Q["give_memory"], {"kilobytes": needed >> 10})
    try:
        await db.execute(create)
    except _NO_ROOM:
        await _cleared(db, generation)
        await db.execute("SET max_parallel_maintenance_workers = 0")
        await db.execute(create)
