"""No sentence of pydantic's reaches a user, by whichever door; and help shows flags as flags, with an example."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import typer

from recollect import AsyncRecollect
from recollect.servers.cli.examples import EXAMPLES
from recollect.servers.cli.main import GROUPS, TOKENS, app
from recollect.servers.gate.gate import Limits
from recollect.servers.problems import in_words
from recollect.servers.web import application
from tests.servers.cli_runner import Cli
from tests.servers.dashboard_reader import ADDRESS, ORIGIN
from tests.servers.mcp_clients import over_http, served, text_of

PYDANTICS = re.compile(r"should (be|have)|valid (string|integer|number|boolean|list|dictionary)|unable to parse|Input ")
NAMES = [
    *(function.__name__.strip("_") for group in GROUPS.values() for function in group),
    *(f"token {function.__name__.strip('_')}" for function in TOKENS),
]
BAD: tuple[object, ...] = (None, True, 7, 1.5, -1, "x", "", [], [1], ["x", None], {}, {"a": 1}, 10**30, [[["deep"]]])
"""A value of every type that JSON has: at least one is wrong for every field."""


@pytest.fixture
async def http(client: AsyncRecollect) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application(client, Limits(rate=0)), client=ADDRESS)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as opened:
        yield opened


def command_of(name: str) -> Any:
    found: Any = typer.main.get_command(app)
    for part in name.split():
        found = found.commands[part]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command(name: str) -> None:
    """It ends with an example that the command can read; flags have no type, for they take no value."""
    command = command_of(name)
    assert command.epilog == f"Example: {EXAMPLES[name]}"
    words = shlex.split(EXAMPLES[name])[1 + len(name.split()) :]
    context = command.make_context(name, words)
    assert context.params
    for param in command.get_params(context):
        if getattr(param, "is_flag", False):
            assert param.display_type_rich(context) == "", param.name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("recall", "x", "--limit", "ten"), "--limit must be a whole number, not 'ten'"),
        (("recall", "x", "--limit", "1.5"), "--limit must be a whole number, not '1.5'"),
        (("recall", "x", "--min-score", "high"), "--min-score must be a number, not 'high'"),
        (("list", "--limit", ""), "--limit must be a whole number, not ''"),
        (("serve", "--port", "http"), "--port must be a whole number, not 'http'"),
        (("remember", "x", "--place", "first"), "--place must be a whole number, not 'first'"),
        (("update", "x", "--quality", "good"), "--quality must be a number, not 'good'"),
        (("link", "a", "b", "--strength", "strong"), "--strength must be a number, not 'strong'"),
        (
            ("token", "create", "--all-spaces", "--scope", "all"),
            "--scope: 'all' is not one of 'read', 'write', 'admin'",
        ),
        (("neighbors", "x", "--depth", "all"), "--depth must be a whole number, not 'all'"),
    ],
)
def test_a_wrong_value_on_the_command_line(cli: Cli, words: tuple[str, ...], said: str) -> None:
    """The option, what it must be, and what was given."""
    result = cli(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {said}; see `recollect {words[0]} ")


async def test_wrong_bodies_over_http(http: httpx.AsyncClient) -> None:
    """A value of every type for every field of every body: our words, with the name of the field."""
    document = (await http.get("/openapi.json")).json()
    routes = {"memories": "NewMemory", "recall": "Question", "links": "Link", "grants": "NewGrant"}
    for route, model in routes.items():
        for name in document["components"]["schemas"][model]["properties"]:
            for value in BAD:
                answer = await http.post(f"/v1/spaces/work/{route}", json={name: value})
                assert answer.status_code < 500, (model, name, value)
                assert not PYDANTICS.search(answer.text), answer.text
    for value in BAD:
        answer = await http.post("/v1/spaces/work/recall", json=value)
        assert not PYDANTICS.search(answer.text), answer.text


async def test_wrong_queries_over_http(http: httpx.AsyncClient) -> None:
    """What a query string says is read as numbers and flags, or refused in our words."""
    for name in ("limit", "newest_first", "include_expired", "min_quality", "colour"):
        answer = await http.get("/v1/spaces/work/memories", params={name: "perhaps"})
        assert answer.status_code == 422
        assert name in answer.json()["detail"]
        assert not PYDANTICS.search(answer.text), answer.text


async def test_wrong_arguments_over_mcp(client: AsyncRecollect) -> None:
    """The same for the arguments of every tool."""
    async with served(client) as url, over_http(f"{url}?space=work") as mcp:
        for tool in (await mcp.list_tools()).tools:
            needed = dict.fromkeys(tool.input_schema["required"], "x")
            for name in tool.input_schema["properties"]:
                for value in (True, 7, "x", [1], {"a": 1}):
                    said = text_of(await mcp.call_tool(tool.name, {**needed, name: value}))
                    assert not PYDANTICS.search(said), said


@pytest.mark.parametrize("body", [b"{", b"5", b'{"a": 1}', b'{"jsonrpc": "2.0", "id": 1, "method": 5}', b"\xff"])
async def test_what_is_no_message_over_mcp(client: AsyncRecollect, body: bytes) -> None:
    """One sentence, where the protocol's package would send a page."""
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with served(client) as url, httpx.AsyncClient(headers=headers) as sender:
        answer = await sender.post(url, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("this is not a JSON-RPC message: send")


def test_a_mistake_that_nobody_foresaw() -> None:
    """Even then the sentence is ours."""
    assert in_words({"type": "brand_new", "loc": ("body", "when"), "msg": "Input should be new", "input": 5}) == (
        "when cannot be 5"
    )
