"""Connections on which nothing comes, and those for which there is no room."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import psutil
import pytest

from recollect import AsyncRecollect
from recollect.servers.connections import AGAIN_SECONDS, UNACCEPTED, OnceInAWhile
from recollect.servers.gate.gate import Limits
from tests.servers.http_server import listening, serving

HEAD_SECONDS = 0.2
ASKED = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
async def port(client: AsyncRecollect) -> AsyncIterator[int]:
    """Of a server that does not wait long for headers."""
    async with listening(client, Limits(head_seconds=HEAD_SECONDS)) as server:
        yield server.port


@pytest.mark.parametrize("sent", [b"", b"GET /health", ASKED], ids=["nothing", "half a line", "half the headers"])
async def test_who_does_not_ask_is_not_waited_for(port: int, sent: bytes) -> None:
    """The connection is closed, whether or not something was said on it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    async with asyncio.timeout(30):
        assert await reader.read() == b""
    writer.close()


async def test_the_next_request_on_a_connection_is_not_waited_for_either(port: int) -> None:
    """One was answered; half of another is not enough."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(30):
        writer.write(ASKED + b"\r\n")
        assert b"alive" in await reader.readuntil(b"}")
        writer.write(ASKED)
        assert await reader.read() == b""
    writer.close()


async def test_a_body_may_take_longer_than_headers(port: int) -> None:
    """Once the headers are there, the gate says how long the rest may take."""

    async def slowly() -> AsyncIterator[bytes]:
        yield b'{"text": '
        await asyncio.sleep(3 * HEAD_SECONDS)
        yield b'"The red door"}'

    headers = {"Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
        made = await http.post("/v1/spaces/work/memories", content=slowly(), headers=headers)
    assert made.status_code == 201


@pytest.mark.skipif(sys.platform != "linux", reason="only there another process can be given a limit")
def test_more_connections_than_there_is_room_for(tmp_path: Path) -> None:
    """The log says so once; the server answers as before when some of them are gone."""
    with serving(tmp_path) as served:
        url = httpx.URL(served.url)
        assert served.client().get("/health/ready").status_code == 200
        process = psutil.Process(served.process.pid)
        most = process.num_fds() + 8
        process.rlimit(psutil.RLIMIT_NOFILE, (most, most))
        with ExitStack() as opened:
            for _ in range(40):
                opened.enter_context(socket.create_connection((url.host, url.port or 0)))
            while UNACCEPTED not in served.errors():
                time.sleep(0.05)
        assert served.client().get("/health/live").status_code == 200
        assert served.errors().count(UNACCEPTED) == 1


def test_it_is_said_again_after_a_while() -> None:
    """Once a minute; what else asyncio has to say is let through."""
    now = [0.0]
    once = OnceInAWhile(clock=lambda: now[0])

    def passes(text: str) -> bool:
        return once.filter(logging.LogRecord("asyncio", logging.ERROR, "", 0, text, None, None))

    assert [passes(UNACCEPTED), passes(UNACCEPTED), passes("a task was lost")] == [True, False, True]
    now[0] += AGAIN_SECONDS
    assert passes(UNACCEPTED)
