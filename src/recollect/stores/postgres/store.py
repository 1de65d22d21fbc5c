"""The Postgres store: one database that a team shares. It holds the memories and searches by word, meaning and link."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from recollect.ports import WordHits, WordSearch
from recollect.settings import PostgresSettings, Settings
from recollect.stores.address import path_of
from recollect.stores.contents import Space, stream_edges
from recollect.stores.postgres import graph, letters, records, text_indexes, vectors, word_scores, words, writes
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.changing import PostgresGenerations
from recollect.stores.postgres.connections import Connections
from recollect.stores.postgres.generations import GenerationRow
from recollect.stores.postgres.ledger import PostgresLedger
from recollect.stores.postgres.numbers import NOWHERE, Numbers
from recollect.stores.postgres.owners import Owner
from recollect.stores.postgres.rows import ensure_space, fetch
from recollect.stores.postgres.vectors import VectorSearch
from recollect.stores.sql_store import Share, SqlStore
from recollect.types import Edge, Filter, Generation, Migration, Record, Remembered

if TYPE_CHECKING:
    from recollect.stores.postgres.server import EmbeddedServer

P = ParamSpec("P")
T = TypeVar("T")


def _reads(
    work: Callable[Concatenate[Database, Space, P], Awaitable[T]], share: Share = "other"
) -> Callable[Concatenate[PostgresStore, str, P], Coroutine[Any, Any, T]]:
    """The method of a store that runs `work` on a snapshot of one space."""

    @wraps(work)
    async def method(store: PostgresStore, space: str, /, *given: P.args, **named: P.kwargs) -> T:
        here = Space(await store._numbers.of(space), space)
        return await store._connections.read(lambda db: work(db, here, *given, **named), space=here.number, share=share)

    return method


def _writes(
    work: Callable[Concatenate[Database, Space, P], Awaitable[T]],
) -> Callable[Concatenate[PostgresStore, str, P], Coroutine[Any, Any, T]]:
    """The method of a store that runs `work` in a transaction that writes to one space."""

    @wraps(work)
    async def method(store: PostgresStore, space: str, /, *given: P.args, **named: P.kwargs) -> T:
        here = Space(await store._numbers.of(space), space)
        return await store._connections.write(lambda db: work(db, here, *given, **named), space=here.number)

    return method


class PostgresStore(SqlStore):
    """A store in a schema of a database. Open it before use, and close it after."""

    name = "postgres"
    in_process = False
    _vectors: VectorSearch

    def __init__(self, dsn: str, settings: PostgresSettings | None = None, *, create: bool = True) -> None:
        self.settings = settings or PostgresSettings()
        self._create = create
        self._server: EmbeddedServer | None = None
        self._started = False
        self._connections = Connections(dsn, self.settings)
        self._vectors = VectorSearch(lambda: self._connections.autocommit())
        self._configurations = text_indexes.Configurations(
            lambda: self._connections.autocommit(), lambda work: self._connections.read(work, share="rows")
        )
        self._owner = Owner(lambda: self._connections.autocommit())
        self._counts = word_scores.Counts()
        self._numbers = Numbers(lambda: self._connections)
        self.ledger = PostgresLedger(self._numbers, self._owner)
        storage = "halfvec" if self.settings.halfvec else "vector"
        self.generations = PostgresGenerations(self._numbers, self._vectors, storage)

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
        """Open the database, starting a private server first. Creates a missing store if `create` was set."""
        await self._start(create=self._create)
        try:
            await self._connections.open(create=self._create)
        except BaseException:
            await self.close()
            raise

    async def migrate(self, *, dry_run: bool, row_security: bool = False, words: Sequence[str] = ()) -> Migration:
        """Migrate the database and build text indexes for these configurations; what was done, or would be."""
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
    async def snapshot(self) -> AsyncIterator[PostgresStore]:
        """The store as it is now, to be read: what others write meanwhile is not seen."""
        async with self._connections.frozen() as connections:
            store = PostgresStore("", self.settings)
            store._connections = connections
            yield store

    def bulk(self, expected: int = 0) -> AbstractAsyncContextManager[None]:
        return self._vectors.loading(expected)

    async def settle(self, space: str) -> None:
        while await self._read_vectors(space, self._vectors.awaits_index, False, share="other"):
            await self._vectors.settle()

    async def check(self) -> None:
        await self.generation()

    async def remarks(self) -> Sequence[str]:
        async def work(db: Database) -> Sequence[str]:
            return [*await vectors.remarks(db), *await letters.remarks(db)]

        return await self._connections.read(work)

    # Records

    async def add(self, space: str, records: Sequence[Record]) -> builtins.list[Remembered]:
        if not records:
            return []
        rows = await self._numbers.for_rows(len(records))
        number = await self._numbers.of(space)
        if number != NOWHERE:
            here = Space(number, space)
            return await self._connections.write(lambda db: writes.add(db, here, records, rows), space=number)

        async def begin(db: Database) -> tuple[int, builtins.list[Remembered]]:
            number = await ensure_space(db, space)
            return number, await writes.add(db, Space(number, space), records, rows)

        number, answers = await self._connections.write(begin)
        self._numbers.remember(space, number)
        return answers

    copies = _reads(records.copies)
    get = _reads(fetch, "rows")
    list = _reads(records.page)
    history = _reads(records.history)
    beside = _reads(records.beside, "rows")
    visible = _reads(records.visible, "rows")
    sample = _reads(records.sample, "rows")
    pending = _reads(records.pending)
    unlinked = _reads(records.unlinked)
    marks = _reads(records.marks)
    most_useful = _reads(records.most_useful)
    stats = _reads(records.stats)
    update = _writes(writes.update)
    forget = _writes(writes.forget)
    supersede = _writes(writes.supersede)
    put_vectors = _writes(writes.put_vectors)
    fail_vectors = _writes(records.fail_vectors)
    mark_hits = _writes(records.mark_hits)
    mark_used = _writes(records.mark_used)
    set_qualities = _writes(records.set_qualities)

    async def spaces(self) -> Sequence[str]:
        return await self._connections.read(records.spaces)

    async def generation(self) -> Generation | None:
        found = await self._connections.read(vectors.generation, share="rows")
        return found.generation if found else None

    async def set_generation(self, generation: Generation) -> None:
        storage = "halfvec" if self.settings.halfvec else "vector"
        await self._connections.write(lambda db: vectors.set_generation(db, generation, storage))

    # Words

    async def search_words(self, space: str, search: WordSearch, where: Filter, *, limit: int) -> WordHits:
        if search.match != "any":
            await self._configurations.ensure(search.words)
        number = await self._numbers.of(space)
        return await self._connections.read(
            lambda db: words.search(db, number, search, where, limit, self._counts), space=number, share="search"
        )

    # Vectors

    async def _read_vectors(
        self,
        space: str,
        work: Callable[[Database, int, GenerationRow], Awaitable[T]],
        nothing: T,
        generation: Generation | None = None,
        share: Share = "search",
    ) -> T:
        number = await self._numbers.of(space)

        async def run(db: Database) -> T:
            made = await self.generations.searchable(db, generation)
            return nothing if made is None or number == NOWHERE else await work(db, number, made)

        return await self._connections.read(run, space=number, share=share)

    # Links

    link = _writes(graph.link)
    link_nearest = _writes(graph.link_nearest)
    unlink = _writes(graph.unlink)
    walk = _reads(graph.walk, "search")
    _edges_of = _reads(graph.edges_of)
    _edges_after = _reads(graph.edges_after)

    async def edges(self, space: str, ids: Sequence[str] | None = None) -> AsyncIterator[Edge]:
        if ids is not None:
            for edge in await self._edges_of(space, ids):
                yield edge
        else:
            async for edge in stream_edges(partial(self._edges_after, space)):
                yield edge
