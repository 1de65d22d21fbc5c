"""`/mcp` over streamable HTTP: who reaches which space, and what a server without sessions answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from recollect import AsyncRecollect
from recollect.servers.mcp.tools import TOOLS
from recollect.types import Scope
from tests.servers.mcp_clients import call, over_http, refused, served

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}
ACCEPT = {"accept": "application/json, text/event-stream"}
READ = {name for name, tool in TOOLS.items() if tool.scope == "read"}


GRANTED: dict[str, tuple[Scope, tuple[str, ...]]] = {
    "writer": ("write", ("work",)),
    "reader": ("read", ("work",)),
    "two": ("write", ("work", "home")),
    "three": ("write", ("work", "home", "default")),
    "all": ("admin", ()),
}


@dataclass(frozen=True)
class Served:
    """`/mcp` of a server, and the tokens that were made for it."""

    url: str
    secrets: Mapping[str, str]

    def headers(self, who: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.secrets[who]}"}

    def agent(
        self, who: str, query: str = "", *, mode: str = "auto", **headers: str
    ) -> AbstractAsyncContextManager[Client]:
        return over_http(self.url + query, mode=mode, **self.headers(who), **headers)

    async def where(self, who: str, query: str = "", **headers: str) -> str:
        """The space that a caller's tools are about."""
        async with self.agent(who, query, **headers) as mcp:
            space: str = (await call(mcp, "memory_stats"))["space"]
            return space


@pytest.fixture
async def server(client: AsyncRecollect) -> AsyncIterator[Served]:
    for space in ("work", "home", "default"):
        await client.space(space).remember(f"this is {space}", id=space)
    issued = {
        name: await client.tokens.create(spaces=spaces, scope=scope, name=name)
        for name, (scope, spaces) in GRANTED.items()
    }
    async with served(client) as url:
        yield Served(url, {name: one.secret for name, one in issued.items()})


async def test_the_space_is_the_tokens_or_the_one_that_is_named(server: Served) -> None:
    """The only one of a token; else the one in the URL or in the header; else `default`, if it is allowed."""
    assert await server.where("writer") == "work"
    assert await server.where("three") == "default"
    assert await server.where("all") == "default"
    assert await server.where("two", "?space=home") == "home"
    assert await server.where("two", x_recollect_space="home") == "home"
    assert await server.where("all", "?space=home", x_recollect_space="home") == "home"


async def test_a_space_that_is_wrong_or_not_said_is_refused(server: Served) -> None:
    """The same sentence whether or not the other space is there, by every tool and by the list of tools."""
    for space in ("home", "never-made"):
        async with server.agent("writer", f"?space={space}") as mcp:
            for name, tool in TOOLS.items():
                needed = dict.fromkeys(tool.needs, ["home"] if "ids" in tool.needs else "home")
                verb = "read" if tool.scope == "read" else "write in"
                sentence = f"this token may not {verb} space {space!r}"
                assert await refused(mcp, name, **needed) == ("NotAllowed", sentence)
            with pytest.raises(MCPError, match="may not read space"):
                await mcp.list_tools()
            with pytest.raises(MCPError, match="may not read space"):
                await mcp.read_resource("recollect://memory/home")
    several = "this token is for several spaces: name one of work, home by"
    async with server.agent("two") as mcp:
        assert (await refused(mcp, "memory_stats"))[1].startswith(several)
    async with server.agent("all", "?space=home", x_recollect_space="work") as mcp:
        assert await refused(mcp, "memory_stats") == (
            "InvalidRequest",
            "the URL and the header X-Recollect-Space name two spaces: home, work",
        )
    async with server.agent("all", "?space=%01") as mcp:
        assert await refused(mcp, "memory_stats") == (
            "InvalidRequest",
            "space '\\x01' holds a control character: remove it",
        )


async def test_no_tool_answers_without_a_token_in_force(server: Served, client: AsyncRecollect) -> None:
    """None, a wrong one, one that expired and one that was revoked: no tool is reached, whatever it does."""
    brief = await client.tokens.create(scope="admin", expires=datetime.now(UTC) + timedelta(milliseconds=50))
    ended = await client.tokens.create(scope="admin")
    await client.tokens.revoke(ended.token.id)
    assert brief.token.expires_at is not None
    while datetime.now(UTC) <= brief.token.expires_at:  # noqa: ASYNC110 (the clock sends no event)
        await asyncio.sleep(0.01)
    for secret in (None, "rc_guessed", brief.secret, ended.secret):
        headers = ACCEPT if secret is None else {**ACCEPT, "authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(headers=headers) as http:
            for name in TOOLS:
                request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
                assert (await http.post(server.url, json=request)).status_code in (401, 429)
    assert [(await client.space(name).stats()).memories for name in ("work", "home", "default")] == [1, 1, 1]


async def test_a_reader_is_offered_what_reads(server: Served, client: AsyncRecollect) -> None:
    """Tools that write are not listed for a token that only reads, and refused when they are called all the same."""
    async with server.agent("reader") as mcp:
        assert {tool.name for tool in (await mcp.list_tools()).tools} == READ
        for name in set(TOOLS) - READ:
            needed = dict.fromkeys(TOOLS[name].needs, "work")
            assert await refused(mcp, name, **needed) == (
                "NotAllowed",
                "this token may not write in space 'work'",
            )
    assert (await client.space("work").stats()).memories == 1


async def test_both_eras_of_the_protocol_are_spoken(server: Served) -> None:
    """Clients that shake hands first, and clients that send each request by itself."""
    for mode in ("legacy", "2026-07-28"):
        async with server.agent("all", mode=mode) as mcp:
            assert (await call(mcp, "memory_get", id="default"))["text"] == "this is default"


async def test_every_request_stands_for_itself(server: Served) -> None:
    """No session is opened, so any process of a server can answer; there is nothing to GET and nothing to DELETE."""
    async with httpx.AsyncClient(headers={**server.headers("all"), **ACCEPT}) as http:
        answer = await http.post(server.url, json=INITIALIZE)
        assert answer.json()["result"]["serverInfo"]["name"] == "recollect"
        assert "mcp-session-id" not in answer.headers
        for method in ("GET", "DELETE", "PUT"):
            refusal = await http.request(method, server.url)
            assert (refusal.status_code, refusal.headers["allow"]) == (405, "POST")


async def test_bodies_that_are_no_requests_are_refused(server: Served) -> None:
    """Not JSON, not UTF-8, nested without end, of another type, or not acceptable: a 4xx each, and the server lives."""
    bodies = (b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"null", b"")
    headers = {**ACCEPT, "content-type": "application/json"}
    async with httpx.AsyncClient(headers=server.headers("all")) as http:
        for body in bodies:
            assert (await http.post(server.url, content=body, headers=headers)).status_code == 400
        assert (await http.post(server.url, content=b"{}", headers={"content-type": "text/plain"})).status_code in (
            400,
            406,
        )
    assert await server.where("writer") == "work"
