"""The query cache: a question asked again within a minute is not embedded again."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from recollect.ports import Embedder

if TYPE_CHECKING:
    from recollect.types import Vector

    Key: TypeAlias = tuple[str, str]
    Flight: TypeAlias = tuple[Key, str]

ENTRIES = 50
SECONDS = 60.0


class QueryCache:
    """The vectors of recent questions, by text and embedder name, least recently used out first.

    Equal questions asked at the same time are embedded once per space. Their vectors are the same, but each space may
    have its own key, and a missing key must not fail the others. Failures are not cached.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        entries: int = ENTRIES,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.embedder = embedder
        self._entries = entries
        self._seconds = seconds
        self._clock = clock
        self._known: OrderedDict[Key, tuple[float, Vector]] = OrderedDict()
        self._flights: dict[Flight, asyncio.Task[Vector]] = {}

    async def embed_query(self, text: str, *, space: str, embedder: Embedder | None = None) -> Vector:
        """The question's vector by this embedder, or by the one of now; read-only. Raises EmbeddingError."""
        embedder = embedder or self.embedder
        key = (text, embedder.name)
        if (vector := self._fresh(key)) is not None:
            return vector
        task = self._flights.get((key, space)) or self._start(key, space, embedder)
        # If one caller gives up (a late lane), the others still get the vector, and it is cached.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel what is running. The caller closes the embedder."""
        tasks = list(self._flights.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _fresh(self, key: Key) -> Vector | None:
        stored, vector = self._known.get(key, (None, None))
        if stored is None:
            return None
        if self._clock() - stored >= self._seconds:
            del self._known[key]
            return None
        self._known.move_to_end(key)
        return vector

    def _start(self, key: Key, space: str, embedder: Embedder) -> asyncio.Task[Vector]:
        task = asyncio.create_task(self._embed(key, space, embedder))
        self._flights[key, space] = task
        task.add_done_callback(lambda done: self._land((key, space), done))
        return task

    async def _embed(self, key: Key, space: str, embedder: Embedder) -> Vector:
        vector: Vector = (await embedder.embed([key[0]], space=space, role="query"))[0]
        vector.setflags(write=False)
        self._known[key] = (self._clock(), vector)
        self._known.move_to_end(key)
        while len(self._known) > self._entries:
            self._known.popitem(last=False)
        return vector

    def _land(self, flight: Flight, task: asyncio.Task[Vector]) -> None:
        del self._flights[flight]
        if not task.cancelled():
            task.exception()  # read, so that asyncio does not log a failure whose caller is gone
