"""Connections: how much a client may send outside a body, how slowly it may send and read, and how often the log says
that none could be accepted.

The gate sees a request once its headers are complete, and an answer is off its hands once it is buffered. What happens
before and after that is bounded here, where the bytes come in and go out.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from recollect.servers.gate.gate import Limits
from recollect.servers.problems import MEDIA_TYPE, problem

PIECE_BYTES = 8 * 1024
"""What the parser is given at once: the size of a head is known to within so many bytes."""
PIPELINED = 16
"""Requests that may wait behind the one that is being answered."""
LINGER_SECONDS = 1.0
"""How long a client that was refused may take to read that. Closing at once could discard it on its way."""
AGAIN_SECONDS = 60.0
UNACCEPTED = "socket.accept() out of system resource"
"""What asyncio logs for each connection that the process has no file descriptor left for."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which bounds neither the size of headers and trailers, nor how long a client takes to send
    them, nor how long it takes to read its answer.
    """

    def __init__(self, *args: Any, limits: Limits, **more: Any) -> None:
        super().__init__(*args, **more)
        self._limits = limits
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._counted_at = 0.0
        self._untaken = 0
        self._credit = limits.patience
        self._outside_body = 0
        self._progressed = False
        self._header_count = 0
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn types it
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that `pause_writing` tells of every byte that is not taken
        if (connection := transport.get_extra_info("socket")) is not None:  # what the system buffers is not seen
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.buffer)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_awaiting_head()
        self._stop_awaiting_reader()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE_BYTES):
            if self._refused or self.transport.is_closing():
                return
            self._feed(data[start : start + PIECE_BYTES])
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()
        else:
            self._stop_awaiting_head()

    def _feed(self, piece: bytes) -> None:
        """Parse some bytes, and count those that came since the last byte of a body: they belong to a request line, to
        headers or trailers, or to what stands between chunks.
        """
        self._progressed = False
        super().data_received(piece)
        self._outside_body = len(piece) if self._progressed else self._outside_body + len(piece)
        if self.transport.is_closing():
            return
        if self._outside_body > self._limits.head_bytes:
            self._refuse(f"the request line and headers are larger than {self._limits.head_bytes:,} bytes: send less")
        elif self._header_count > self._limits.headers:
            self._refuse(f"the request has more than {self._limits.headers} headers: send fewer")
        elif len(self.pipeline) > PIPELINED:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._progressed = True
        self._header_count = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        if self._header_count <= self._limits.headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._header_count <= self._limits.headers:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._progressed = True
        if self._header_count <= self._limits.headers:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._header_count <= self._limits.headers:
            super().on_message_complete()

    def _refuse(self, detail: str) -> None:
        """Answer 431 unless an answer has begun, and end the connection."""
        self._refused = True
        self._stop_awaiting_head()
        self.pipeline.clear()
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if answering and self.cycle.response_started:
            self.transport.abort()
            return
        self.transport.write(_refusal(detail))
        self.transport.write_eof()
        self.flow.resume_reading()  # what still comes is dropped
        self._head_timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _await_head(self) -> None:
        """From when a client connects, and from the first byte of each further request."""
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._limits.head_seconds, self.transport.close)

    def _stop_awaiting_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def pause_writing(self) -> None:
        """The client does not take its answer as fast as it is written: from now on its time runs."""
        super().pause_writing()
        self._counted_at = self.loop.time()
        self._untaken = self.transport.get_write_buffer_size()
        self._await_reader()

    def resume_writing(self) -> None:
        """The client has taken all of it."""
        if self._read_timer is not None:
            self._count_taken()
        self._stop_awaiting_reader()
        super().resume_writing()

    def _await_reader(self) -> None:
        self._read_timer = self.loop.call_later(self._credit, self._look_at_reader)

    def _look_at_reader(self) -> None:
        """Its time is over, unless it has taken something meanwhile."""
        self._count_taken()
        if self._credit > 0:
            self._await_reader()
        else:
            self.transport.abort()

    def _count_taken(self) -> None:
        """The time that a client has spent, less what the bytes that it took would have needed. What it has still to
        take gives it none: else a long answer that is never read would be held for as long as a slow reader needs.
        """
        now, untaken = self.loop.time(), self.transport.get_write_buffer_size()
        taken = max(self._untaken - untaken, 0)
        spent = now - self._counted_at - taken / self._limits.download_rate
        self._credit = min(self._credit - spent, self._limits.patience)
        self._counted_at, self._untaken = now, untaken

    def _stop_awaiting_reader(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None


def _refusal(detail: str) -> bytes:
    said = problem(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
    head = (
        f"HTTP/1.1 {said.status} {said.title}\r\ncontent-type: {MEDIA_TYPE}\r\n"
        f"content-length: {len(said.body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + said.body


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
