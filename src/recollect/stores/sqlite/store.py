"""The SQLite store: one file that holds the memories and can search them by word, by meaning and by link."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeVar

import apsw

from recollect.errors import ConfigError, IndexBuilding
from recollect.ports import Beside, Mark, Reached, Sample, VectorHits, WordHits, WordSearch
from recollect.settings import Settings
from recollect.stores.address import MEMORY, path_of
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
from recollect.stores.sqlite.ledger import SqliteLedger
from recollect.stores.sqlite.owners import Owner
from recollect.stores.sqlite.rows import NOWHERE, ensure_space, fetch, space_number
from recollect.stores.sqlite.vectors import VectorSearch
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
    from recollect.types import Vector

T = TypeVar("T")

EDGES_PER_READ: Final = 1_000


class SqliteStore:
    """A store in one file, which several processes may share. Open it before use, and close it after."""

    name = "sqlite"
    in_process = True

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._connections = Connections(self.path, prepare=words.register)
        self._vectors = VectorSearch(self.path.with_name(f"{self.path.name}.vectors"))
        self._counts = word_scores.Counts()
        self._owner = Owner(closing.companion(self.path, ".owners"))
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
        """A store that is gone when it is closed."""
        folder = TemporaryDirectory(prefix="recollect-")
        store = cls(Path(folder.name, "memory.db"))
        store._folder = folder
        return store

    @property
    def location(self) -> str:
        return str(self.path.resolve())

    async def open(self) -> None:
        """Open the file, made with its folder if it is missing; one that is no store is left untouched."""
        await self._connections.open()

    async def migrate(self, *, dry_run: bool, row_security: bool = False, words: Sequence[str] = ()) -> Migration:
        """What opening the file does, or would do, to bring it to the newest version."""
        if row_security:
            raise ConfigError(f"{self.path} is an SQLite file and can have no row security, which Postgres alone has")
        if unknown := [name for name in words if name not in text_indexes.NAMES]:
            raise ConfigError(
                f"{self.path} is an SQLite file and knows no text-search configuration {unknown[0]!r}; it knows: "
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
        """Nothing is to be done: the indexes of vectors catch up by themselves."""
        return nullcontext()

    async def settle(self, space: str) -> None:  # noqa: ARG002 (one index is built at a time)
        await asyncio.to_thread(self._vectors.settle)

    async def check(self) -> None:
        await self._connections.check()

    async def remarks(self) -> Sequence[str]:
        return await self._connections.read(
            lambda db: [*closing.examine(db, self.path), *backups.verify(db, self.path)]
        )

    async def save(self, file: Path) -> dict[str, int]:
        """Write all that is here at this moment to a new file; memories by space."""
        return await self._connections.read(lambda db: backups.write(db, file))

    async def seal(self) -> backups.Seal:
        """Check this file, which is not open, and seal it as a backup."""
        return await self._connections.alone(lambda db: backups.seal(db, self.path))

    # Records

    async def add(self, space: str, records: Sequence[Record]) -> list[Remembered]:
        if not records:
            return []
        return await self._connections.write(lambda db: writes.add(db, ensure_space(db, space), space, records))

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
        found = await self._read(space, lambda db, number: fetch(db, number, space, records.pending(db, number, limit)))
        return [*found.values()]

    async def put_vectors(self, space: str, embedded: Sequence[tuple[Memory, Vector]]) -> None:
        await self._write(space, lambda db, number: writes.put_vectors(db, number, space, embedded))

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
        found = await self._connections.read(records.generation)
        return found[1] if found else None

    async def set_generation(self, generation: Generation) -> None:
        await self._connections.write(lambda db: records.set_generation(db, generation))

    # Words

    async def search_words(self, space: str, search: WordSearch, where: Filter, *, limit: int) -> WordHits:
        def work(db: apsw.Connection, number: int) -> WordHits | str:
            return text_indexes.missing_index(db, search) or words.search(
                db, number, search, where, limit, self._counts
            )

        answer = await self._read(space, work)
        while isinstance(answer, str):
            far = await self._connections.read(partial(text_indexes.how_far, answer))
            building = self._text_index(answer)
            if far:
                raise IndexBuilding(far, backend=self.name)
            await asyncio.shield(building)
            answer = await self._read(space, work)
        return answer

    def _text_index(self, name: str) -> asyncio.Task[None]:
        """The first recipe that asks for a seed's words has their index made. Whoever stops waiting for it, as a lane
        does that is late, does not stop it: a later recall finds it done.
        """
        if name not in self._building:
            self._building[name] = asyncio.create_task(self._build_text_index(name), name=name)
            self._building[name].add_done_callback(self._built)
        return self._building[name]

    async def _build_text_index(self, name: str) -> None:
        """Batch by batch: others may write between, and closing the store ends it there."""
        while not await self._connections.write(lambda db: text_indexes.build_index(db, name)):
            pass

    def _built(self, task: asyncio.Task[None]) -> None:
        del self._building[task.get_name()]
        if not task.cancelled():
            task.exception()  # seen: whoever still waits is told, and the next search tries again

    # Vectors

    async def search_vectors(
        self, space: str, vector: Vector, where: Filter, *, limit: int, ef_search: int | None = None
    ) -> VectorHits:
        def work(db: apsw.Connection, number: int) -> VectorHits:
            generation = records.generation(db)
            if generation is None or number == NOWHERE:
                return VectorHits([])
            return self._vectors.search(db, number, generation[0], vector, where, limit, ef_search)

        return await self._read(space, work)

    async def vector_background(self, space: str, vector: Vector) -> Background | None:
        def work(db: apsw.Connection, number: int) -> Background | None:
            generation = records.generation(db)
            if generation is None or number == NOWHERE:
                return None
            return self._vectors.background(db, number, generation[0], vector)

        return await self._read(space, work)

    async def nearest_to(self, space: str, ids: Sequence[str], *, limit: int) -> dict[str, builtins.list[Scored]]:
        def work(db: apsw.Connection, number: int) -> dict[str, builtins.list[Scored]]:
            generation = records.generation(db)
            return self._vectors.nearest_to(db, number, generation[0], ids, limit) if generation else {}

        return await self._read(space, work)

    async def vectors(self, space: str, ids: Sequence[str]) -> dict[str, Vector]:
        return await self._read(space, lambda db, number: self._vectors.fetch(db, number, ids))

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
        return await self._read(
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

    async def _read(self, space: str, work: Callable[[apsw.Connection, int], T]) -> T:
        return await self._connections.read(lambda db: work(db, space_number(db, space) or NOWHERE))

    async def _write(self, space: str, work: Callable[[apsw.Connection, int], T]) -> T:
        return await self._connections.write(lambda db: work(db, space_number(db, space) or NOWHERE))
