"""The protocol's own client, over both ways in: a process of `recollect mcp`, and `/mcp` on a real server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from recollect import AsyncRecollect
from recollect.servers.web import application
from tests.servers.cli_runner import Cli


def parameters(cli: Cli, *words: str, **environment: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "recollect.servers.cli", "mcp", *words],
        env={**os.environ, **cli.environment, **environment},
    )


@asynccontextmanager
async def on_stdio(cli: Cli, *words: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of a process of its own."""
    async with Client(parameters(cli, *words), mode=mode) as client:
        yield client


@asynccontextmanager
async def served(client: AsyncRecollect) -> AsyncIterator[str]:
    """The URL of `/mcp` on a server of the test's own, with all of its doors behind its gate."""
    app = application(client)
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="warning"))

    async def serve() -> None:
        async with app.running():  # in the task that ends it, as its scopes demand
            await server.serve()

    serving = asyncio.create_task(serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def over_http(url: str, *, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """A client of `/mcp`; header names are written with underscores here."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        httpx2.AsyncClient(headers=named, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """The document of an answer that is no error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> tuple[str, str]:
    """The type and the sentence of a tool's error, which its text says as well."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    error = result.structured_content["error"]
    assert text_of(result) == f"{error['type']}: {error['message']}"
    return error["type"], error["message"]
