"""The source of truth."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from recollect.ports.engines import Engine
from recollect.ports.generations import Generations
from recollect.ports.indexes import GraphIndex, VectorIndex, WordIndex
from recollect.ports.ledger import Ledger
from recollect.types import Background, Filter, Generation, Memory, Migration, Page, Record, Remembered, SpaceStats

if TYPE_CHECKING:
    from recollect.types import Vector


class Beside(NamedTuple):
    """Ids of the memories around one in its thread, nearest first on each side."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class Mark(NamedTuple):
    """What a store knows of a memory besides its fields; `Record` takes it to another store."""

    hash: bytes
    linked: bool


class Sample(NamedTuple):
    """How many memories there are, and the ids of some of them."""

    total: int
    ids: Sequence[str]


class Records(Protocol):
    """The source of truth."""

    async def add(self, space: str, /, records: Sequence[Record]) -> list[Remembered]:
        """Store all in one transaction, durable on return. Same namespace, kind and text (in a thread: same thread,
        and same place if one is given), or the same id: not stored again, answered with the first, unless that was
        superseded or has expired. Such a copy takes over what it lacks of the record, unless the record says otherwise:
        new tags and metadata keys, a title, source and time, and the longer life; nothing is overwritten. A memory of a
        thread without a place goes to the thread's end. A link whose other end was forgotten meanwhile is left out.
        """

    async def copies(self, space: str, /, memories: Sequence[Memory]) -> list[Memory | None]:
        """For each, what `add` would answer instead of storing it: the memory with the same id, or an exact copy."""

    async def get(self, space: str, /, ids: Sequence[str]) -> dict[str, Memory]:
        """Those that exist here, whatever their state."""

    async def list(
        self, space: str, /, where: Filter, *, limit: int, after: str | None = None, newest_first: bool = False
    ) -> Page:
        """A page in id order, or newest first, after the id of a cursor."""

    async def update(
        self,
        space: str,
        /,
        id: str,
        changes: Mapping[str, Any],
        *,
        vector: Vector | None = None,
        now: datetime,
        generation: Generation | None = None,
    ) -> Memory:
        """Change the named fields. A changed title or text without a vector, or with one that is not of the current
        generation, makes the memory `pending`, and its links to its nearest are made anew. Raises NotFound.
        """

    async def forget(self, space: str, /, ids: Sequence[str]) -> int:
        """Delete rows, words, vectors and links; how many there were."""

    async def supersede(self, space: str, /, old: str, new: Record | str, *, now: datetime) -> Memory:
        """Mark `old` as replaced, and answer with what replaced it: a memory that is here, by its id, or a record,
        which is stored as `add` stores it, in the same transaction. Raises NotFound, and InvalidRequest for a cycle,
        for an id that stands for another text, or where another has replaced it already: of several at once one wins,
        and the others store nothing.
        """

    async def history(self, space: str, /, id: str, *, limit: int) -> Sequence[str]:
        """The ids of a memory, of those that it replaced and of those that replaced it, through others too, whatever
        their state: each before what replaced it, ties by id. At most `limit` before it and as many after it, those the
        fewest steps away. One that was forgotten leads no further; nothing, if this one is not here.
        """

    async def beside(self, space: str, /, ids: Sequence[str], reach: int) -> dict[str, Beside]:
        """Thread neighbours up to `reach` on each side, for those ids that are in a thread. A thread belongs to its
        namespace: the same name in another one is another thread.
        """

    async def visible(self, space: str, /, ids: Sequence[str], where: Filter) -> set[str]:
        """Which of these ids pass the filter."""

    async def sample(self, space: str, /, namespaces: Sequence[str], *, limit: int) -> Sample:
        """Some memories of these namespaces that stand for all of them: those with the lowest content hashes, which
        depend on nothing but what the namespaces hold.
        """

    async def pending(self, space: str, /, *, limit: int) -> builtins.list[Memory]:
        """Memories that still need a vector, oldest first."""

    async def put_vectors(
        self, space: str, /, embedded: Sequence[tuple[Memory, Vector]], *, generation: Generation | None = None
    ) -> None:
        """Attach vectors to memories, which become `ready`; not where the title or the text changed meanwhile. Raises
        EmbeddingMismatch unless they are of the current generation.
        """

    async def fail_vectors(self, space: str, /, ids: Sequence[str]) -> None:
        """Mark memories that cannot be embedded as `failed`: they no longer wait for a vector."""

    async def unlinked(self, space: str, /, *, limit: int) -> builtins.list[str]:
        """Memories with a vector that were not yet linked to their nearest."""

    async def marks(self, space: str, /, ids: Sequence[str]) -> dict[str, Mark]:
        """What makes another memory an exact copy of each of these, and whether it was linked to its nearest."""

    async def mark_hits(self, space: str, /, hits: Mapping[str, int], *, now: datetime) -> None:
        """Count how often these ids were recalled since they were last counted, the last time at `now`."""

    async def mark_used(self, space: str, /, ids: Sequence[str], *, now: datetime) -> int:
        """Count that these ids, each of them once, were of use at `now`; how many there are."""

    async def most_useful(self, space: str, /, per_hit: float) -> float:
        """The usefulness of the most useful memory: its uses, plus `per_hit` for each of its hits."""

    async def set_qualities(self, space: str, /, qualities: Mapping[str, float]) -> int:
        """Set the quality of these ids and nothing else of them; how many had another one before."""

    async def spaces(self) -> Sequence[str]: ...

    async def stats(self, space: str, /) -> SpaceStats: ...

    async def generation(self) -> Generation | None:
        """The current one; None while there are no vectors."""

    async def set_generation(self, generation: Generation) -> None:
        """Record the model of this store's vectors. Raises EmbeddingMismatch when there is another already."""


class Store(Engine, Records, WordIndex, VectorIndex, GraphIndex, Protocol):
    """A source of truth that can also search."""

    @property
    def generations(self) -> Generations:
        """The models that made its vectors."""

    @property
    def ledger(self) -> Ledger:
        """What is kept beside the memories, in the same place."""

    @property
    def location(self) -> str:
        """Where the store lives, for messages; the same for two stores that are one. Never a password."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def vector_background(
        self, space: str, /, vector: Vector, *, generation: Generation | None = None
    ) -> Background | None:
        """What the cosines of a vector with those of a space are measured against; None while the space has none. It
        depends only on what the space holds, and is the same in every store: see `recollect.stores.nearest`.
        """

    async def migrate(self, *, dry_run: bool, row_security: bool = False, words: Sequence[str] = ()) -> Migration:
        """Migrate a closed store to the newest version, on Postgres with row security and text-search configurations on
        request.
        """

    def bulk(self, expected: int = 0) -> AbstractAsyncContextManager[None]:
        """Around many `add`s, of about `expected` memories: indexes are updated once at the end, where that is cheaper.
        Each `add` is as durable as ever.
        """

    async def settle(self, space: str, /) -> None:
        """Wait for an index that is being built for searches of this space, if any."""

    async def check(self) -> None:
        """Raise BackendError unless the store answers and keeps what is written."""

    async def remarks(self) -> Sequence[str]:
        """What the store's administrator should know about its state."""


@runtime_checkable
class SnapshotStore(Protocol):
    """A store that can give a consistent snapshot of itself while others keep writing."""

    def snapshot(self) -> AbstractAsyncContextManager[Store]:
        """The store as it is now, open and for reading only. The caller must not close it."""
