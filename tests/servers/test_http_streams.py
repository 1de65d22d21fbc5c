"""Whole spaces as streams, both ways, and clients that are slow or vanish in the middle."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from recollect import Recollect, limits
from recollect.servers.http import transfer
from tests.servers.http_server import Served, problem, serving

LINES = 1500
TEXT = "A line that is long enough to fill what a connection buffers. " * 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With a space `full` of some megabytes."""
    folder = tmp_path_factory.mktemp("streams")
    with Recollect(f"sqlite:///{folder / 'memory.db'}", embedder="hashing") as r:
        r.space("full").import_lines(json.dumps({"text": f"{n} {TEXT}", "id": f"{n:05d}"}) for n in range(LINES))
    with serving(folder, "--max-body", "0.1") as served:
        yield served


def test_a_space_goes_out_and_comes_in_again(server: Served) -> None:
    """Export streamed into import, larger than any other body may be: the copy holds the same, links too."""
    source, target = server.client(), server.client()
    source.post("/v1/spaces/full/links", json={"source": "00001", "target": "00002", "relation": "before"})
    with source.stream("GET", "/v1/spaces/full/export") as export:
        assert export.headers["content-type"] == "application/x-ndjson"
        imported = target.post("/v1/spaces/copy/import", content=export.iter_bytes()).json()
    assert (imported["created"], imported["broken"]) == (LINES, [])
    assert imported["links"] > 0
    with source.stream("GET", "/v1/spaces/copy/export") as export:
        lines = [json.loads(line) for line in export.iter_lines()]
    assert [line["id"] for line in lines if "id" in line] == [f"{n:05d}" for n in range(LINES)]
    assert target.post("/v1/spaces/copy/import", content=b'{"text": "one more"}').json()["created"] == 1


def test_broken_lines_are_named_and_the_good_ones_kept(server: Served) -> None:
    """Not JSON, not UTF-8, no text: each by its number; a mark at the beginning and blank lines do no harm."""
    lines = [b'\xef\xbb\xbf{"text": "first"}', b"", b"{", b'{"text": "\xff"}', b'{"colour": 1}', b'{"text": "last"}\r']
    imported = server.client().post("/v1/spaces/broken/import", content=b"\n".join(lines)).json()
    assert (imported["read"], imported["created"]) == (6, 2)
    assert [line["number"] for line in imported["broken"]] == [3, 4, 5]
    assert "a lone surrogate" in imported["broken"][1]["reason"]


def test_an_empty_export_and_an_empty_import(server: Served) -> None:
    """A space that holds nothing is an empty stream."""
    client = server.client()
    assert client.get("/v1/spaces/nothing/export").content == b""
    assert client.post("/v1/spaces/nothing/import", content=b"").json()["read"] == 0


async def test_a_line_without_an_end_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused as soon as it is longer than any line may be."""
    monkeypatch.setattr(limits, "LINE_BYTES", 1000)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100

    with pytest.raises(ValueError, match="line 1 is longer than 1,000 bytes"):
        [line async for line in transfer.lines_of(endless())]


def test_readers_who_vanish_do_no_harm(server: Served) -> None:
    """Many begin an export, read little and leave; the server answers others, and logs nothing."""
    for _ in range(20):
        raw = connect(server, "GET /v1/spaces/full/export")
        raw.sendall(b"\r\n")
        assert b"200 OK" in raw.recv(1000)
        raw.close()
    assert server.client().get("/v1/spaces/full/stats").json()["memories"] == LINES
    assert server.errors() == ""


def test_writers_who_vanish_leave_whole_lines(server: Served) -> None:
    """An import that is cut off keeps what came in whole batches, and can be sent again; a recall of half a body is
    nothing.
    """
    raw = connect(server, "POST /v1/spaces/cut/import")
    raw.sendall(b"Content-Length: 10000000\r\n\r\n")
    raw.sendall(b"".join(json.dumps({"text": f"line {n}"}).encode() + b"\n" for n in range(200)) + b'{"text": "half')
    raw.close()
    half = connect(server, "POST /v1/spaces/cut/recall")
    half.sendall(b'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"query": ')
    half.close()
    client = server.client()
    rest = "".join(json.dumps({"text": f"line {n}"}) + "\n" for n in range(200))
    done = client.post("/v1/spaces/cut/import", content=rest.encode()).json()
    assert done["created"] + done["copies"] == 200
    listed = client.get("/v1/spaces/cut/memories", params={"limit": 1000}).json()["memories"]
    assert sorted(memory["text"] for memory in listed) == sorted(f"line {n}" for n in range(200))
    assert "Traceback" not in server.errors()


def test_slow_clients_keep_nobody_waiting(server: Served) -> None:
    """Dozens hold a request half sent, or an answer half read, while others are served."""
    held = [connect(server, "POST /v1/spaces/slow/import") for _ in range(30)]
    for raw in held:
        raw.sendall(b'Content-Length: 1000000\r\n\r\n{"text": "sl')
    reading = [connect(server, "GET /v1/spaces/full/export") for _ in range(30)]
    for raw in reading:
        raw.sendall(b"\r\n")
    client = server.client()
    for n in range(20):
        assert client.post("/v1/spaces/quick/memories", json={"text": f"quick {n}"}).status_code == 201
        assert client.post("/v1/spaces/quick/recall", json={"query": "quick"}).json()["degraded"] is False
    for raw in (*held, *reading):
        raw.close()


def test_an_export_that_cannot_begin_is_a_problem(server: Served, tmp_path: Path) -> None:
    """A space whose name cannot be is refused as everywhere, not an empty stream."""
    problem(server.client().get("/v1/spaces/%00/export"), 422)


def connect(server: Served, line: str) -> socket.socket:
    """A bare connection on which a request has begun."""
    url = httpx.URL(server.url)
    raw = socket.create_connection((url.host, url.port or 0))
    raw.sendall(f"{line} HTTP/1.1\r\nHost: localhost\r\n".encode())
    return raw
