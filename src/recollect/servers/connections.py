"""Connections: what is not asked in time is closed, and what cannot be accepted is said once in a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEADER_SECONDS = 10.0
"""What a client has for the headers of a request: from when it connects, and from the first byte of each one more."""
AGAIN_SECONDS = 60.0
UNACCEPTED = "socket.accept() out of system resource"
"""What asyncio logs for each connection that the process has no file descriptor left for."""


class Punctual(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # whichever parser is installed
    """uvicorn's protocol, which bounds how long a connection is idle between requests, but not before the first one
    nor within headers: whoever opened connections and said nothing would have all of them.
    """

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_headers()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class OnceInAWhile(logging.Filter):
    """Lets one entry a minute through about connections that could not be accepted, and every other entry."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        if UNACCEPTED not in record.getMessage():
            return True
        if self._clock() - self._said_at < AGAIN_SECONDS:
            return False
        self._said_at = self._clock()
        return True
