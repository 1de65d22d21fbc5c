"""External indexes kept in step with the store, which is the truth.

The store notes each change in its outbox, in the transaction of the change itself. A feeder takes the entries in their
order, reads what became of the memories, and tells the index; only then are the entries taken out. So an index that was
away is told of everything when it is back, and telling it twice does no harm.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import cast
from uuid import uuid4

from recollect.calls.presence import Presence
from recollect.engine.upkeep import interpreter_ends
from recollect.errors import BackendError, BackendUnavailable, RecollectError
from recollect.ports import Change, Entry, ExternalIndex, ExternalVectors, Lag, Store
from recollect.types import Edge, Filter, Generation, Leg

BATCH = 500
"""Memories that are told at once."""
LEASE = 30.0
"""Seconds for which a feeder has an index to itself, prolonged in time, and given back when nothing more is written."""
LOOK_SECONDS = 1.0
"""Between two looks for what other processes have written. What this one writes is told at once."""
GATHER_SECONDS = 0.2
"""Between two batches while this process goes on writing: a batch costs its writers much the same for one memory as for
hundreds.
"""
OPEN_SECONDS = 1.0
"""So long a client that opens waits for an index to answer; one that does not may come back."""
RETRY_SECONDS = (0.5, 5.0)
"""Between two tries while the index is away: at first, and at most; each wait is twice the one before."""
DOUBT_SECONDS = 5.0
"""So long after a call that failed what it said may still be on its way to the index, and overtaken by something newer.
"""
FEEDING = "feeding"
NAMED = 3
"""Ids that a difference names."""
EVERYTHING = Filter(include_superseded=True, include_expired=True)


@dataclass(frozen=True, slots=True)
class Difference:
    """In what an index differs from the store for one space."""

    space: str
    missing: tuple[str, ...]
    extra: tuple[str, ...]

    def __str__(self) -> str:
        found = [("missing", self.missing), ("too many", self.extra)]
        return f"space {self.space}: {' and '.join(_named(what, ids) for what, ids in found if ids)}"


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Until it happens, or so many seconds are over."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def _named(what: str, ids: Sequence[str]) -> str:
    more = ", …" if len(ids) > NAMED else ""
    return f"{len(ids):,} {what} ({', '.join(ids[:NAMED])}{more})"


class Feeder:
    """Tells one index what has changed, in the background, and tries again while it is away."""

    def __init__(self, store: Store, index: ExternalIndex, leg: Leg, presence: Presence | None = None) -> None:
        self.index = index
        self.leg = leg
        self._presence = presence or Presence(index.name)
        self._store = store
        self._holder = uuid4().hex
        self._wanted = asyncio.Event()
        self._closing = asyncio.Event()
        self._told = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._generation: Generation | None = None
        self._away = False
        self._held_until = 0.0
        self._doubtful: dict[str, set[str]] = {}

    async def open(self) -> None:
        """Have changes noted for the index, and begin to tell it. Raises BackendError for one that is there and cannot
        be used as it is.
        """
        await self._store.ledger.feed(self.index.name, self.leg)
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await self._prepare()  # first: an index that knows no generation would say that it found nothing
                await self.index.open()
        except TimeoutError:
            self._away = True
        self._task = asyncio.create_task(self._until_closed())

    async def close(self) -> None:
        """Tell what can still be told, and let go of the index. One that is away is not waited for."""
        self._closing.set()
        self._wanted.set()
        if self._task:
            if self._away:
                self._task.cancel()
            await asyncio.wait({self._task})
        await self._release()
        await self.index.close()

    def wake(self) -> None:
        """Something was written."""
        self._wanted.set()

    async def lag(self) -> Lag:
        return await self._store.ledger.lag(self.index.name)

    async def drain(self) -> int:
        """Tell the index all that waits now; how much that was. Nothing where another process is doing it."""
        async with self._told:
            try:
                return await self._tell_waiting()
            finally:
                await self._release()

    async def rebuild(self, on_progress: Callable[[int], None] | None = None) -> int:
        """Make the index anew from the store, beside the one that goes on answering; how many memories it has then.
        What changes meanwhile waits, and is told to the new one.
        """
        async with self._told, self._alone():
            await self._prepare()
            shadow = await self.index.shadow()
            done = 0
            for space in await self._store.spaces():
                async for ids in self._pages(space):
                    await shadow.apply(space, await self._changes(space, ids))
                    if not await self._leased():
                        raise BackendUnavailable(
                            f"Another process began to feed {self.index.name} during its rebuild: run it again.",
                            backend=self.index.name,
                        )
                    done += len(ids)
                    if on_progress is not None:
                        on_progress(done)
            await self.index.publish(shadow)
        self.wake()
        return done

    async def compare(self) -> list[Difference]:
        """In what the index differs from the store, leaving out what it is still to be told."""
        await self._prepare()
        names = sorted({*await self._store.spaces(), *await self.index.spaces()})
        found = [await self._difference(space) for space in names]
        return [difference for difference in found if difference.missing or difference.extra]

    async def _difference(self, space: str) -> Difference:
        held = {id async for id in self.index.ids(space)}
        wanted = {id async for ids in self._pages(space) for id in await self._held_ids(space, ids)}
        waiting = {entry.id for entry in await self._all_waiting() if entry.space == space}
        missing, extra = wanted - held - waiting, held - wanted - waiting
        return Difference(space, tuple(sorted(missing)), tuple(sorted(extra)))

    async def _all_waiting(self) -> Sequence[Entry]:
        return await self._store.ledger.waiting(self.index.name, limit=(await self.lag()).waiting)

    async def _tell_waiting(self) -> int:
        await self._prepare()
        told = 0
        if not await self._store.ledger.waiting(self.index.name, limit=1) or not await self._leased():
            return told
        while entries := await self._store.ledger.waiting(self.index.name, limit=BATCH):
            await self._tell(entries)
            told += len(entries)
            if len(entries) < BATCH:  # what writers add meanwhile is left for the next time
                break
        return told

    async def _until_closed(self) -> None:
        wait, longest = RETRY_SECONDS
        while True:
            self._wanted.clear()
            closing, told = self._closing.is_set(), 0
            try:
                async with self._told:
                    told = await self._tell_waiting()
                if self._away and not told:
                    await self.index.check()
                await self._look_again()
                wait, pause, self._away = RETRY_SECONDS[0], LOOK_SECONDS, False
                self._presence.found(FEEDING)
            except Exception as error:  # noqa: BLE001  # whatever it was, what waits is told later
                if interpreter_ends(error):
                    return
                self._note(error, again=self._away)
                pause, wait, self._away = wait, min(2 * wait, longest), True
            if closing:
                return
            if told:
                await _wait(self._closing, GATHER_SECONDS)
            if self._away or not self._wanted.is_set():
                async with self._told:  # not while a rebuild of this process needs it
                    await self._release()
            await _wait(self._closing if self._away else self._wanted, pause)

    def _note(self, error: Exception, *, again: bool) -> None:
        """Log that the index is away when it fails a second time in a row. The store's own failures are told to those
        who ask it.
        """
        if not isinstance(error, RecollectError):
            self._presence.lost(FEEDING, "feeding it failed, and is tried again", error)
        elif again and isinstance(error, BackendError) and error.backend == self.index.name:
            self._presence.lost(FEEDING, str(error))

    async def _look_again(self) -> None:
        """Once the index answers again, tell it once more what it may have been told too late."""
        if not self._doubtful or self._closing.is_set():
            return
        await asyncio.sleep(DOUBT_SECONDS)
        for space in [*self._doubtful]:
            await self._store.ledger.enter(self.index.name, space, sorted(self._doubtful[space]))
            del self._doubtful[space]  # not before: the store may be away now
        await self.drain()

    async def _tell(self, entries: Sequence[Entry]) -> None:
        """One batch. Whoever was held up so long that another took its place may have told something old after
        something new: then these memories are looked at again.
        """
        spaces = {
            space: [entry.id for entry in some]
            for space, some in groupby(sorted(entries, key=attrgetter("space")), attrgetter("space"))
        }
        for space, ids in spaces.items():
            try:
                await self._apply(space, ids)
            except RecollectError:
                self._doubtful.setdefault(space, set()).update(ids)
                raise
        if await self._leased():
            await self._store.ledger.delivered(self.index.name, entries)
            return
        for space, ids in spaces.items():
            await self._store.ledger.enter(self.index.name, space, ids)
        raise BackendUnavailable(f"Another process feeds {self.index.name} now.", backend=self.index.name)

    async def _apply(self, space: str, ids: Sequence[str]) -> None:
        """Tell the index, and where vectors of several generations are kept, each of them."""
        if self.leg != "vector":
            await self.index.apply(space, await self._changes(space, ids))
            return
        for one in await self._store.generations.all():
            index = await cast("ExternalVectors", self.index).of(one.generation)
            await index.apply(space, await self._changes(space, ids, one.generation))

    async def _changes(self, space: str, ids: Sequence[str], generation: Generation | None = None) -> list[Change]:
        """The present state of some memories."""
        memories = await self._store.get(space, ids)
        if self.leg == "vector":
            vectors = await self._store.vectors(space, [*memories], generation=generation)
            return [Change(id, memories.get(id), vectors.get(id)) for id in ids]
        links: defaultdict[str, list[Edge]] = defaultdict(list)
        async for edge in self._store.edges(space, [*memories]):
            links[edge.source].append(edge)
        return [Change(id, memories.get(id), edges=tuple(links[id])) for id in ids]

    async def _pages(self, space: str) -> AsyncIterator[list[str]]:
        after: str | None = None
        while True:
            page = await self._store.list(space, EVERYTHING, limit=BATCH, after=after)
            if page.memories:
                yield [memory.id for memory in page.memories]
            if page.cursor is None:
                return
            after = page.cursor

    async def _held_ids(self, space: str, ids: Sequence[str]) -> Iterable[str]:
        """Those that an index of this leg holds: a vector index only what has a vector."""
        return await self._store.vectors(space, ids) if self.leg == "vector" else ids

    async def _prepare(self) -> None:
        """Let a vector index know the generation, as soon as there is one."""
        known = await self._store.generation()
        if known and known != self._generation:
            await self.index.use(known)
            self._generation = known

    async def _leased(self) -> bool:
        """Whether this feeder has the index to itself. The store is asked again when half of the time is over. By the
        clock on the wall, as the store counts: it goes on while the machine sleeps.
        """
        now = time.time()
        if not LEASE / 2 < self._held_until - now <= LEASE:
            held = await self._store.ledger.lease(self.index.name, self._holder, LEASE)
            self._held_until = now + LEASE if held else 0.0
        return self._held_until > now

    async def _release(self) -> None:
        """Let other processes feed the index. A store that is away lets them when the time is over."""
        if self._held_until:
            self._held_until = 0.0
            with suppress(RecollectError):
                await self._store.ledger.release(self.index.name, self._holder)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Wait until no other process feeds the index, and keep others from it."""
        while not await self._leased():  # noqa: ASYNC110 (what is waited for is another process)
            await asyncio.sleep(LOOK_SECONDS)
        try:
            yield
        finally:
            await self._release()
