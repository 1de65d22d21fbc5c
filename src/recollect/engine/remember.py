"""remember: drafts into stored memories, one by one or as a stream, with their vectors and first links."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.engine.drafts import complete
from recollect.engine.embedding import Embedding
from recollect.errors import InvalidRequest, RecollectError
from recollect.limits import check_same_text, check_vectors
from recollect.ports import Store
from recollect.types import NEAREST, SIMILAR, Draft, Edge, Filter, Generation, Memory, Record, Remembered

if TYPE_CHECKING:
    from recollect.types import Vector

BATCH = 1000
"""Memories per transaction of a bulk load: large enough to amortise the commit, small enough to show progress."""
EMBED_BATCH = 64
"""Memories per transaction when they must be embedded first: what is acknowledged is then seconds, not minutes, old."""
BATCH_CHARACTERS = 4 * 1024 * 1024
"""Text per transaction: what a load holds in memory does not grow with the length of its texts."""
PARALLEL_BATCHES = 4
"""Batches under way of one load: what makes a batch ready and what stores it then work side by side, and other callers
still find a connection."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a bulk load did."""

    created: int = 0
    copies: int = 0


class Made(NamedTuple):
    """A vector, and the generation that it is of."""

    vector: Vector
    generation: Generation | None


class Rememberer:
    """Writes memories: checks, embeds, links to the nearest, stores in one transaction."""

    def __init__(self, store: Store, embedding: Embedding) -> None:
        self._store = store
        self._embedding = embedding

    async def remember(self, space: str, draft: Draft) -> Remembered:
        """One memory, findable and linked to its three nearest when this returns."""
        record = await self._ready(space, draft)
        (remembered,) = await self._store.add(space, [record])
        check_same_text(record.memory, remembered.memory)
        return remembered

    async def supersede(self, space: str, old: str, new: Draft | str) -> Memory:
        """What replaces a memory from now on. A draft is stored in the transaction that marks the old memory, so that
        one that comes too late leaves nothing behind to be forgotten again.
        """
        by = new if isinstance(new, str) else await self._ready(space, new)
        return await self._store.supersede(space, old, by, now=datetime.now(UTC))

    async def _ready(self, space: str, draft: Draft) -> Record:
        """A draft as a record with its vector and its links to its nearest; one that is only a copy has neither."""
        memory = complete(space, draft, datetime.now(UTC))
        (copy,) = await self._store.copies(space, [memory])
        if copy is not None:
            check_same_text(memory, copy)
        if not _must_be_embedded(memory, copy):
            return Record(memory)
        (made,) = await self._vectors_of(space, [draft], [memory])
        if made is None:
            return Record(memory)
        edges = () if copy is not None else await self._nearest(space, memory.id, made)
        return Record(memory, made.vector, edges, generation=made.generation)

    async def remember_many(
        self, space: str, drafts: Iterable[Draft], *, batch: int | None = None
    ) -> AsyncIterator[list[Remembered]]:
        """A stream of drafts, stored batch by batch: each list that comes back is durable. Linked afterwards.

        While one batch is being stored the next is made ready, and sent after it, unless it has to wait, as one does
        that must be embedded, and one that follows it: stores number memories in the order in which they are sent. A
        draft that is wrong leaves its batch out, and all that comes after it; so does one whose id stands for another
        text, but what came with it is stored by then.
        """
        source, position = iter(drafts), 0
        under_way: deque[_Batch] = deque()
        try:
            while True:
                try:
                    some = await asyncio.to_thread(_some, source, batch)
                    memories = _completed(space, some, position)
                except Exception:
                    while under_way:  # what came before is stored, and said to be
                        yield await under_way.popleft().task
                    raise
                embedded = _lack_vectors(some)
                while under_way and (not some or embedded or _must_wait(memories, under_way)):
                    yield await under_way.popleft().task
                if not some:
                    return
                storing = asyncio.create_task(self._store_all(space, some, memories, position))
                under_way.append(_Batch(memories, embedded, storing))
                position += len(some)
        finally:
            await _stop([one.task for one in under_way])

    async def remember_each(self, space: str, drafts: Sequence[Draft]) -> list[Remembered | InvalidRequest]:
        """Some drafts in one transaction: for each what became of it, or why it was left out. Linked afterwards."""
        return await self._store_each(space, drafts, _completed(space, drafts, 0))

    async def _store_all(
        self, space: str, drafts: Sequence[Draft], memories: Sequence[Memory], position: int
    ) -> list[Remembered]:
        stored: list[Remembered] = []
        for number, answer in enumerate(await self._store_each(space, drafts, memories), position + 1):
            if isinstance(answer, InvalidRequest):
                raise _in_batch(number, answer)
            stored.append(answer)
        return stored

    async def _store_each(
        self, space: str, drafts: Sequence[Draft], memories: Sequence[Memory]
    ) -> list[Remembered | InvalidRequest]:
        # what is there already need not be embedded; where nothing is to be embedded, storing finds it soon enough
        copies = await self._store.copies(space, memories) if _lack_vectors(drafts) else [None] * len(memories)
        pairs = enumerate(zip(memories, copies, strict=True))
        fresh = [n for n, (memory, copy) in pairs if _must_be_embedded(memory, copy)]
        made = await self._vectors_of(space, [drafts[n] for n in fresh], [memories[n] for n in fresh])
        ready = dict(zip(fresh, made, strict=True))
        records = [
            _record(memory, ready.get(n), linked=draft.linked)
            for n, (memory, draft) in enumerate(zip(memories, drafts, strict=True))
        ]
        answers = await self._store.add(space, records)
        return [_checked(memory, answer) for memory, answer in zip(memories, answers, strict=True)]

    async def _vectors_of(self, space: str, drafts: Sequence[Draft], memories: Sequence[Memory]) -> list[Made | None]:
        """Given vectors checked, missing ones embedded; None for all the missing ones when the embedder is down."""
        dimensions = await self._embedding.dimensions()
        made: dict[int, Made] = {}
        if given := {n: draft.vector for n, draft in enumerate(drafts) if draft.vector is not None}:
            vectors = check_vectors([*given.values()], dimensions)
            await self._embedding.claim(next(iter(vectors)).size)
            generation = self._embedding.generation
            made |= {n: Made(vector, generation) for n, vector in zip(given, vectors, strict=True)}
        if missing := [n for n in range(len(drafts)) if n not in given]:
            embedded = await self._embedding.passages(space, [memories[n] for n in missing])
            if embedded is not None:
                made |= {
                    n: Made(vector, embedded.generation) for n, vector in zip(missing, embedded.vectors, strict=True)
                }
        return [made.get(n) for n in range(len(drafts))]

    async def _nearest(self, space: str, id: str, made: Made) -> tuple[Edge, ...]:
        """Links to the three nearest memories there are, none where the search fails. Upkeep looks at them again, and
        at whom else the new memory is nearest to.
        """
        try:
            found = await self._store.search_vectors(
                space, made.vector, Filter(), limit=NEAREST + 1, generation=made.generation
            )
        except RecollectError:
            return ()
        nearest = [hit for hit in found.hits if hit.id != id and hit.score > 0][:NEAREST]
        return tuple(Edge(id, hit.id, SIMILAR, min(hit.score, 1.0)) for hit in nearest)

    async def revise(self, space: str, id: str, changes: dict[str, object]) -> Memory:
        """Changed fields of a memory; a changed text or title is embedded anew."""
        now = datetime.now(UTC)
        made = None
        if "text" in changes or "title" in changes:
            found = await self._store.get(space, [id])
            if id in found:  # an unknown id is the store's to refuse
                (made,) = await self._vectors_of(space, [Draft(text="-")], [replace(found[id], **changes)])  # type: ignore[arg-type]  # names and types were checked
        vector, generation = made or (None, None)
        return await self._store.update(space, id, changes, vector=vector, generation=generation, now=now)


