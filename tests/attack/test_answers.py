"""Questions that are short to ask and would be long to answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from recollect import AsyncRecollect, AsyncSpace, InvalidRequest, Recollect
from recollect.engine import finding, sizes
from recollect.limits import ANSWER_BYTES, TEXT_BYTES
from recollect.ranking import diversity
from tests.servers.cli_runner import Cli
from tests.servers.http_server import listening

pytestmark = pytest.mark.attack

TURNS = 60
TURN_BYTES = 1000
ROOM = 20_500
SAID = "an answer holds at most 20,500 bytes of text"
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(autouse=True)
def _small_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sizes, finding):
        monkeypatch.setattr(module, "ANSWER_BYTES", ROOM)


@pytest.fixture
async def talk(work: AsyncSpace) -> AsyncSpace:
    """A space with a long conversation, in which every tenth turn is about doors."""
    turns = [f"{'door' if n % 10 == 5 else 'other'} {n:02d} ".ljust(TURN_BYTES, ".") for n in range(TURNS)]
    await work.import_lines(json.dumps({"text": text, "thread": "t", "id": f"{n:02d}"}) for n, text in enumerate(turns))
    return work


@pytest.fixture
async def here(client: AsyncRecollect) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        listening(client) as server,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as opened,
    ):
        yield opened


async def test_the_farthest_neighbours_go_first(talk: AsyncSpace) -> None:
    """Each hit keeps those that are nearest to it; the answer says that others are missing."""
    answer = await talk.recall("door", window=50, limit=6, weights={"vector": 0, "graph": 0})
    assert answer.truncated == f"{SAID}: the farthest neighbours are left out"
    assert len(answer) == 6
    assert sum(1 + len(hit.before) + len(hit.after) for hit in answer) == ROOM // TURN_BYTES
    for hit in answer:
        own = int(hit.memory.id)
        beside = [int(memory.id) - own for memory in (*hit.before, *hit.after)]
        assert beside in ([-1, 1], [-2, -1, 1], [-1, 1, 2], [-2, -1, 1, 2])


async def test_then_the_last_hits_go(talk: AsyncSpace) -> None:
    """The best ones stay, in their order."""
    whole = await talk.recall("door other", limit=20)
    assert whole.truncated == ""
    cut = await talk.recall("door other", limit=50, window=3)
    assert cut.truncated == f"{SAID}: the last 30 hits and all neighbours are left out"
    assert [hit.memory.id for hit in cut] == [hit.memory.id for hit in whole]


async def test_what_does_not_fit_is_not_read(talk: AsyncSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some more rows than fit are read, however many neighbours there are."""
    monkeypatch.setattr(sizes, "ROWS_AT_ONCE", 8)
    store = talk._engine.store
    get = type(store).get
    read: list[str] = []

    async def counted(self: Any, space: str, ids: Sequence[str]) -> Any:
        read.extend(ids)
        return await get(self, space, ids)

    monkeypatch.setattr(type(store), "get", counted)
    await talk.recall("door", window=50, limit=2, weights={"vector": 0, "graph": 0})
    assert len(read) <= 10 + ROOM // TURN_BYTES + 8


