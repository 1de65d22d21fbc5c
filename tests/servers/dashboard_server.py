"""The dashboard on a server of the test's own, with a small roastery's memory in its store."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import uvicorn

from recollect import AsyncRecollect
from recollect.engine.usage import hour_of
from recollect.servers.cli.demo import memory_lines
from recollect.servers.web import application
from recollect.types import Bucket, LegUsage, Usage
from tests.falkordb_server import free_port

T = TypeVar("T")
HOST = "127.0.0.1"


class Server(uvicorn.Server):
    """A server in a thread with an event loop of its own, and the client that it serves."""

    def __init__(self, url: str, **options: Any) -> None:
        self.client = AsyncRecollect(url, **options)
        self.base = f"http://{HOST}:{(port := free_port())}"
        app = application(self.client)
        super().__init__(uvicorn.Config(app, HOST, port, log_level="warning", ws="none", lifespan="off"))
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), daemon=True)

    async def _live(self) -> None:
        try:
            async with self.client:
                await self.serve()
        except BaseException as error:
            if not self._loop.done():
                self._loop.set_exception(error)
            raise

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop.set_result(asyncio.get_running_loop())

    def start(self) -> None:
        """It answers on return."""
        self._thread.start()
        self._loop.result()

    def stop(self) -> None:
        self.should_exit = True
        self._thread.join()

    def do(self, what: Callable[[AsyncRecollect], Awaitable[T]]) -> T:
        """Something with the client, on its own event loop."""

        async def done() -> T:
            return await what(self.client)

        return asyncio.run_coroutine_threadsafe(done(), self._loop.result()).result()


@contextmanager
def serving(url: str, **options: Any) -> Iterator[Server]:
    server = Server(url, **options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


async def fill(client: AsyncRecollect, space: str = "default") -> None:
    """The demo's memories and links, and a week in which they were recalled."""
    here = client.space(space)
    await here.import_lines(memory_lines())
    await here.settle()
    await client._store.ledger.count_usage(space, list(week()))


def week() -> Iterator[Bucket]:
    """A week of office hours, with an afternoon on which links could not be walked."""
    now = hour_of(datetime.now(UTC))
    for ago in range(160, 0, -1):
        start = now - timedelta(hours=ago)
        if 7 <= start.hour <= 19:
            recalls = 4 + (start.hour * 7 + start.day * 3) % 23
            lost = recalls // 2 if 48 <= ago <= 72 and start.hour > 12 else 0
            failed = int(lost > 8)
            vector = LegUsage(recalls * 7, recalls, recalls * (6.0 + start.hour % 5))
            keyword = LegUsage(recalls * 5, recalls, recalls * (2.2 + start.day % 3))
            graph = LegUsage((recalls - lost) * 2, recalls, recalls * (1.1 if not lost else 9.0), failed=lost)
            legs = {"vector": vector, "keyword": keyword, "graph": graph}
            yield Bucket(start, Usage(recalls, lost - failed, failed, legs))
