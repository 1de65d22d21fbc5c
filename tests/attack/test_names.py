"""Names that a reader makes up, and what a server keeps of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from recollect import AsyncRecollect
from recollect.engine import scoring, upkeep
from recollect.recipes import RECIPES
from recollect.servers.web import application

pytestmark = pytest.mark.attack

RECALL = "/v1/spaces/work/recall"


@pytest.fixture
async def here(client: AsyncRecollect) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application(client), client=("127.0.0.1", 50000))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as opened:
        yield opened


async def labels(here: httpx.AsyncClient) -> set[str]:
    """Every counter that /metrics shows."""
    text = (await here.get("/metrics")).text
    return {line.rpartition(" ")[0] for line in text.splitlines() if line.startswith("recollect_")}


async def test_made_up_lanes_and_recipes_make_no_counters(here: httpx.AsyncClient, client: AsyncRecollect) -> None:
    """Neither in the metrics nor on the page that shows how quick lanes are."""
    await client.space("work").remember("The red door")
    custom = replace(RECIPES["balanced"], name="made up 0")
    await client.space("work").recall("door", recipe=custom)
    await here.post(RECALL, json={"query": "door"})
    before, page = await labels(here), (await here.get("/health?space=work")).text
    for n in range(1, 20):
        lanes = {"vector": {"name": f"made up {n}"}, "keyword": {"name": f"odd {n}"}}
        answer = await here.post(RECALL, json={"query": "door", "lanes": lanes})
        assert answer.json()["lanes"][0]["lane"] == f"made up {n}"
        await client.space("work").recall("door", recipe=replace(custom, name=f"made up {n}"))
    assert await labels(here) == before
    after = (await here.get("/health?space=work")).text
    assert "made up" not in after
    assert after.count("<th scope") == page.count("<th scope")


async def test_made_up_spaces_leave_nothing_behind(client: AsyncRecollect, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of a space that was asked once, and holds nothing, is bounded."""
    monkeypatch.setattr(upkeep, "SEEN_SPACES", 10)
    monkeypatch.setattr(scoring, "SEEN_SPACES", 10)
    kept = client._engine.upkeep
    for n in range(40):
        await client.space(f"made up {n}").recall("door")
        await asyncio.gather(*kept._tasks.values())
        await asyncio.sleep(0)  # what they call at their end has been called
    assert len(kept._seen) <= 10
    assert len(client._engine.scoring._checked) <= 10
    assert not kept._tasks
    assert not kept._working
    assert not kept._behind
