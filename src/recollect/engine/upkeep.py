"""Work that does not keep a caller waiting: vectors that are still missing, links to the nearest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from recollect.engine.embedding import Embedding
from recollect.engine.remember import EMBED_BATCH
from recollect.errors import EmbeddingMismatch, RecollectError
from recollect.ports import Store
from recollect.types import NEAREST, Memory

_log = logging.getLogger(__name__)

LINK_BATCH = 500
SEEN_SPACES = 10_000
"""Spaces that are remembered as used; callers may name any number of them, whether they exist or not."""
RETRY_SECONDS = (1.0, 15.0)
"""Between two tries while the embedder is down: at first, and at most; each wait is twice the one before."""


class Upkeep:
    """Catches up, per space, in the background, and tries again while the embedder is down; `settle` waits for one
    try, `close` stops it between two batches.
    """

    def __init__(self, store: Store, embedding: Embedding) -> None:
        self._store = store
        self._embedding = embedding
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._working: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._seen: set[str] = set()
        self._behind: set[str] = set()
        self._closing = asyncio.Event()

    def first_use(self, space: str) -> None:
        """The first time a space is used by this client: what an earlier process left undone is taken up."""
        if space not in self._seen:
            if len(self._seen) >= SEEN_SPACES:
                self._seen.clear()
            self._seen.add(space)
            self.catch_up(space)

    def catch_up(self, space: str) -> None:
        """Start catching up; if that is under way, it looks once more before it ends."""
        self._behind.add(space)
        if not self._closing.is_set() and (space not in self._tasks or self._tasks[space].done()):
            task = self._tasks[space] = asyncio.create_task(self._until_done(space))
            task.add_done_callback(lambda done: self._tasks.pop(space) if self._tasks.get(space) is done else None)

    async def settle(self, space: str) -> None:
        """Give every memory of the space its vector and its links, as far as the embedder allows."""
        await self._work_off(space)

    async def close(self) -> None:
        self._closing.set()
        if self._tasks:
            await asyncio.wait([*self._tasks.values()])

    async def _until_done(self, space: str) -> None:
        wait, longest = RETRY_SECONDS
        while space in self._behind and not self._closing.is_set():
            self._behind.discard(space)
            try:
                if await self._work_off(space):
                    continue
            except Exception as error:  # noqa: BLE001  # whatever it was, what is behind catches up later
                if is_interpreter_shutdown(error):
                    return
                if not isinstance(error, RecollectError):  # else whoever asks meanwhile is told by their own call
                    _log.exception("upkeep of space %s failed, and is tried again in %g s", space, wait)
            self._behind.add(space)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), wait)
            wait = min(2 * wait, longest)

    async def _work_off(self, space: str) -> bool:
        """Whether nothing waits for a vector any more; memories that have one are linked in any case."""
        one_at_a_time = self._working.setdefault(space, asyncio.Lock())
        async with one_at_a_time:
            embedded = True
            while embedded and not self._closing.is_set() and not self._embedding.outdated:
                waiting = await self._store.pending(space, limit=EMBED_BATCH)
                if not waiting:
                    break
                embedded = await self._embed(space, waiting)
            await self._unless_closing(self._store.settle(space))  # links are looked for in the index
            while not self._closing.is_set() and await self._link_some(space):
                pass
            return embedded

    async def _unless_closing(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for `work`, or until this closes. What goes wrong with it will show in what comes after."""
        tasks = asyncio.create_task(work), asyncio.create_task(self._closing.wait())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _embed(self, space: str, waiting: Sequence[Memory]) -> bool:
        """False when the embedder is down. One text that it cannot take must not hold up the others: when it works
        for another text, they are tried one by one, and the one at fault is marked `failed`.
        """
        if await self._put(space, waiting):
            return True
        if not await self._embedding.works(space):
            return False
        for memory in waiting:
            if not await self._put(space, [memory]):
                await self._store.fail_vectors(space, [memory.id])
        return True

    async def _put(self, space: str, waiting: Sequence[Memory]) -> bool:
        """Embed some memories; False when the embedder fails. What a store that has another model now does not take is
        left to those who embed with that.
        """
        made = await self._embedding.passages(space, waiting)
        if made is None:
            return False
        pairs = list(zip(waiting, made.vectors, strict=True))
        try:
            await self._store.put_vectors(space, pairs, generation=made.generation)
        except EmbeddingMismatch:
            await self._embedding.current()
        return True

    async def _link_some(self, space: str) -> bool:
        ids = await self._store.unlinked(space, limit=LINK_BATCH)
        found = await self._store.nearest_to(space, ids, limit=NEAREST) if ids else {}
        if found:
            await self._store.link_nearest(space, found)
        return bool(found)


def is_interpreter_shutdown(error: BaseException) -> bool:
    """Whether work in the background failed because Python ends and nobody closed the client: there are no threads for
    it any more, and nobody to tell.
    """
    return isinstance(error, RuntimeError) and "interpreter shutdown" in str(error)
