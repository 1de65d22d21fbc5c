"""Calls to a FalkorDB server, with a time limit and translated errors.

The client's own `FalkorDB` class is not used: its constructor blocks the event loop to ask whether the server is a
cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from falkordb.asyncio.graph import AsyncGraph  # type: ignore[import-untyped]  # it ships no types
from redis.asyncio import BlockingConnectionPool, Connection, Redis, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from recollect.indexes.falkordb.address import Address
from recollect.indexes.falkordb.cypher import FENCE, INDEX
from recollect.indexes.falkordb.failures import translate

CONNECTIONS: Final = 32
"""Connections in the pool; further calls wait, within their time limits."""
KEYS_PER_PAGE: Final = 1_000


class NoGraph(Exception):
    """There is no graph of this name."""


class Server:
    """One server. Connections are opened when needed, and replaced when lost."""

    def __init__(self, address: Address, timeout: float) -> None:
        """The driver's own timeouts are off, because they can swallow a cancellation."""
        self._address = address
        self._timeout = timeout
        pool = BlockingConnectionPool(
            connection_class=SSLConnection if address.tls else Connection,
            max_connections=CONNECTIONS,
            timeout=None,
            host=address.host,
            port=address.port,
            username=address.username,
            password=address.password,
            socket_timeout=None,
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
            protocol=2,
        )
        self._client = Redis.from_pool(pool)

    async def close(self) -> None:
        async with self._answering():
            await self._client.aclose()

    async def read(self, graph: str, query: str, **values: object) -> list[list[Any]]:
        """The rows that a query finds. The server has the same time limit. Raises NoGraph."""
        async with self._answering():
            limit = max(1, round(self._timeout * 1000))
            return list((await AsyncGraph(self._client, graph).ro_query(query, values, timeout=limit)).result_set)

    async def write(self, graph: str, query: str, **values: object) -> list[list[Any]]:
        """Change a graph, which is created if missing; the rows that the query returns."""
        async with self._answering():
            return list((await AsyncGraph(self._client, graph).query(query, values)).result_set)

    async def prepare(self, graph: str) -> None:
        """Create a graph's index and fence if they are missing."""
        async with self._answering():
            found = AsyncGraph(self._client, graph)
            try:
                await found.query(INDEX)
            except ResponseError as error:
                if "already indexed" not in str(error):
                    raise
            await found.query(FENCE)

    async def command(self, *words: str | int) -> Any:
        """The answer to one command. Raises NoGraph."""
        async with self._answering():
            return await self._client.execute_command(*words)  # type: ignore[no-untyped-call]  # it has no types

    async def graphs(self, pattern: str) -> AsyncIterator[str]:
        """The names of graphs that match a Redis pattern. `GRAPH.LIST` does not list all of them."""
        cursor = 0
        while True:
            async with self._answering():
                cursor, names = await self._client.scan(cursor, pattern, KEYS_PER_PAGE, "graphdata")
            for name in names:
                yield str(name)
            if not cursor:
                return

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except (RedisError, OSError) as error:
            if isinstance(error, ResponseError) and "empty key" in str(error):
                raise NoGraph from error
            raise translate(error, self._address) from error
