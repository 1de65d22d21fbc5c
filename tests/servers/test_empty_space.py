"""A space that holds nothing says so, and which spaces hold something, by every door."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from recollect import AsyncRecollect
from recollect.servers.empty import MOST, empty_note
from recollect.servers.web import application
from tests.servers.cli_runner import Cli
from tests.servers.dashboard_reader import ADDRESS, ORIGIN, Reader
from tests.servers.mcp_clients import call, on_stdio, over_http, refused, served

NOTE = "space 'wrok' is empty; these hold something: home, work"


@pytest.fixture
async def filled(client: AsyncRecollect) -> AsyncRecollect:
    for space in ("work", "home"):
        await client.space(space).remember("The red door")
    return client


@pytest.fixture
async def http(filled: AsyncRecollect) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application(filled), client=ADDRESS)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as opened:
        yield opened


@pytest.mark.parametrize("words", [("recall", "door"), ("list",), ("stats",), ("score",)], ids=" ".join)
def test_the_command_line_says_so_on_stderr(cli: Cli, words: tuple[str, ...]) -> None:
    """The answer itself is the empty one, also as JSON; a space that holds something gets no note."""
    for space in ("work", "home"):
        cli.remember("The red door", "--space", space)
    for more in ((), ("--json",)):
        result = cli(*words, "--space", "wrok", *more)
        assert result.exit_code == 0
        assert result.stderr == f"{NOTE}\n"
    assert cli("list", "--tag", "none", "--space", "work").stderr == ""


def test_an_id_of_an_empty_space(cli: Cli) -> None:
    """`get` fails as ever, and adds it."""
    cli.remember("The red door", "--space", "work")
    result = cli("get", "x", "--space", "wrok")
    assert result.exit_code == 1
    assert "space 'wrok' holds no memory 'x'; space 'wrok' is empty; these hold something: work" in " ".join(
        result.stderr.split()
    )


def test_a_whole_store_without_memories(cli: Cli) -> None:
    """Then there is nothing to name; and of many spaces the first are named."""
    assert cli("list").stderr == "space 'default' is empty\n"
    assert empty_note("x", [f"s{n:02}" for n in range(MOST + 5)]).endswith("s09 and 5 more")


async def test_http_says_so_in_the_document(http: httpx.AsyncClient) -> None:
    """To a caller who may read them."""
    empty, full = "/v1/spaces/wrok", "/v1/spaces/work"
    assert (await http.post(f"{empty}/recall", json={"query": "door"})).json()["note"] == NOTE
    assert (await http.get(f"{empty}/memories")).json()["note"] == NOTE
    assert (await http.get(f"{empty}/stats")).json()["note"] == NOTE
    assert (await http.get(f"{empty}/memories/x")).json()["detail"].endswith(NOTE)
    assert "note" not in (await http.get(f"{full}/memories", params={"tags": "none"})).json()
    assert "note" not in (await http.get(f"{full}/stats")).json()


async def test_a_token_is_told_of_its_own_spaces_alone(filled: AsyncRecollect, http: httpx.AsyncClient) -> None:
    """Not of those that it may not read."""
    issued = await filled.tokens.create(spaces=["wrok", "home"], scope="read")
    http.headers["Authorization"] = f"Bearer {issued.secret}"
    found = (await http.get("/v1/spaces/wrok/memories")).json()
    assert found["note"] == "space 'wrok' is empty; these hold something: home"


async def test_mcp_says_so_to_model_and_program(filled: AsyncRecollect) -> None:
    """In the text and in the document."""
    async with served(filled) as url, over_http(f"{url}?space=wrok") as mcp:
        for tool, said in (("memory_recall", {"query": "door"}), ("memory_list", {}), ("memory_stats", {})):
            assert (await call(mcp, tool, **said))["note"] == NOTE
        assert (await refused(mcp, "memory_get", id="x"))[1].endswith(NOTE)
    async with served(filled) as url, over_http(f"{url}?space=work") as mcp:
        assert "note" not in await call(mcp, "memory_list", tags=["none"])


async def test_an_agent_on_stdio_is_told_of_no_other_space(cli: Cli) -> None:
    """It was let into one."""
    cli.remember("The red door", "--space", "work")
    async with on_stdio(cli, "--space", "wrok") as mcp:
        assert (await call(mcp, "memory_list"))["note"] == "space 'wrok' is empty"


async def test_the_dashboard_says_so(http: httpx.AsyncClient) -> None:
    """Where it found nothing."""
    said = await Reader(http).read("/", q="door", space="wrok")
    assert "Space wrok is empty. These hold something: home, work." in said
