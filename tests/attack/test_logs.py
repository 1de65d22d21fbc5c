"""Requests that try to write lines of their own into the log."""

from __future__ import annotations

import io
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import httpx
import pytest

from recollect import AsyncRecollect
from recollect.errors import BackendError
from recollect.servers.logs import LineFormatter
from tests.servers.http_server import listening, serving

pytestmark = pytest.mark.attack

FORGED = "2026-05-03 10:00:00,000 INFO recollect.gate: all is well"
ODD = "%0A%0D%1B%5B2J%E2%80%A8%C2%85" + FORGED.replace(" ", "%20")
STEERING = "\r\x1b\x85\u2028"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What a server would write to standard error."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    left = [one for one in root.handlers if type(one) is logging.StreamHandler]  # by servers in tests before this one
    for one in left:
        root.removeHandler(one)
    root.addHandler(handler)
    yield written
    root.removeHandler(handler)
    for one in left:
        root.addHandler(one)


@pytest.mark.parametrize(
    "error",
    [BackendError(f"no space\n{FORGED}\x1b[2J", backend="sqlite"), ZeroDivisionError(f"\n{FORGED}\r{FORGED}\x1b[2J")],
    ids=["an engine's", "a bug's"],
)
async def test_no_request_forges_a_line(
    client: AsyncRecollect, monkeypatch: pytest.MonkeyPatch, log: io.StringIO, error: Exception
) -> None:
    """Neither by its path nor by what an error quotes of it: what was sent is in the log, written out."""

    async def broken(*_: object, **__: object) -> NoReturn:
        raise error

    monkeypatch.setattr("recollect.space.AsyncSpace.get", broken)
    asked = f"GET /v1/spaces/work/memories/{ODD} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    async with listening(client) as server, server.connect(asked.encode()) as (reader, _):
        assert b" 500 " in await reader.read()
    written = log.getvalue()
    assert "\\n\\r\\x1b[2J\\u2028\\x85" + FORGED in written
    assert not [line for line in written.split("\n") if line.startswith("2026-05-03")]
    assert not any(sign in written for sign in STEERING)


def test_the_audit_is_a_line_for_each_call(tmp_path: Path) -> None:
    """Of a real server, by a bare socket: everything on standard error is JSON, or begins a line of its own."""
    with serving(tmp_path, tokens=True) as served:
        url = httpx.URL(served.url)
        _, reading = served.token("mine", scope="read")
        for secret in ("rc_wrong", reading):
            head = f"Host: localhost\r\nAuthorization: Bearer {secret}\r\nConnection: close\r\n\r\n"
            with socket.create_connection((url.host, url.port or 0)) as raw:
                raw.sendall(f"GET /v1/spaces/{ODD}/stats HTTP/1.1\r\n{head}".encode())
                assert raw.recv(100).split()[1] in (b"401", b"403")
        served.stop()
        written = served.errors()
    lines = [json.loads(line) for line in written.strip().split("\n")]
    assert [line["event"] for line in lines] == ["refused", "refused"]
    assert not any(sign in written for sign in STEERING)
