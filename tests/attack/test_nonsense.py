"""Every option of every door given nonsense: legal JSON that means nothing, and words that no option takes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest
from pydantic import BaseModel

from recollect import AsyncRecollect
from recollect.servers.http import bodies
from recollect.servers.http.bodies import Body, Listing, Walk
from recollect.servers.mcp.tools import TOOLS
from recollect.servers.web import application

pytestmark = pytest.mark.attack

DEEP = 900
NONSENSE = (
    "null", "true", "0", "-1", "0.5", "1e999", "-1e999", "NaN", "-Infinity", "1e308", "1e-320",
    str(2**31), str(2**63), str(-(2**63) - 1), str(2**64), "9" * 400, "-" + "9" * 4000,
    '""', '" "', '"x"', '"\\u0000"', '"\\ud800"', '"\\u202e\\n\\u001b[31m"', f'"{"x" * 5_000}"', '"NaN"', '"9e999d"',
    '"99999-99-99"', '"-1d"', '"0001-01-01"', '"9999-12-31T23:59:59-23:59"', f'"{"9" * 400}d"',
    "[]", "[null]", "[[]]", "[{}]", "[true]", "[1e999]", '["\\u0000"]', '["\\ud800"]', '["x", "x"]', '[["x"]]',
    '[["x", "y", "z"]]', '[["\\u0000", "\\ud800"]]', f"[{'9' * 400}]",
    "{}", '{"": 1}', '{"x": null}', '{"x": NaN}', '{"x": 1, "x": {}}', '{"\\u0000": 1}', '{"\\ud800": "\\ud800"}',
    '{"vector": null}', '{"vector": 1e999}', '{"vector": -1e308, "keyword": 1e308}', '{"vector": [1]}',
    '{"vector": {"weight": {}}}', '{"vector": {"kinds": "fact", "timeout": NaN}}', '{"vector": {"timeout": 1e999}}',
    '{"vector": {"fanout": 1e999}}', '{"keyword": {"words": {"x": []}}}', '{"keyword": {"query": ["\\u0000"]}}',
    '{"method": {}}', '{"method": "rrf", "k": 1e999}', '{"method": "rrf", "k": NaN}', '{"method": "rrf", "k": {}}',
    '{"method": "mmr", "trade_off": NaN}', '{"kind": "mmr", "lambda": []}', f'{{"vector": {"9" * 400}}}',
    "[" * DEEP + "]" * DEEP, '{"x":' * DEEP + "1" + "}" * DEEP, '{"vector":' * DEEP + "{}" + "}" * DEEP,
)  # fmt: skip
"""As JSON text: Python's own writer would refuse some of it."""
SAID_BY_A_LIBRARY = ("Input should", "Traceback", "pydantic", "validation error", "object at 0x", "Error(")
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LEAST: dict[str, str] = {
    "query": '"door"', "text": '"a red door"', "old": '"x"', "ids": '["x"]', "source": '"x"', "target": '"y"',
    "namespace": '"n"', "to": '"other"', "owner": '"other"', "id": '"x"',
}  # fmt: skip
"""What options need that must be given."""
ROUTES: tuple[tuple[str, str, type[Body]], ...] = (
    ("POST", "recall", bodies.Question),
    ("POST", "memories", bodies.NewMemory),
    ("PATCH", "memories/x", bodies.Changes),
    ("POST", "supersede", bodies.Supersession),
    ("POST", "used", bodies.Uses),
    ("POST", "links", bodies.Link),
    ("POST", "grants", bodies.NewGrant),
    ("POST", "grants/received", bodies.Acceptance),
)
LISTS: tuple[tuple[str, type[Body]], ...] = (("memories", Listing), ("neighbors", Walk))


@asynccontextmanager
async def asking(client: AsyncRecollect) -> AsyncIterator[httpx.AsyncClient]:
    await client.space("work").remember("A red door", tags=["door"])
    app = application(client)
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 50000), raise_app_exceptions=False)
    async with app.running(), httpx.AsyncClient(transport=transport, base_url="http://localhost") as opened:
        yield opened