def _record(memory: Memory, made: Made | None, *, linked: bool) -> Record:
    return Record(memory, linked=linked) if made is None else Record(memory, made[0], linked=linked, generation=made[1])


def _checked(memory: Memory, answer: Remembered) -> Remembered | InvalidRequest:
    """The answer to a memory, or the refusal of it."""
    try:
        check_same_text(memory, answer.memory)
    except InvalidRequest as refused:
        return refused
    return answer


def _in_batch(number: int, error: InvalidRequest) -> InvalidRequest:
    return InvalidRequest(f"memory {number} of the batch: {error}")


class _Batch(NamedTuple):
    """Memories that are being stored."""

    memories: Sequence[Memory]
    embedded: bool
    task: asyncio.Task[list[Remembered]]


def _completed(space: str, drafts: Sequence[Draft], position: int) -> list[Memory]:
    """The drafts as memories; a bad one is named by its place in the whole stream."""
    now, memories = datetime.now(UTC), []
    for number, draft in enumerate(drafts, position + 1):
        try:
            memories.append(complete(space, draft, now))
        except InvalidRequest as error:
            raise _in_batch(number, error) from error
    return memories


def _lack_vectors(drafts: Iterable[Draft]) -> bool:
    return any(draft.vector is None for draft in drafts)


def _must_be_embedded(memory: Memory, copy: Memory | None) -> bool:
    """Whether a memory needs a vector: not where a copy has one, unless that takes over its title."""
    return copy is None or (memory.title != "" and copy.title == "")


def _must_wait(memories: Sequence[Memory], under_way: Collection[_Batch]) -> bool:
    """Whether a batch can only be begun when an earlier one has ended."""
    return len(under_way) >= PARALLEL_BATCHES or any(
        one.embedded or _follows(one.memories, memories) for one in under_way
    )


def _follows(before: Sequence[Memory], after: Sequence[Memory]) -> bool:
    """Whether memories can only be stored after these: a thread has an order, and of copies the first one counts."""
    if any(memory.thread is not None for memory in (*before, *after)):
        return True
    said = {(memory.namespace, memory.kind, memory.text) for memory in before}
    ids = {memory.id for memory in before}
    return any(memory.id in ids or (memory.namespace, memory.kind, memory.text) in said for memory in after)


async def _stop(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """End what is under way, and wait for its end: nothing is written behind the back of whoever goes on."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _some(source: Iterator[Draft], batch: int | None) -> list[Draft]:
    """The next drafts: many where vectors came along, few where they must be embedded first, and fewer if they are
    long.
    """
    some: list[Draft] = []
    most, characters = batch or EMBED_BATCH, 0
    for draft in source:
        if not some and batch is None and getattr(draft, "vector", None) is not None:
            most = BATCH
        some.append(draft)
        characters += length_of(getattr(draft, "text", None))
        if len(some) == most or characters >= BATCH_CHARACTERS:
            break
    return some


def length_of(text: object) -> int:
    """The characters of a text; what is no text is refused later."""
    return len(text) if isinstance(text, str) else 0


Progress = Callable[[int], None]
"""Called with how many are done so far."""
