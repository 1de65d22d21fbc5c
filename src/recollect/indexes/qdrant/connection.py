"""The client of one Qdrant. Calls have a time limit, and errors are translated."""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import httpx
import portalocker
from qdrant_client import AsyncQdrantClient

from recollect.errors import BackendError, ConfigError
from recollect.indexes.qdrant.address import Address
from recollect.indexes.qdrant.failures import BACKEND, FAILURES, in_use, translate

T = TypeVar("T")
Operation: TypeAlias = Callable[[AsyncQdrantClient], Coroutine[Any, Any, T]]

_CONNECTIONS: Final = 64
_LOCAL_WARNINGS: Final = (
    "Local mode is not recommended for collections with more than",
    "Payload indexes have no effect in the local Qdrant",
    "Local mode performs exact",
)
"""How useless warnings of the local mode begin."""


class Connection:
    """Runs operations on a client, which the first of them opens."""

    def __init__(self, address: Address, key: str | None, timeout: float) -> None:
        if key and not (key.isascii() and key.isprintable()):
            raise ConfigError("the API key of Qdrant holds a character that cannot be sent: check it")
        self.address = address
        place = address.place
        self.in_process = isinstance(place, Path)
        self._timeout = timeout
        self._client: _Client = _Local(address, place) if isinstance(place, Path) else _Remote(place, key, timeout)
        self._closed = False

    async def call(self, operation: Operation[T]) -> T:
        """The operation's answer. Cancelling it returns at once."""
        if self._closed:
            raise BackendError(f"{self.address} was closed here: open it again", backend=BACKEND)
        try:
            async with asyncio.timeout(None if self.in_process else self._timeout):
                return await self._client.run(operation)
        except BackendError:
            raise
        except FAILURES as error:
            raise translate(error, self.address, self._timeout) from error

    async def close(self) -> None:
        self._closed = True
        await self._client.close()


class _Client(Protocol):
    async def run(self, operation: Operation[T]) -> T: ...

    async def close(self) -> None: ...


class _Remote:
    def __init__(self, server: str, key: str | None, timeout: float) -> None:
        self._client = AsyncQdrantClient(
            url=server,
            # As a header: `api_key` warns at each start about a server without TLS, even on localhost.
            headers={"api-key": key} if key else {},
            timeout=math.ceil(timeout) + 1,  # whole seconds; `Connection` has its own limit
            verify=server.startswith("https:"),  # loading certificates takes 40 ms
            check_compatibility=False,  # `collections.ensure` checks the version
            limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
        )

    async def run(self, operation: Operation[T]) -> T:
        return await operation(self._client)

    async def close(self) -> None:
        await self._client.close()


class _Local:
    """The local mode blocks while it computes, so it runs in a thread."""

    def __init__(self, address: Address, folder: Path) -> None:
        self._address = address
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, "qdrant-local")
        self._runner = asyncio.Runner()
        self._client: AsyncQdrantClient | None = None

    async def run(self, operation: Operation[T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, operation)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _run(self, operation: Operation[T]) -> T:
        return self._runner.run(operation(self._opened()))

    def _opened(self) -> AsyncQdrantClient:
        if self._client is None:
            for beginning in _LOCAL_WARNINGS:
                warnings.filterwarnings("ignore", beginning, UserWarning)
            if _is_in_use(self._folder):
                raise in_use(self._address)
            self._client = AsyncQdrantClient(path=str(self._folder))
        return self._client

    def _close(self) -> None:
        if self._client is not None:
            self._runner.run(self._client.close())
        self._runner.close()


def _is_in_use(folder: Path) -> bool:
    """Whether another client holds the folder. The client itself checks only after reading everything, and then leaves
    its files open.
    """
    try:
        with (folder / ".lock").open("r+") as file:
            portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
    except FileNotFoundError:
        return False
    except portalocker.LockException:
        return True
    return False
