"""Scores spaces in the background: a space in use once a day, and every space once an hour while a server runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from recollect.engine.quality import batches
from recollect.engine.upkeep import SEEN_SPACES, is_interpreter_shutdown
from recollect.errors import RecollectError
from recollect.ports import Store

_log = logging.getLogger(__name__)

DAY: Final = timedelta(days=1)
HOUR: Final = timedelta(hours=1)


class Scoring:
    """Scores spaces that are due. The store lets one process at a time score a space; `flush` first writes what this
    process has counted. `close` stops between two batches, and the next process continues from there.
    """

    def __init__(self, store: Store, flush: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._flush = flush
        self._checked: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    def on_use(self, space: str) -> None:
        """Score a space that is in use if its last scoring is a day old. Checked once a day."""
        now = time.monotonic()
        if space not in self._checked or now - self._checked[space] > DAY.total_seconds():
            if len(self._checked) >= SEEN_SPACES:
                self._checked.clear()
            self._checked[space] = now
            self._start(self._score_one(space, DAY))

    def keep_up(self, beside: Callable[[], Awaitable[object]]) -> None:
        """Score every space each hour, from now on, and do what there is to do beside that."""
        self._start(self._hourly(beside))

    async def close(self) -> None:
        self._closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        if self._closing.is_set():
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hourly(self, beside: Callable[[], Awaitable[object]]) -> None:
        while not self._closing.is_set():
            with suppress(RecollectError):  # if the store is down, try again in an hour
                for space in await self._store.spaces():
                    await self._score_one(space, HOUR)
                await beside()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), HOUR.total_seconds())

    async def _score_one(self, space: str, every: timedelta) -> None:
        try:
            await self._score_if_due(space, every)
        except RecollectError:  # callers see the same failure in their own calls
            _log.debug("space %s could not be scored", space, exc_info=True)
        except Exception as error:  # noqa: BLE001  # one space must not stop the others
            if not is_interpreter_shutdown(error):
                _log.exception("space %s could not be scored", space)

    async def _score_if_due(self, space: str, every: timedelta) -> None:
        if self._closing.is_set():
            return
        now = datetime.now(UTC)
        after = await self._store.ledger.claim_scoring(space, before=now - every, now=now)
        if after is None:
            return
        await self._flush()
        started = time.monotonic()
        async for batch in batches(self._store, space, now, after or None):
            if batch.cursor is None:
                await self._store.ledger.note_scoring(space, now)
            elif self._closing.is_set():
                await self._store.ledger.note_scoring(space, None, batch.cursor)
                return
            else:  # work at most half of the time, so that recalls are not slowed down
                await asyncio.sleep(time.monotonic() - started)
                started = time.monotonic()
