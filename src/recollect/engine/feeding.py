"""Keeps external indexes in step with the store.

The store writes each change to its outbox, in the same transaction. A feeder reads the entries in order, reads the
current memories, applies them to the index, and then deletes the entries. So an index that was down catches up when it
is back, and applying a change twice does no harm.
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
from recollect.engine.transfer import pages
from recollect.engine.upkeep import is_interpreter_shutdown
from recollect.errors import BackendError, BackendUnavailable, RecollectError
from recollect.ports import Change, Entry, ExternalIndex, ExternalVectors, Lag, Store
from recollect.types import Edge, Generation, Leg

BATCH = 500
"""Memories applied to the index at a time."""
LEASE = 30.0
"""Seconds for which one process may feed an index. It renews the lease while it has work, and then releases it."""
POLL_SECONDS = 1.0
"""How often to check for changes by other processes. Changes by this process are applied at once."""
BATCH_PAUSE_SECONDS = 0.2
"""The pause between two batches while this process is writing: a batch of one costs about as much as hundreds."""
OPEN_SECONDS = 1.0
"""How long opening a client waits for an index to answer."""
RETRY_SECONDS = (0.5, 5.0)
"""The first and the longest wait between two tries while the index is down. Each wait doubles."""
LATE_WRITE_SECONDS = 5.0
"""How long after a failed call its write may still reach the index, and overwrite a newer one."""
FEEDING = "feeding"
IDS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """How an index differs from the store for one space."""

    space: str
    missing: tuple[str, ...]
    extra: tuple[str, ...]

    def __str__(self) -> str:
        found = [("missing", self.missing), ("extra", self.extra)]
        return f"space {self.space}: {' and '.join(_listed(what, ids) for what, ids in found if ids)}"


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, but at most this long."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def _listed(what: str, ids: Sequence[str]) -> str:
    more = ", …" if len(ids) > IDS_SHOWN else ""
    return f"{len(ids):,} {what} ({', '.join(ids[:IDS_SHOWN])}{more})"


class Feeder:
    """Applies changes to one index in the background, and retries while it is down."""

    def __init__(self, store: Store, index: ExternalIndex, leg: Leg, presence: Presence | None = None) -> None:
        self.index = index
        self.leg = leg
        self._presence = presence or Presence(index.name)
        self._store = store
        self._holder = uuid4().hex
        self._wanted = asyncio.Event()
        self._closing = asyncio.Event()
        self._delivering = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._generation: Generation | None = None
        self._away = False
        self._held_until = 0.0
        self._unsure: dict[str, set[str]] = {}

    async def open(self) -> None:
        """Start recording changes for the index and feeding it. Raises BackendError if the index cannot be used."""
        await self._store.ledger.feed(self.index.name, self.leg)
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await self._prepare()  # first: without a generation, an index would find nothing
                await self.index.open()
        except TimeoutError:
            self._away = True
        self._task = asyncio.create_task(self._until_closed())

    async def close(self) -> None:
        """Apply what is waiting, and close the index. If it is down, do not wait for it."""
        self._closing.set()
        self._wanted.set()
        if self._task:
            if self._away:
                self._task.cancel()
            await asyncio.wait({self._task})
        await self._release()
        await self.index.close()

    def wake(self) -> None:
        """Feed the index now, because this process has written something."""
        self._wanted.set()

    async def lag(self) -> Lag:
        return await self._store.ledger.lag(self.index.name)

    async def drain(self) -> int:
        """Apply everything that is waiting. Returns how many entries; 0 if another process is feeding the index."""
        async with self._delivering:
            try:
                return await self._deliver_waiting()
            finally:
                await self._release()

    async def rebuild(self, on_progress: Callable[[int], None] | None = None) -> int:
        """Build a new index from the store while the old one keeps answering. Returns its number of memories. Changes
        made during the rebuild are applied to the new index afterwards.
        """
        async with self._delivering, self._exclusive():
            await self._prepare()
            shadow = await self.index.shadow()
            done = 0
            for space in await self._store.spaces():
                async for ids in self._pages(space):
                    await shadow.apply(space, await self._changes(space, ids))
                    if not await self._leased():
                        raise BackendUnavailable(
                            f"another process began to feed {self.index.name} during its rebuild: run it again",
                            backend=self.index.name,
                        )
                    done += len(ids)
                    if on_progress is not None:
                        on_progress(done)
            await self.index.publish(shadow)
        self.wake()
        return done

    async def compare(self) -> list[Difference]:
        """How the index differs from the store, not counting changes that are waiting."""
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

    async def _deliver_waiting(self) -> int:
        await self._prepare()
        told = 0
        if not await self._store.ledger.waiting(self.index.name, limit=1) or not await self._leased():
            return told
        while entries := await self._store.ledger.waiting(self.index.name, limit=BATCH):
            await self._deliver(entries)
            told += len(entries)
            if len(entries) < BATCH:  # newer entries wait for the next time
                break
        return told

    async def _until_closed(self) -> None:
        wait, longest = RETRY_SECONDS
        while True:
            self._wanted.clear()
            closing, told = self._closing.is_set(), 0
            try:
                async with self._delivering:
                    told = await self._deliver_waiting()
                if self._away and not told:
                    await self.index.check()
                await self._redeliver()
                wait, pause, self._away = RETRY_SECONDS[0], POLL_SECONDS, False
                self._presence.found(FEEDING)
            except Exception as error:  # noqa: BLE001  # whatever it was, try again later
                if is_interpreter_shutdown(error):
                    return
                self._note(error, again=self._away)
                pause, wait, self._away = wait, min(2 * wait, longest), True
            if closing:
                return
            if told:
                await _wait(self._closing, BATCH_PAUSE_SECONDS)
            if self._away or not self._wanted.is_set():
                async with self._delivering:  # a rebuild in this process may hold the lease
                    await self._release()
            await _wait(self._closing if self._away else self._wanted, pause)

    def _note(self, error: Exception, *, again: bool) -> None:
        """Log that the index is down when it fails twice in a row. Callers see the store's own failures themselves."""
        if not isinstance(error, RecollectError):
            self._presence.lost(FEEDING, "feeding it failed, and will be retried", error)
        elif again and isinstance(error, BackendError) and error.backend == self.index.name:
            self._presence.lost(FEEDING, str(error))

    async def _redeliver(self) -> None:
        """Once the index answers again, apply again the changes that a late write may have undone."""
        if not self._unsure or self._closing.is_set():
            return
        await asyncio.sleep(LATE_WRITE_SECONDS)
        for space in [*self._unsure]:
            await self._store.ledger.enter(self.index.name, space, sorted(self._unsure[space]))
            del self._unsure[space]  # not before: the store may be down
        await self.drain()

    async def _deliver(self, entries: Sequence[Entry]) -> None:
        """Apply one batch. If the lease was lost meanwhile, this process may have overwritten something newer, so the
        memories go back into the outbox.
        """
        spaces = {
            space: [entry.id for entry in some]
            for space, some in groupby(sorted(entries, key=attrgetter("space")), attrgetter("space"))
        }
        for space, ids in spaces.items():
            try:
                await self._apply(space, ids)
            except RecollectError:
                self._unsure.setdefault(space, set()).update(ids)
                raise
        if await self._leased():
            await self._store.ledger.delivered(self.index.name, entries)
            return
        for space, ids in spaces.items():
            await self._store.ledger.enter(self.index.name, space, ids)
        raise BackendUnavailable(f"another process is feeding {self.index.name}", backend=self.index.name)

    async def _apply(self, space: str, ids: Sequence[str]) -> None:
        """Apply the present state of some memories, for each generation of vectors."""
        if self.leg != "vector":
            await self.index.apply(space, await self._changes(space, ids))
            return
        for one in await self._store.generations.all():
            index = await cast("ExternalVectors", self.index).of(one.generation)
            await index.apply(space, await self._changes(space, ids, one.generation))

    async def _changes(self, space: str, ids: Sequence[str], generation: Generation | None = None) -> list[Change]:
        memories = await self._store.get(space, ids)
        if self.leg == "vector":
            vectors = await self._store.vectors(space, [*memories], generation=generation)
            return [Change(id, memories.get(id), vectors.get(id)) for id in ids]
        links: defaultdict[str, list[Edge]] = defaultdict(list)
        async for edge in self._store.edges(space, [*memories]):
            links[edge.source].append(edge)
        return [Change(id, memories.get(id), edges=tuple(links[id])) for id in ids]

    async def _pages(self, space: str) -> AsyncIterator[list[str]]:
        async for memories in pages(self._store, space):
            yield [memory.id for memory in memories]

    async def _held_ids(self, space: str, ids: Sequence[str]) -> Iterable[str]:
        """The memories that the index should hold: for a vector index, those that have a vector."""
        return await self._store.vectors(space, ids) if self.leg == "vector" else ids

    async def _prepare(self) -> None:
        """Tell a vector index its generation as soon as there is one."""
        known = await self._store.generation()
        if known and known != self._generation:
            await self.index.use(known)
            self._generation = known

    async def _leased(self) -> bool:
        """Whether this feeder holds the lease. It renews the lease at half time. Uses wall-clock time, as the store
        does, because that goes on while the machine sleeps.
        """
        now = time.time()
        if not LEASE / 2 < self._held_until - now <= LEASE:
            held = await self._store.ledger.lease(self.index.name, self._holder, LEASE)
            self._held_until = now + LEASE if held else 0.0
        return self._held_until > now

    async def _release(self) -> None:
        """Let other processes feed the index. If the store is down, the lease expires by itself."""
        if self._held_until:
            self._held_until = 0.0
            with suppress(RecollectError):
                await self._store.ledger.release(self.index.name, self._holder)

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        """Wait until no other process feeds the index, then hold the lease."""
        while not await self._leased():  # noqa: ASYNC110 (what is waited for is another process)
            await asyncio.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            await self._release()
