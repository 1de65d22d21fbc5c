"""Bodies that are small to send and large to look at."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import httpx
import psutil
import pytest

from recollect import AsyncRecollect
from recollect.limits import MAX_LIST_ITEMS
from recollect.servers.http import failures
from recollect.servers.http.failures import NAMED
from recollect.servers.web import application
from tests.servers.http_server import Served, problem, serving

pytestmark = pytest.mark.attack

MEMORIES, RECALL = "/v1/spaces/work/memories", "/v1/spaces/work/recall"
MANY = MAX_LIST_ITEMS * 20
MIB = 1024 * 1024
WIDE: dict[str, tuple[str, Any]] = {
    "tags": (MEMORIES, {"text": "a", "tags": [1] * MANY}),
    "the vector": (MEMORIES, {"text": "a", "vector": ["x"] * MANY}),
    "memories": (MEMORIES, [1] * MANY),
    "memories with tags": (MEMORIES, [{"text": "a", "tags": [1] * 100}] * 1000),
    "memories with unknown names": (MEMORIES, [{f"n{n}": 1 for n in range(1000)}] * 100),
    "kinds": (RECALL, {"query": "a", "kinds": [1] * MANY}),
    "namespaces": (RECALL, {"query": "a", "namespaces": [[]] * MANY}),
    "shared": (RECALL, {"query": "a", "shared": [1] * MANY}),
    "pairs": (RECALL, {"query": "a", "shared": [[1] * 100] * 1000}),
    "weights": (RECALL, {"query": "a", "weights": {f"n{n}": "x" for n in range(MANY)}}),
    "fanout": (RECALL, {"query": "a", "fanout": {f"n{n}": "x" for n in range(MANY)}}),
    "lanes": (RECALL, {"query": "a", "lanes": {f"n{n}": "x" for n in range(MANY)}}),
    "unknown names": (RECALL, {"query": "a", **{f"n{n}": 1 for n in range(MANY)}}),
    "spaces of a token": ("/v1/tokens", {"spaces": [1] * MANY}),
}
ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture
async def here(client: AsyncRecollect) -> AsyncIterator[httpx.AsyncClient]:
    app = application(client)
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 50000))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as opened:
        yield opened


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("bodies")) as served:
        yield served


@pytest.mark.parametrize("what", WIDE)
async def test_a_wide_body_is_a_few_mistakes(
    here: httpx.AsyncClient, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many items are wrong, few mistakes are collected, and at most ten are told."""
    collected: list[int] = []
    tell = failures.all_in_words

    def count(mistakes: Sequence[Mapping[str, Any]]) -> str:
        collected.append(len(mistakes))
        return tell(mistakes)

    monkeypatch.setattr(failures, "all_in_words", count)
    path, body = WIDE[what]
    detail = problem(await here.post(path, json=body), 422)["detail"]
    assert collected[0] <= 2 * MAX_LIST_ITEMS
    assert detail.count("; ") <= NAMED
    assert len(detail) < 4000


async def test_how_many_more_mistakes_there_are_is_told(here: httpx.AsyncClient) -> None:
    """Ten are named, and the rest is a number."""
    body = {"query": "a", **{f"n{n}": 1 for n in range(30)}}
    detail = problem(await here.post(RECALL, json=body), 422)["detail"]
    assert detail.endswith("unknown name 'n9'; and 20 more")


async def test_a_long_list_of_right_items_is_refused_as_a_whole(here: httpx.AsyncClient) -> None:
    """It says how long it is, and how long it may be."""
    body = {"query": "a", "tags": ["b"] * (MAX_LIST_ITEMS + 1)}
    detail = problem(await here.post(RECALL, json=body), 422)["detail"]
    assert detail == "tags has 1001 items, more than the 1000 allowed"


def test_large_bodies_take_little_memory(server: Served) -> None:
    """8 MiB of wrong tags, of unknown names and of values for MCP: the server is not much larger after them."""
    process = psutil.Process(server.process.pid)
    client = server.client()
    problem(client.post(RECALL, json={}), 422)
    before = process.memory_info().rss
    ones = b"1," * (4 * MIB - 1000) + b"1"
    initialize = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"clientInfo": {"icons": ['
    for path, body in (
        (MEMORIES, b'{"text": "a", "tags": [' + ones + b"]}"),
        (MEMORIES, b"[" + ones + b"]"),
        (RECALL, b'{"query": "a", ' + b",".join(b'"%d":1' % n for n in range(600_000)) + b"}"),
        ("/mcp", initialize + ones + b"]}}}"),
    ):
        answer = client.post(path, content=body, headers=HEADERS)
        assert answer.status_code == 422
        assert len(answer.content) < 2000
    assert process.memory_info().rss - before < 400 * MIB


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_recall", {"query": "a", "tags": [1] * MANY}),
        ("memory_recall", {"query": "a", "kinds": ["a"] * MANY}),
        ("memory_search", {"query": "a", "weights": {f"n{n}": "x" for n in range(MANY)}}),
        ("memory_remember", {"text": "a", "tags": ["a"] * MANY}),
        ("memory_remember", {"text": "a", **{f"n{n}": 1 for n in range(MANY)}}),
        ("memory_forget", {"ids": ["a"] * MANY}),
        ("memory_update", {"id": "a", "clear": ["x"] * MANY}),
    ],
)
def test_wide_arguments_of_a_tool_are_refused(server: Served, tool: str, arguments: dict[str, Any]) -> None:
    """In one sentence for the model."""
    message = {**ASKED, "params": {"name": tool, "arguments": arguments}}
    answer = server.client().post("/mcp", content=json.dumps(message), headers=HEADERS)
    result = answer.json()["result"]
    assert result["isError"]
    assert "InvalidRequest" in result["content"][0]["text"]
    assert len(answer.content) < 2000