def wrong_bodies(model: type[BaseModel]) -> Iterator[str]:
    """Each option in turn with each piece of nonsense, and what must be there beside it."""
    needed = {name: LEAST[name] for name, field in model.model_fields.items() if field.is_required()}
    for name in model.model_fields:
        for nonsense in NONSENSE:
            yield "{" + ", ".join(f'"{key}": {value}' for key, value in {**needed, name: nonsense}.items()) + "}"
    yield from NONSENSE


def check_answer(answer: httpx.Response, asked: str) -> None:
    """It is no failure of the server, and what it says is ours and short."""
    assert answer.status_code < 500, (asked[:200], answer.text[:500])
    if answer.status_code >= 400:
        check_words(answer.json()["detail"], asked)


def check_words(said: str, asked: str) -> None:
    assert len(said) < 2000, (asked[:200], said[:500])
    assert not any(words in said for words in SAID_BY_A_LIBRARY), (asked[:200], said[:500])
    assert "\x1b" not in said


@pytest.mark.parametrize(("method", "path", "model"), ROUTES, ids=[f"{method} {path}" for method, path, _ in ROUTES])
async def test_bodies(client: AsyncRecollect, method: str, path: str, model: type[Body]) -> None:
    """Whatever an option is given over HTTP, the answer is an answer or a sentence about the mistake."""
    async with asking(client) as here:
        for body in wrong_bodies(model):
            answer = await here.request(method, f"/v1/spaces/work/{path}", content=body.encode(), headers=HEADERS)
            check_answer(answer, body)


async def test_tokens(client: AsyncRecollect) -> None:
    """The same for making a token."""
    async with asking(client) as here:
        for body in wrong_bodies(bodies.NewToken):
            check_answer(await here.post("/v1/tokens", content=body.encode(), headers=HEADERS), body)


async def test_every_depth(client: AsyncRecollect) -> None:
    """The same where reading the body just succeeds, and looking at it takes a few calls more."""
    async with asking(client) as here:
        for depth in range(850, 1000, 3):
            for name in ("tags", "lanes", "metadata", "fusion", "limit"):
                body = f'{{"query": "door", "text": "x", "{name}": {"[" * depth}{"]" * depth}}}'
                for path in ("recall", "memories"):
                    check_answer(await here.post(f"/v1/spaces/work/{path}", content=body, headers=HEADERS), body)
                await call_tool(here, "memory_recall", body)
                deep = '{"x":' * depth + "1" + "}" * depth
                await call_tool(here, "memory_remember", f'{{"text": "x", "metadata": {deep}}}')


@pytest.mark.parametrize(("path", "model"), LISTS, ids=[path for path, _ in LISTS])
async def test_query_strings(client: AsyncRecollect, path: str, model: type[Body]) -> None:
    """The same for what is asked in the address."""
    needed = {"id": "x"} if path == "neighbors" else {}
    async with asking(client) as here:
        for name in model.model_fields:
            for nonsense in NONSENSE:
                value = nonsense.strip('"').encode().decode("unicode_escape").encode("utf-8", "surrogatepass")
                raw = f"{httpx.QueryParams(needed).set(name, '')}".encode() + b"".join(
                    b"%%%02x" % byte for byte in value
                )
                check_answer(await here.get(httpx.URL(f"/v1/spaces/work/{path}", query=raw)), f"{name} {nonsense}")


@pytest.mark.parametrize("tool", TOOLS)
async def test_tools(client: AsyncRecollect, tool: str) -> None:
    """The same for the arguments of a tool: the model that called it reads a sentence."""
    needed = {name: LEAST[name] for name in TOOLS[tool].needs}
    async with asking(client) as here:
        for name in TOOLS[tool].takes:
            for nonsense in NONSENSE:
                said = ", ".join(f'"{key}": {value}' for key, value in {**needed, name: nonsense}.items())
                await call_tool(here, tool, f"{{{said}}}")


async def call_tool(here: httpx.AsyncClient, tool: str, arguments: str) -> None:
    call = f'{{"name": "{tool}", "arguments": {arguments}}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {call}}}'
    answer = await here.post("/mcp", content=body, headers=HEADERS)
    assert answer.status_code < 500, (arguments[:200], answer.text[:500])
    result = answer.json().get("result", {})
    if result.get("isError"):
        said = result["content"][0]["text"]
        check_words(said, arguments)
        assert "bug" not in said, (arguments[:200], said)
