"""The SQLite store: one file that holds the memories and can search them by word, by meaning and by link."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from recollect.errors import ConfigError, IndexBuilding
from recollect.ports import WordHits, WordSearch
from recollect.settings import Settings
from recollect.stores.address import MEMORY, path_of
from recollect.stores.contents import Space, stream_edges
from recollect.stores.sql_store import Share, SqlStore
from recollect.stores.sqlite import (
    backups,
    closing,
    graph,
    migrations,
    records,
    text_indexes,
    word_scores,
    words,
    writes,
)
from recollect.stores.sqlite.connections import Connections
from recollect.stores.sqlite.generations import SqliteGenerations, model_of, set_first
from recollect.stores.sqlite.ledger import SqliteLedger
from recollect.stores.sqlite.owners import Owner
from recollect.stores.sqlite.rows import NOWHERE, ensure_space, fetch, number_of, searchable
from recollect.stores.sqlite.vectors import VectorSearch
from recollect.types import Edge, Filter, Generation, Migration, Record, Remembered

P = ParamSpec("P")
T = TypeVar("T")


def _reads(
    work: Callable[Concatenate[apsw.Connection, Space, P], T],
) -> Callable[Concatenate[SqliteStore, str, P], Coroutine[Any, Any, T]]:
    """The method of a store that runs `work` on a snapshot of one space."""

    @wraps(work)
    async def method(store: SqliteStore, space: str, /, *given: P.args, **named: P.kwargs) -> T:
        return await store._connections.read(lambda db: work(db, Space(number_of(db, space), space), *given, **named))

    return method


def _writes(
    work: Callable[Concatenate[apsw.Connection, Space, P], T],
) -> Callable[Concatenate[SqliteStore, str, P], Coroutine[Any, Any, T]]:
    """The method of a store that runs `work` in a transaction that writes to one space."""

    @wraps(work)
    async def method(store: SqliteStore, space: str, /, *given: P.args, **named: P.kwargs) -> T:
        return await store._connections.write(lambda db: work(db, Space(number_of(db, space), space), *given, **named))

    return method


class SqliteStore(SqlStore):
    """A store in one file, which several processes may share. Open it before use, and close it after."""

    name = "sqlite"
    in_process = True
    _vectors: VectorSearch

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).absolute()  # the process may go to another folder
        self._connections = Connections(self.path, prepare=words.register)
        self._vectors = VectorSearch(self.path.with_name(f"{self.path.name}.vectors"))
        self._counts = word_scores.Counts()
        self._owner = Owner(closing.companion(self.path, ".owners"))
        self.generations = SqliteGenerations(self._connections, self._vectors)
        self.ledger = SqliteLedger(self._connections, self._owner)
        self._building: dict[str, asyncio.Task[None]] = {}
        self._folder: TemporaryDirectory[str] | None = None

    @classmethod
    def from_url(cls, url: str, settings: Settings, *, create: bool) -> SqliteStore:  # noqa: ARG003 (every store's)
        """The store of `sqlite:///FILE`, or of `sqlite:///:memory:`."""
        path = path_of(url, create=create)
        return cls.temporary() if str(path) == MEMORY else cls(path)

    @classmethod
    def temporary(cls) -> SqliteStore:
        """A store that is deleted when it is closed."""
        folder = TemporaryDirectory(prefix="recollect-")
        store = cls(Path(folder.name, "memory.db"))
        store._folder = folder
        return store

    @property
    def location(self) -> str:
        return str(self.path.resolve())

    async def open(self) -> None:
        """Open the file, and create it with its folder if it is missing. A file that is not a store is not touched."""
        await self._connections.open()

    async def migrate(self, *, dry_run: bool, row_security: bool = False, words: Sequence[str] = ()) -> Migration:
        """Open the file, which migrates it, and build text indexes; what was done, or would be."""
        if row_security:
            raise ConfigError(f"{self.path} is a SQLite file, and only Postgres has row security: leave it out")
        if unknown := [name for name in words if name not in text_indexes.NAMES]:
            raise ConfigError(
                f"{self.path} is a SQLite file and has no text-search configuration {unknown[0]!r}: use one of "
                f"{', '.join(text_indexes.NAMES)}"
            )
        steps = await asyncio.to_thread(migrations.steps, self.path)
        if dry_run and steps:
            return Migration((*steps, *map(text_indexes.step, words)))
        if not (steps or words):
            return Migration(())
        await self.open()
        try:
            lacking = [name for name in words if not await self._connections.read(partial(text_indexes.is_ready, name))]
            for name in () if dry_run else lacking:
                await self._text_index(text_indexes.NAMES[name])
        finally:
            await self.close()
        return Migration((*steps, *map(text_indexes.step, lacking)))

    async def close(self) -> None:
        await asyncio.to_thread(self._vectors.close)
        await self._connections.close()
        await asyncio.to_thread(self._owner.close)
        await asyncio.gather(*self._building.values(), return_exceptions=True)
        if self._folder:
            await asyncio.to_thread(self._folder.cleanup)

    def bulk(self, expected: int = 0) -> AbstractAsyncContextManager[None]:  # noqa: ARG002 (see below)
        """Does nothing: the vector indexes catch up by themselves."""
        return nullcontext()

    async def settle(self, space: str) -> None:  # noqa: ARG002 (one index is built at a time)
        await asyncio.to_thread(self._vectors.settle)

    async def check(self) -> None:
        await self._connections.check()

    async def remarks(self) -> Sequence[str]:
        return await self._connections.read(
            lambda db: [*closing.check_whole(db, self.path), *backups.verify(db, self.path)]
        )

    async def save(self, file: Path) -> dict[str, int]:
        """Write a snapshot to a new file; memories by space."""
        return await self._connections.read(lambda db: backups.write(db, file))

    async def seal(self) -> backups.Seal:
        """Check this closed file, and seal it as a backup."""
        return await self._connections.alone(lambda db: backups.seal(db, self.path))

    # Records

    async def add(self, space: str, records: Sequence[Record]) -> builtins.list[Remembered]:
        if not records:
            return []
        return await self._connections.write(lambda db: writes.add(db, Space(ensure_space(db, space), space), records))

    copies = _reads(records.copies)
    get = _reads(fetch)
    list = _reads(records.page)
    history = _reads(records.history)
    beside = _reads(records.beside)
    visible = _reads(records.visible)
    sample = _reads(records.sample)
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
        return await self._connections.read(model_of)

    async def set_generation(self, generation: Generation) -> None:
        await self._connections.write(lambda db: set_first(db, generation))

    # Words

    async def search_words(self, space: str, search: WordSearch, where: Filter, *, limit: int) -> WordHits:
        if search.match == "any":
            return await self._connections.read(
                lambda db: word_scores.search(db, number_of(db, space), search, where, limit, self._counts)
            )

        def work(db: apsw.Connection) -> WordHits | str:
            missing = text_indexes.missing_index(db, search)
            return missing or text_indexes.search(db, number_of(db, space), search, where, limit)

        answer = await self._connections.read(work)
        while isinstance(answer, str):
            far = await self._connections.read(partial(text_indexes.how_far, answer))
            building = self._text_index(answer)
            if far:
                raise IndexBuilding(far, backend=self.name)
            await asyncio.shield(building)
            answer = await self._connections.read(work)
        return answer

    def _text_index(self, name: str) -> asyncio.Task[None]:
        """The task that builds a text index. A caller that stops waiting, such as a late lane, does not stop it."""
        if name not in self._building:
            self._building[name] = asyncio.create_task(self._build_text_index(name), name=name)
            self._building[name].add_done_callback(self._built)
        return self._building[name]

    async def _build_text_index(self, name: str) -> None:
        """Build batch by batch: others may write in between, and closing the store stops it."""
        while not await self._connections.write(lambda db: text_indexes.build_index(db, name)):
            pass

    def _built(self, task: asyncio.Task[None]) -> None:
        del self._building[task.get_name()]
        if not task.cancelled():
            task.exception()  # retrieved: callers that wait get it, and the next search retries

    # Vectors

    async def _read_vectors(
        self,
        space: str,
        work: Callable[[apsw.Connection, int, int], T],
        nothing: T,
        generation: Generation | None = None,
        share: Share = "search",  # noqa: ARG002 (Postgres alone shares connections out)
    ) -> T:
        def run(db: apsw.Connection) -> T:
            number, made = number_of(db, space), searchable(db, generation)
            return nothing if made is None or number == NOWHERE else work(db, number, made)

        return await self._connections.read(run)

    # Links

    link = _writes(graph.link)
    link_nearest = _writes(graph.link_nearest)
    unlink = _writes(graph.unlink)
    walk = _reads(graph.walk)
    _edges_of = _reads(graph.edges_of)
    _edges_after = _reads(graph.edges_after)

    async def edges(self, space: str, ids: Sequence[str] | None = None) -> AsyncIterator[Edge]:
        if ids is not None:
            for edge in await self._edges_of(space, ids):
                yield edge
        else:
            async for edge in stream_edges(partial(self._edges_after, space)):
                yield edge
