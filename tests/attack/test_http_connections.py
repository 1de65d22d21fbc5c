"""A client that sends headers without end, drips its body, or never reads its answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from itertools import chain, count, repeat

import pytest

from recollect import AsyncRecollect, AsyncSpace
from recollect.servers.connections import PIECE_BYTES, PIPELINED
from recollect.servers.gate.gate import Limits
from tests.servers.http_server import SMALL, Listening, listening

pytestmark = pytest.mark.attack

HEAD_BYTES = 4096
HEADERS = 20
BEGUN = b"POST /v1/spaces/work/recall HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = BEGUN + b"Transfer-Encoding: chunked\r\n\r\n"
EXPORT = b"GET /v1/spaces/work/export HTTP/1.1\r\nHost: localhost\r\n\r\n"
ENDLESS = {
    "a path": (b"GET /", repeat(b"a" * 100)),
    "a query": (b"GET /?q=", repeat(b"a" * 100)),
    "a header's name": (BEGUN, repeat(b"x" * 100)),
    "a header's value": (BEGUN + b"X: ", repeat(b"x" * 100)),
    "few long headers": (BEGUN, (b"X-%d: %s\r\n" % (n, b"x" * 1000) for n in count())),
    "many short headers": (BEGUN, (b"a%d:\r\n" % n for n in count())),
    "blank lines": (b"\r\n", repeat(b"\r\n" * 100)),
    "a chunk's extension": (CHUNKED + b"1;a=", repeat(b"x" * 100)),
    "a trailer": (CHUNKED + b"0\r\nX: ", repeat(b"x" * 100)),
    "many trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", (b"a%d:\r\n" % n for n in count())),
}


@pytest.fixture
async def server(client: AsyncRecollect) -> AsyncIterator[Listening]:
    """It takes small heads, and has next to no patience."""
    limits = Limits(
        head_bytes=HEAD_BYTES, headers=HEADERS, head_seconds=0.3, patience=0.3, download_rate=1000, buffer=SMALL
    )
    async with asyncio.timeout(60), listening(client, limits) as server:
        yield server


async def all_let_go(server: Listening) -> None:
    """Wait until the server holds no connection."""
    while server.connections:  # noqa: ASYNC110 - the server tells nobody
        await asyncio.sleep(0.01)


async def remember_much(work: AsyncSpace) -> None:
    """More than the sockets of a connection buffer."""
    await work.import_lines(json.dumps({"text": f"{n} " + "word " * 200}) for n in range(400))


@pytest.mark.parametrize("what", ENDLESS)
async def test_nothing_outside_a_body_goes_on_for_ever(server: Listening, what: str) -> None:
    """431 after the bytes that a head may have and one more piece, with the rest of it still to come."""
    begin, rest = ENDLESS[what]
    sent = first_bytes(chain([begin], rest), HEAD_BYTES + 2 * PIECE_BYTES)
    async with server.connect(sent) as (reader, _):
        answer = await reader.read()
        assert b" 431 " in answer.splitlines()[0]
        assert b'"urn:recollect:' in answer
    await all_let_go(server)


def first_bytes(pieces: Iterator[bytes], size: int) -> bytes:
    joined = bytearray()
    while len(joined) < size:
        joined += next(pieces)
    return bytes(joined)


async def test_headers_have_a_number(server: Listening) -> None:
    """As many as are allowed, and one more, in few bytes."""
    for number, status in ((HEADERS - 2, b" 200 "), (HEADERS, b" 431 ")):
        named = b"".join(b"a%d: b\r\n" % n for n in range(number))
        asked = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + named + b"\r\n"
        async with server.connect(asked) as (reader, _):
            assert status in await reader.readline()


@pytest.mark.parametrize(
    "begin",
    [BEGUN + b"Content-Length: 9999\r\n\r\n", CHUNKED, BEGUN.replace(b"recall", b"import") + CHUNKED[len(BEGUN) :]],
)
async def test_a_body_that_drips_is_not_waited_for(server: Listening, begin: bytes) -> None:
    """A byte now and then keeps nothing open: 408, also for an import, which may have any length."""
    drop = b"1\r\n \r\n" if b"chunked" in begin else b" "
    async with server.connect(begin) as (reader, writer):
        answer = b""
        while not answer:
            writer.write(drop)
            try:
                async with asyncio.timeout(0.02):
                    answer = await reader.readline()
            except TimeoutError:
                continue
        assert b" 408 " in answer
    await all_let_go(server)


async def test_a_body_that_nobody_wants_does_not_drip_either(server: Listening) -> None:
    """The request was answered before its body came, which then does not come to its end."""
    asked = b"POST /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n"
    async with server.connect(asked) as (reader, writer):
        assert b" 405 " in await reader.readline()
        while server.connections:
            writer.write(b"x")
            await asyncio.sleep(0.01)


async def test_dozens_who_drip_hold_nothing(server: Listening, client: AsyncRecollect) -> None:
    """Headers, bodies and answers that are not read: after a while all of these connections are free again."""
    await remember_much(client.space("work"))
    async with AsyncExitStack() as opened:
        asked = (BEGUN, CHUNKED, EXPORT) * 13
        held = [await opened.enter_async_context(server.connect(one)) for one in asked]
        for reader, _ in held:
            await reader.read(1)  # an answer's beginning, or an end without one
        await all_let_go(server)
        assert not server.connections


@pytest.mark.parametrize("path", ["/v1/spaces/work/export", "/v1/spaces/work/memories?limit=400"])
async def test_who_does_not_read_is_not_waited_for(server: Listening, work: AsyncSpace, path: str) -> None:
    """An answer as a stream or in one piece: the connection is cut, with the answer half sent."""
    await remember_much(work)
    for closing in (b"", b"Connection: close\r\n"):
        asked = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode() + closing + b"\r\n"
        async with server.connect(asked) as (reader, _):
            await reader.readexactly(1)
            await all_let_go(server)
            assert not server.connections


async def test_who_reads_fast_enough_may_take_any_time(client: AsyncRecollect, work: AsyncSpace) -> None:
    """An export goes on beyond the patience for one that is not read."""
    await remember_much(work)
    loop = asyncio.get_running_loop()
    limits = Limits(patience=0.2, download_rate=1, buffer=SMALL)
    async with asyncio.timeout(60), listening(client, limits) as server, server.connect(EXPORT) as (reader, _):
        began = loop.time()
        while loop.time() - began < 0.5:
            assert await reader.readexactly(1000)
            await asyncio.sleep(0.01)
        assert (await reader.read()).endswith(b"\r\n0\r\n\r\n")


async def test_pipelined_requests_have_a_number(server: Listening) -> None:
    """More of them behind one that is under way end the connection."""
    async with server.connect(CHUNKED + b"0\r\n\r\n") as (reader, writer):
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n" * (PIPELINED + 50))
        answers = 0
        try:
            while line := await reader.readline():
                answers += line.startswith(b"HTTP/1.1")
        except ConnectionResetError:
            pass
    assert answers < PIPELINED
    await all_let_go(server)
