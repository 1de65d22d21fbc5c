"""Every way to the same memory, each by its own client, under one protocol: what they answer can be compared."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from inspect import isawaitable
from typing import Any, Protocol

import httpx
from mcp import Client

from recollect import AsyncRecollect, AsyncSpace, Recollect, RecollectError, Space
from recollect.servers.documents import json_ready
from tests.servers.cli_runner import Cli
from tests.servers.dashboard_reader import words_of
from tests.servers.mcp_clients import on_stdio, over_http, text_of

WHY = re.compile(r", score \S+ \((.*)\);")
"""The reasons of a hit, in what MCP says to a reader."""
LIKE_THE_OTHERS = {"recipe": "balanced", "min_confidence": 0}
"""What a recall by MCP is told, which has defaults of its own: `careful`, and no noise."""
COUNTED = {"forget": "forgotten", "used": "used"}
"""The verbs that take ids, and what their answers call how many there were."""
LISTENING = re.compile(rb"is served on (http://\S+)")


class Refused(Exception):
    """A door's refusal: the name of the error, and its sentence."""


class Door(Protocol):
    """One space of a store, through one door."""

    async def do(self, verb: str, **said: Any) -> Any:
        """What a verb of the library answers, as JSON. Raises Refused."""


class Page(Protocol):
    """One space of a store as somebody reads it, with the defaults of the door."""

    async def recall(self, query: str, **said: Any) -> str:
        """The answer to a question, as text."""


class Library:
    """`AsyncRecollect`, or `Recollect`, which waits for its answers."""

    def __init__(self, space: AsyncSpace | Space) -> None:
        self._space = space

    async def do(self, verb: str, **said: Any) -> Any:
        try:
            call = getattr(self._space, verb)
            answer = call(said["id"]) if verb in COUNTED else call(**said)
            if isawaitable(answer):
                answer = await answer
        except RecollectError as error:
            raise Refused(type(error).__name__, str(error)) from error
        if verb in COUNTED:
            return {COUNTED[verb]: answer}
        return said if verb == "link" else json_ready(answer)  # which returns nothing


class CommandLine:
    """`recollect VERB`."""

    def __init__(self, cli: Cli, space: str) -> None:
        self._cli, self._space = cli, space

    async def do(self, verb: str, **said: Any) -> Any:
        result = await asyncio.to_thread(self._cli, verb, *self._words(said), "--json")
        if result.exit_code:
            error = json.loads(result.stderr)["error"]
            raise Refused(error["type"], error["message"])
        return json.loads(result.stdout)

    async def recall(self, query: str, **said: Any) -> str:
        result = await asyncio.to_thread(self._cli, "recall", *self._words({"query": query, **said}))
        assert result.exit_code == 0, result.stderr
        return result.stdout

    def _words(self, said: dict[str, Any]) -> list[str]:
        words = [said.pop(name) for name in ("id", "old", "source", "target", "text", "query") if name in said]
        for tag in said.pop("tags", ()):
            words += ["--tag", tag]
        for name, value in said.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return [*words, "--space", self._space]


class Http:
    """`/v1` of `recollect serve`."""

    def __init__(self, http: httpx.AsyncClient, space: str) -> None:
        self._http, self._root = http, f"/v1/spaces/{space}"

    async def do(self, verb: str, **said: Any) -> Any:
        method, path = {
            "remember": ("POST", "/memories"),
            "get": ("GET", "/memories/{id}"),
            "forget": ("DELETE", "/memories/{id}"),
            "used": ("POST", "/used"),
            "recall": ("POST", "/recall"),
            "supersede": ("POST", "/supersede"),
            "link": ("POST", "/links"),
            "neighbors": ("GET", "/neighbors"),
        }[verb]
        inside = {"id": said.pop("id")} if "{id}" in path else {}
        address = self._root + path.format(**inside)
        if verb == "used":
            said = {"ids": [said["id"]]}
        if method == "POST":
            answer = await self._http.post(address, json=said)
        else:
            answer = await self._http.request(method, address, params=said)
        document = answer.json()
        if answer.is_error:
            kind = document["type"].removeprefix("urn:recollect:").title().replace("-", "")
            raise Refused(kind, document["detail"])
        return document


class Mcp:
    """The tools, by the protocol's own client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def do(self, verb: str, **said: Any) -> Any:
        if verb in COUNTED:
            said = {"ids": [said["id"]]}
        elif verb not in ("get", "link"):
            said["full"] = True
        if verb == "recall":
            said = {**LIKE_THE_OTHERS, **said}
        answer = await self._client.call_tool(f"memory_{verb}", said)
        document = answer.structured_content
        if answer.is_error:
            raise Refused(document["error"]["type"], document["error"]["message"])
        return document["neighbors"] if verb == "neighbors" else document

    async def recall(self, query: str, **said: Any) -> str:
        answer = await self._client.call_tool("memory_recall", {"query": query, **LIKE_THE_OTHERS, **said})
        assert not answer.is_error, text_of(answer)
        assert [hit["why"] for hit in answer.structured_content["hits"]] == WHY.findall(text_of(answer))
        return text_of(answer)


class Dashboard:
    """The pages of `recollect serve`."""

    def __init__(self, http: httpx.AsyncClient, space: str) -> None:
        self._http, self._space = http, space

    async def recall(self, query: str, **said: Any) -> str:
        answer = await self._http.get("/", params={"q": query, "space": self._space, **said})
        assert answer.status_code == 200, answer.text
        return words_of(answer.text)


@asynccontextmanager
async def library(cli: Cli, *spaces: str) -> AsyncIterator[list[Door]]:
    async with AsyncRecollect(cli.url, embedder=cli.embedder) as client:
        yield [Library(client.space(space)) for space in spaces]


@asynccontextmanager
async def waiting_library(cli: Cli, *spaces: str) -> AsyncIterator[list[Door]]:
    with Recollect(cli.url, embedder=cli.embedder) as opened:
        yield [Library(opened.space(space)) for space in spaces]


@asynccontextmanager
async def command_line(cli: Cli, *spaces: str) -> AsyncIterator[list[Door]]:
    yield [CommandLine(cli, space) for space in spaces]


@asynccontextmanager
async def http(cli: Cli, *spaces: str) -> AsyncIterator[list[Door]]:
    async with serving(cli) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield [Http(client, space) for space in spaces]


@asynccontextmanager
async def dashboard(cli: Cli, *spaces: str) -> AsyncIterator[list[Page]]:
    async with serving(cli) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield [Dashboard(client, space) for space in spaces]


@asynccontextmanager
async def mcp_on_stdio(cli: Cli, *spaces: str) -> AsyncIterator[list[Door]]:
    async with AsyncExitStack() as stack:
        yield [Mcp(await stack.enter_async_context(on_stdio(cli, "--space", space))) for space in spaces]


@asynccontextmanager
async def mcp_over_http(cli: Cli, *spaces: str) -> AsyncIterator[list[Door]]:
    async with serving(cli) as url, AsyncExitStack() as stack:
        yield [Mcp(await stack.enter_async_context(over_http(f"{url}/mcp?space={space}"))) for space in spaces]


@asynccontextmanager
async def serving(cli: Cli) -> AsyncIterator[str]:
    """The URL of a process of `recollect serve`."""
    words = ("-m", "recollect.servers.cli", "serve", "--port", "0")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stderr=asyncio.subprocess.PIPE, env={**os.environ, **cli.environment}
    )
    try:
        assert process.stderr is not None
        said = await process.stderr.readline()
        listening = LISTENING.search(said)
        assert listening, said
        yield listening[1].decode()
    finally:
        process.terminate()
        await process.communicate()
