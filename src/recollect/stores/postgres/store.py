"""The Postgres store: one database that a team shares, which holds the memories and can search them by word, by meaning
and by link.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from recollect.ports import Beside, Mark, Reached, Sample, VectorHits, WordHits, WordSearch
from recollect.settings import PostgresSettings, Settings
from recollect.stores.address import path_of
from recollect.stores.postgres import (
    graph,
    letters,
    records,
    text_indexes,
    vectors,
    word_scores,
    words,
    writes,
)
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.connections import Connections
from recollect.stores.postgres.ledger import PostgresLedger
from recollect.stores.postgres.numbers import NOWHERE, Numbers
from recollect.stores.postgres.owners import Owner
from recollect.stores.postgres.rows import ensure_space, fetch
from recollect.stores.postgres.vectors import VectorSearch
from recollect.types import (
    Background,
    Edge,
    Filter,
    Generation,
    Memory,
    Migration,
    Page,
    Record,
    Remembered,
    Scored,
    SpaceStats,
)

if TYPE_CHECKING:
    from recollect.stores.postgres.server import EmbeddedServer
    from recollect.types import Vector

T = TypeVar("T")

EDGES_PER_READ: Final = 1_000


class PostgresStore:
    """A store in a schema of a database. Open it before use, and close it after."""

    name = "postgres"
    in_process = False

    def __init__(self, dsn: str, settings: PostgresSettings | None = None, *, create: bool = True) -> None:
        self.settings = settings or PostgresSettings()
        self._create = create
        self._server: EmbeddedServer | None = None
        self._started = False
        self._connections = Connections(dsn, self.settings)
        self._vectors = VectorSearch(lambda: self._connections.autocommit())
        self._configurations = text_indexes.Configurations(
            lambda: self._connections.autocommit(), lambda work: self._connections.read(work)
        )
        self._owner = Owner(lambda: self._connections.autocommit())
        self._counts = word_scores.Counts()
        self._numbers = Numbers(lambda: self._connections)
        self.ledger = PostgresLedger(self._numbers, self._owner)
        self._generation: vectors.GenerationRow | None = None

    @classmethod
    def from_url(cls, url: str, settings: Settings, *, create: bool) -> PostgresStore:
        """The store of `postgresql://…`, or of `embedded-postgres:///FOLDER`."""
        if url.startswith("embedded-postgres://"):
            return cls.embedded(path_of(url, create=create), settings.postgres, create=create)
        return cls(url, settings.postgres, create=create)

    @classmethod
    def embedded(cls, folder: Path, settings: PostgresSettings | None = None, *, create: bool = True) -> PostgresStore:
        """A store on a private server in a folder, which runs while the store is open."""
        from recollect.stores.postgres.server import EmbeddedServer  # late: it is not for every system

        store = cls("", settings, create=create)
        store._server = EmbeddedServer(folder)
        return store

    @property
    def location(self) -> str:
        place = self._server.folder if self._server else self._connections.place
        return f"schema {self.settings.schema} of {place}"

    async def open(self) -> None:
        """Open the database, or start the server first. A store that is missing is made, unless that is not wanted."""
        await self._start(create=self._create)
        try:
            await self._connections.open(create=self._create)
        except BaseException:
            await self.close()
            raise

    async def migrate(self, *, dry_run: bool, row_security: bool = False, words: Sequence[str] = ()) -> Migration:
        """Bring the database to the newest version and index texts by these configurations, or say what that takes."""
        await self._start(create=not dry_run)
        try:
            steps, advice = await self._connections.migrate(dry_run=dry_run, row_security=row_security)
            lacking = [*dict.fromkeys(words)]
            if lacking and not (dry_run and steps):
                await self._connections.open(create=False)
                async with self._connections.autocommit() as db:
                    lacking = await text_indexes.add_lacking(db, lacking, dry_run=dry_run)
            indexed = (f"index all texts under the configuration {name}" for name in lacking)
            return Migration((*steps, *indexed), advice)
        finally:
            await self.close()

    async def close(self) -> None:
        await self._vectors.close()
        await self._configurations.close()
        await self._owner.close()
        await self._connections.close()
        if self._server:
            self._started = False
            await self._server.stop()

    async def _start(self, *, create: bool) -> None:
        if self._server and not self._started:
            dsn = await self._server.start(create=create)
            self._connections = Connections(dsn, self.settings, self._server.address)
            self._started = True

    @asynccontextmanager
    async def still(self) -> AsyncIterator[PostgresStore]:
        """The store as it is now, to be read: what others write meanwhile is not seen."""
        async with self._connections.frozen() as connections:
            store = PostgresStore("", self.settings)
            store._connections = connections
            yield store

    def bulk(self, expected: int = 0) -> AbstractAsyncContextManager[None]:
        return self._vectors.loading(expected)

    async def settle(self, space: str) -> None:
        async def work(db: Database, number: int) -> bool:
            generation = await vectors.generation(db)
            return generation is not None and await self._vectors.awaits_index(db, number, generation)

        while await self._read(space, work):
            await self._vectors.settle()

    async def check(self) -> None:
        await self.generation()

    async def remarks(self) -> Sequence[str]:
        async def work(db: Database) -> Sequence[str]:
            return [*await vectors.remarks(db), *await letters.remarks(db)]

        return await self._connections.read(work)

    # Records

    async def add(self, space: str, records: Sequence[Record]) -> list[Remembered]:
        if not records:
            return []
        rows = await self._numbers.for_rows(len(records))
        number = await self._numbers.of(space)
        if number != NOWHERE:
            return await self._connections.write(lambda db: writes.add(db, number, space, records, rows), space=number)

        async def begin(db: Database) -> tuple[int, list[Remembered]]:
            number = await ensure_space(db, space)
            return number, await writes.add(db, number, space, records, rows)

        number, answers = await self._connections.write(begin)
        self._numbers.remember(space, number)
        return answers

    async def copies(self, space: str, memories: Sequence[Memory]) -> list[Memory | None]:
        return await self._read(space, lambda db, number: records.copies(db, number, space, memories))

    async def get(self, space: str, ids: Sequence[str]) -> dict[str, Memory]:
        return await self._read(space, lambda db, number: fetch(db, number, space, ids))

    async def list(
        self, space: str, where: Filter, *, limit: int, after: str | None = None, newest_first: bool = False
    ) -> Page:
        page = records.newest_page if newest_first else records.page
        return await self._read(space, lambda db, number: page(db, number, space, where, limit, after))

    async def update(
        self, space: str, id: str, changes: Mapping[str, Any], *, vector: Vector | None = None, now: datetime
    ) -> Memory:
        return await self._write(
            space, lambda db, number: writes.update(db, number, space, id, changes, vector=vector, now=now)
        )

    async def forget(self, space: str, ids: Sequence[str]) -> int:
        return await self._write(space, lambda db, number: writes.forget(db, number, ids))

    async def supersede(self, space: str, old: str, new: Record | str, *, now: datetime) -> Memory:
        return await self._write(space, lambda db, number: writes.supersede(db, number, space, old, new, now))

    async def history(self, space: str, id: str, *, limit: int) -> Sequence[str]:
        return await self._read(space, lambda db, number: records.history(db, number, id, limit))

    async def beside(self, space: str, ids: Sequence[str], reach: int) -> dict[str, Beside]:
        return await self._read(space, lambda db, number: records.beside(db, number, ids, reach))

    async def visible(self, space: str, ids: Sequence[str], where: Filter) -> set[str]:
        return await self._read(space, lambda db, number: records.visible(db, number, ids, where))

    async def sample(self, space: str, namespaces: Sequence[str], *, limit: int) -> Sample:
        return await self._read(space, lambda db, number: records.sample(db, number, namespaces, limit))

    async def pending(self, space: str, *, limit: int) -> builtins.list[Memory]:
        return await self._read(space, lambda db, number: records.pending(db, number, space, limit))

    async def put_vectors(self, space: str, embedded: Sequence[tuple[Memory, Vector]]) -> None:
        await self._write(space, lambda db, number: writes.put_vectors(db, number, embedded))

    async def fail_vectors(self, space: str, ids: Sequence[str]) -> None:
        await self._write(space, lambda db, number: records.fail_vectors(db, number, ids))

    async def unlinked(self, space: str, *, limit: int) -> builtins.list[str]:
        return await self._read(space, lambda db, number: records.unlinked(db, number, limit))

    async def marks(self, space: str, ids: Sequence[str]) -> dict[str, Mark]:
        return await self._read(space, lambda db, number: records.marks(db, number, ids))

    async def mark_hits(self, space: str, hits: Mapping[str, int], *, now: datetime) -> None:
        await self._write(space, lambda db, number: records.mark_hits(db, number, hits, now))

    async def mark_used(self, space: str, ids: Sequence[str], *, now: datetime) -> int:
        return await self._write(space, lambda db, number: records.mark_used(db, number, ids, now))

    async def spaces(self) -> Sequence[str]:
        return await self._connections.read(records.spaces)

    async def stats(self, space: str) -> SpaceStats:
        return await self._read(space, lambda db, number: records.stats(db, number, space))

    async def generation(self) -> Generation | None:
        found = await self._connections.read(vectors.generation)
        return found.generation if found else None

    async def set_generation(self, generation: Generation) -> None:
        storage = "halfvec" if self.settings.halfvec else "vector"
        await self._connections.write(lambda db: vectors.set_generation(db, generation, storage))

    # Words

    async def search_words(self, space: str, search: WordSearch, where: Filter, *, limit: int) -> WordHits:
        if search.match != "any":
            await self._configurations.ensure(search.words)
        return await self._search(
            space, lambda db, number: words.search(db, number, search, where, limit, self._counts)
        )

    # Vectors

    async def search_vectors(
        self, space: str, vector: Vector, where: Filter, *, limit: int, ef_search: int | None = None
    ) -> VectorHits:
        async def work(db: Database, number: int) -> VectorHits:
            # the first model decides for good, so that a search need not ask for it each time
            self._generation = generation = self._generation or await vectors.generation(db)
            if generation is None or number == NOWHERE:
                return VectorHits([])
            return await self._vectors.search(db, number, generation, vector, where, limit, ef_search)

        return await self._search(space, work)

    async def vector_background(self, space: str, vector: Vector) -> Background | None:
        async def work(db: Database, number: int) -> Background | None:
            self._generation = generation = self._generation or await vectors.generation(db)
            if generation is None or number == NOWHERE:
                return None
            return await self._vectors.background(db, number, generation, vector)

        return await self._search(space, work)

    async def nearest_to(self, space: str, ids: Sequence[str], *, limit: int) -> dict[str, builtins.list[Scored]]:
        async def work(db: Database, number: int) -> dict[str, builtins.list[Scored]]:
            generation = await vectors.generation(db)
            return await self._vectors.nearest_to(db, number, generation, ids, limit) if generation else {}

        return await self._read(space, work)

    async def vectors(self, space: str, ids: Sequence[str]) -> dict[str, Vector]:
        async def work(db: Database, number: int) -> dict[str, Vector]:
            generation = await vectors.generation(db)
            return await self._vectors.fetch(db, number, generation, ids) if generation else {}

        return await self._read(space, work)

    # Links

    async def link(self, space: str, edges: Sequence[Edge]) -> None:
        await self._write(space, lambda db, number: graph.link(db, number, edges))

    async def link_nearest(self, space: str, nearest: Mapping[str, Sequence[Edge]]) -> None:
        await self._write(space, lambda db, number: graph.link_nearest(db, number, nearest))

    async def unlink(self, space: str, source: str, target: str, relation: str | None = None) -> int:
        return await self._write(space, lambda db, number: graph.unlink(db, number, source, target, relation))

    async def walk(
        self, space: str, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]:
        return await self._search(
            space, lambda db, number: graph.walk(db, number, seeds, where, depth=depth, limit=limit)
        )

    async def edges(self, space: str, ids: Sequence[str] | None = None) -> AsyncIterator[Edge]:
        if ids is not None:
            for edge in await self._read(space, lambda db, number: graph.edges_of(db, number, ids)):
                yield edge
            return
        last = graph.FIRST
        while page := await self._edges_after(space, last):
            for last, edge in page:  # noqa: B007 (the next page begins after the last key of this one)
                yield edge

    async def _edges_after(self, space: str, last: graph.Key) -> Sequence[tuple[graph.Key, Edge]]:
        return await self._read(space, lambda db, number: graph.edges_after(db, number, last, EDGES_PER_READ))

    # What memories are worth

    async def most_useful(self, space: str, per_hit: float) -> float:
        return await self._read(space, lambda db, number: records.most_useful(db, number, per_hit))

    async def set_qualities(self, space: str, qualities: Mapping[str, float]) -> int:
        return await self._write(space, lambda db, number: records.set_qualities(db, number, qualities))

    async def _read(self, space: str, work: Callable[[Database, int], Awaitable[T]]) -> T:
        number = await self._numbers.of(space)
        return await self._connections.read(lambda db: work(db, number), space=number)

    async def _search(self, space: str, work: Callable[[Database, int], Awaitable[T]]) -> T:
        number = await self._numbers.of(space)
        return await self._connections.search(lambda db: work(db, number), space=number)

    async def _write(self, space: str, work: Callable[[Database, int], Awaitable[T]]) -> T:
        number = await self._numbers.of(space)
        return await self._connections.write(lambda db: work(db, number), space=number)