async def test_a_list_goes_on_where_it_was_cut(talk: AsyncSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page by page everything is listed once, and each page that was cut says so."""
    monkeypatch.setattr(sizes, "ROWS_AT_ONCE", 7)
    pages = [await talk.list(limit=50)]
    while pages[-1].cursor is not None:
        pages.append(await talk.list(limit=50, after=pages[-1].cursor))
    assert [len(page.memories) for page in pages] == [20, 20, 20]
    assert [page.truncated for page in pages] == [f"{SAID}: continue after the cursor"] * 2 + [""]
    assert [int(memory.id) for page in pages for memory in page.memories] == list(range(TURNS))
    assert (await talk.list(limit=20)).truncated == ""


async def test_a_memory_that_is_large_by_itself_is_still_there(work: AsyncSpace) -> None:
    """Nothing becomes out of reach."""
    for n in range(3):
        await work.remember(f"door {n} ".ljust(2 * ROOM, "."), id=str(n))
    assert len(await work.recall("door")) == 1
    page = await work.list()
    assert ([memory.id for memory in page.memories], page.cursor) == (["0"], "0")
    assert [memory.id for memory in (await work.list(after="1")).memories] == ["2"]


async def test_neighbours_and_versions_have_their_limit_too(work: AsyncSpace) -> None:
    """Too many neighbours are refused, and the limit named; of very many versions the nearest are shown."""
    ids = [(await work.remember(f"version {n} ".ljust(TURN_BYTES, "."))).memory.id for n in range(30)]
    for id in ids[1:]:
        await work.link(ids[0], id)
    with pytest.raises(InvalidRequest, match="20,500 bytes of text: lower the limit"):
        await work.neighbors(ids[0], limit=29)
    assert len(await work.neighbors(ids[0], limit=15)) == 15
    for old, new in pairwise(ids):
        await work.supersede(old, by=new)
    shown = [memory.id for memory in await work.history(ids[15])]
    assert shown == ids[5:25]


async def test_every_door_says_so(talk: AsyncSpace, here: httpx.AsyncClient) -> None:
    """HTTP, MCP in its short and its full form, and the dashboard."""
    body = {"query": "door", "window": 50, "limit": 6}
    answer = await here.post("/v1/spaces/work/recall", json=body)
    assert answer.json()["truncated"].startswith(SAID)
    assert len(answer.content) < 3 * ROOM
    listed = (await here.get("/v1/spaces/work/memories?limit=1000")).json()
    assert (len(listed["memories"]), listed["truncated"]) == (20, f"{SAID}: continue after the cursor")
    for tool, arguments in (
        ("memory_recall", body),
        ("memory_recall", {**body, "full": True}),
        ("memory_list", {"limit": 50}),
        ("memory_list", {"limit": 50, "full": True}),
    ):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        told = (await here.post("/mcp?space=work", json=message, headers=MCP_HEADERS)).json()["result"]
        assert told["structuredContent"]["truncated"].startswith(SAID)
        assert SAID in told["content"][0]["text"] or "There are more" in told["content"][0]["text"]
    page = await here.get("/", params={"space": "work", "q": "door other", "limit": "50"})
    assert f"Truncated: {SAID}" in page.text


async def test_the_command_line_says_so(talk: AsyncSpace, tmp_path: Path) -> None:
    """Below the hits, and below a list."""
    cli = Cli(tmp_path)
    assert f"truncated: {SAID}" in " ".join(
        cli("recall", "door other", "--limit", "50", "--space", "work").stdout.split()
    )
    assert f"truncated: {SAID}" in " ".join(cli("list", "--limit", "50", "--space", "work").stdout.split())


def test_an_answer_as_it_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of the longest texts there may be do not come in one answer."""
    for module in (sizes, finding):
        monkeypatch.setattr(module, "ANSWER_BYTES", ANSWER_BYTES)
    with Recollect(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing") as r:
        work = r.space("work")
        for n in range(10):
            work.remember(f"door {n} ".ljust(TEXT_BYTES, "."), vector=[1.0] + [0.0] * 255)
        assert len(work.recall("door")) == len(work.list().memories) == ANSWER_BYTES // TEXT_BYTES


async def test_tags_count_as_well(work: AsyncSpace) -> None:
    """64 long tags on each of many short turns do not make a long answer."""
    tags = [f"{n:02d}".ljust(200, "t") for n in range(64)]
    lines = [json.dumps({"text": f"door {n}", "thread": "t", "tags": tags}) for n in range(10)]
    await work.import_lines(lines)
    assert (await work.list()).truncated.startswith(SAID)
    found = await work.recall("door", limit=10, window=10)
    assert found.truncated.startswith(SAID)
    assert sum(1 + len(hit.before) + len(hit.after) for hit in found) <= 2


@pytest.mark.parametrize("options", [{"recipe": "pgmemory"}, {"quality_weight": 0.5}, {}])
async def test_candidates_are_read_some_at_a_time(
    talk: AsyncSpace, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """However many a question has by its fanout, and whatever is asked of them before the answer is chosen."""
    for module in (sizes, finding):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 8)
    store = talk._engine.store
    get = type(store).get
    read: list[int] = []

    async def counted(self: Any, space: str, ids: Sequence[str]) -> Any:
        read.append(len(ids))
        return await get(self, space, ids)

    monkeypatch.setattr(type(store), "get", counted)
    assert len(await talk.recall("door other", limit=3, fanout=1000, **options)) == 3
    assert max(read) <= 8


async def test_versions_that_do_not_fit_are_not_read(work: AsyncSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long history of long texts costs no more than what is shown of it."""
    monkeypatch.setattr(sizes, "ROWS_AT_ONCE", 8)
    texts = [f"version {n} ".ljust(TURN_BYTES, ".") for n in range(60)]
    lines = [{"id": f"{n:02d}", "text": text, "superseded_by": f"{n + 1:02d}"} for n, text in enumerate(texts)]
    await work.import_lines(json.dumps(line) for line in lines)
    store = work._engine.store
    get = type(store).get
    read: list[str] = []

    async def counted(self: Any, space: str, ids: Sequence[str]) -> Any:
        read.extend(ids)
        return await get(self, space, ids)

    monkeypatch.setattr(type(store), "get", counted)
    assert [memory.id for memory in await work.history("30")] == [f"{n}" for n in range(20, 40)]
    assert len(read) <= ROOM // TURN_BYTES + 8


async def test_near_copies_are_compared_once(work: AsyncSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question whose candidates all say the same takes a time that grows with their number, and not faster."""
    compared = 0
    alike = diversity._alike

    def counted(one: str, other: str) -> bool:
        nonlocal compared
        compared += 1
        return alike(one, other)

    monkeypatch.setattr(diversity, "_alike", counted)
    said = " ".join(f"{sign}word" for sign in "abcdefghijklmnopqrstuvwxyz")
    await work.import_lines(json.dumps({"text": f"door {said} {chr(945 + n)}"}) for n in range(60))
    assert len(await work.recall("door", limit=2, fanout=1000)) == 2
    assert compared <= 60
