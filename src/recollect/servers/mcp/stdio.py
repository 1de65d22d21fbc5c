"""`recollect mcp`: one agent on standard input and output, pinned to one space.

Standard output carries the protocol alone: while it is served, whatever a library prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError

from recollect.client import AsyncRecollect
from recollect.errors import NotAllowed
from recollect.servers.empty import empty_note
from recollect.servers.mcp.server import server
from recollect.settings import Settings
from recollect.space import AsyncSpace
from recollect.types import Scope

HANDSHAKE = 1.0
"""Seconds that are left to the handshake before the embedder is loaded: that takes the processor, too."""

Incoming: TypeAlias = SessionMessage | Exception
"""A message, or why a line was none."""


class Resident:
    """The one visitor of a process of its own. The client is opened for its first call, not before: the handshake
    does not wait for a store or a model.
    """

    def __init__(self, settings: Settings, space: str, *, read_only: bool = False) -> None:
        self._settings, self._space, self._read_only = settings, space, read_only
        self._opening = asyncio.Lock()
        self._client: AsyncRecollect | None = None
        self._is_open = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()

    def may(self, scope: Scope) -> bool:
        return scope == "read" or not self._read_only

    def must(self, scope: Scope) -> None:
        if not self.may(scope):
            raise NotAllowed(f"this server was started with --read-only: it does not {scope} in {self._space!r}")

    async def space(self) -> AsyncSpace:
        """A store that cannot be opened is tried again by the next call."""
        async with self._opening:
            client = self._made()
            if not self._is_open:
                self._client = None  # one that cannot be opened is closed for good
                await client.__aenter__()
                self._client, self._is_open = client, True
        return client.space(self._space)

    async def warm_up(self) -> None:
        """Load the embedder, once the handshake is over; the store is opened by the first call."""
        await asyncio.sleep(HANDSHAKE)
        with suppress(Exception):  # whatever it is, the first call says it
            async with self._opening:
                client = self._made()
            await client.warm_up("careful")

    def _made(self) -> AsyncRecollect:
        if self._client is None:
            self._client = AsyncRecollect(settings=self._settings, create=not self._read_only)
        return self._client

    async def empty_note(self) -> str:
        """It was let into one space, and is not told of others."""
        held = await (await self.space()).stats()
        return "" if held.memories else empty_note(self._space, ())


def serve(settings: Settings, space: str, *, read_only: bool = False) -> None:
    """Serve until standard input ends, or standard output is closed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a gentler end would wait for the thread that waits for input
    try:
        asyncio.run(_serve(settings, space, read_only=read_only))
    except* BrokenPipeError:
        pass


async def _serve(settings: Settings, space: str, *, read_only: bool) -> None:
    async with (
        stdio_server() as (incoming, outgoing),
        Resident(settings, space, read_only=read_only) as resident,
        anyio.create_task_group() as tasks,
    ):
        onward, messages = anyio.create_memory_object_stream[Incoming]()
        tasks.start_soon(_sift, incoming, onward, outgoing.send)
        tasks.start_soon(resident.warm_up)
        here = server(lambda _: resident)
        await here.run(messages, outgoing, here.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _sift(
    incoming: AsyncIterable[Incoming],
    onward: MemoryObjectSendStream[Incoming],
    answer: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Hand messages on, and answer what is none: the protocol's package would drop it, and leave its sender waiting."""
    async with onward:
        async for item in incoming:
            await (answer(NO_MESSAGE) if isinstance(item, Exception) else onward.send(item))


NO_MESSAGE = SessionMessage(
    JSONRPCError(
        jsonrpc="2.0",
        id=None,
        error=ErrorData(code=PARSE_ERROR, message="this line is not a JSON-RPC message in UTF-8"),
    )
)
