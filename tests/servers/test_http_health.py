"""For those who watch a server: alive, ready, and what Prometheus is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from recollect import AsyncRecollect, AsyncSpace, BackendUnavailable
from recollect.ports import Lag
from recollect.servers.web import application
from tests.conftest import FlakyEmbedder

RECALL = "/v1/spaces/work/recall"


@pytest.fixture
async def here(client: AsyncRecollect) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application(client))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as opened:
        yield opened


async def samples(here: httpx.AsyncClient) -> dict[tuple[str, ...], float]:
    """Every sample by its name and its labels' values."""
    text = (await here.get("/metrics")).text
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_alive_asks_no_engine(here: httpx.AsyncClient, client: AsyncRecollect) -> None:
    """It is alive with its store closed."""
    await client._store.close()
    assert (await here.get("/health/live")).json() == {"status": "alive"}


async def test_ready_names_each_engine(here: httpx.AsyncClient) -> None:
    """The store and the embedder, with nothing loaded or embedded for it."""
    ready = (await here.get("/health/ready")).json()
    assert ready["status"] == "ready"
    assert [(check["name"], check["ok"]) for check in ready["checks"]] == [("store", True), ("embedder", True)]


async def test_ready_without_the_embedder_is_degraded(here: httpx.AsyncClient, embedder: FlakyEmbedder) -> None:
    """Recalls go on by words: 200, and it says what is missing."""
    embedder.down = True
    for n in range(6):
        await here.post(RECALL, json={"query": f"question {n}"})
    response = await here.get("/health/ready")
    assert (response.status_code, response.json()["status"]) == (200, "degraded")
    (embedding,) = [check for check in response.json()["checks"] if not check["ok"]]
    assert "the embedding service is down" in embedding["detail"]


async def test_ready_on_a_store_of_another_model_is_degraded(tmp_path: Path) -> None:
    """As `doctor` says it, with what to do."""
    store = f"sqlite:///{tmp_path / 'memory.db'}"
    async with AsyncRecollect(store, embedder="hashing:32") as before:
        await before.space("work").remember("the fox is red")
    async with AsyncRecollect(store, embedder="hashing:64") as client:
        transport = httpx.ASGITransport(application(client))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            ready = (await http.get("/health/ready")).json()
    assert ready["status"] == "degraded"
    (embedding,) = [check for check in ready["checks"] if not check["ok"]]
    assert "open it with the embedder hashing:32" in embedding["detail"]


async def test_what_engines_say_is_for_who_administers_all(here: httpx.AsyncClient, client: AsyncRecollect) -> None:
    """Others, known or not, learn whether each answers: a reason may name a path or another's space."""
    tokens = [await client.tokens.create(scope="admin"), await client.tokens.create(spaces=["a"], scope="admin")]
    shown = [{"Authorization": f"Bearer {secret}"} for secret in (*(one.secret for one in tokens), "rc_wrong")]
    answers = [(await here.get("/health/ready", headers=headers)).json() for headers in (*shown, {})]
    told = [[check["detail"] for check in answer["checks"]] for answer in answers]
    assert told[0][0] == "sqlite answers"
    assert told[1:] == [["answers", "answers"]] * 3
    assert {answer["status"] for answer in answers} == {"ready"}


async def test_ready_without_the_store_is_down(here: httpx.AsyncClient, client: AsyncRecollect) -> None:
    """503, for nothing can be answered."""
    await client._store.close()
    response = await here.get("/health/ready")
    assert (response.status_code, response.json()["status"]) == (503, "down")


async def test_ready_without_the_file_is_down(
    here: httpx.AsyncClient, client: AsyncRecollect, work: AsyncSpace, tmp_path: Path
) -> None:
    """503 when the store's file was removed, for what is remembered now would be lost; doctor says why."""
    await work.remember("A note.")
    (tmp_path / "memory.db").unlink()
    response = await here.get("/health/ready")
    assert (response.status_code, response.json()["status"]) == (503, "down")
    store = (await client.doctor()).checks[0]
    assert (store.ok, "removed or replaced" in store.detail) == (False, True)
    with pytest.raises(BackendUnavailable, match="open it again"):
        await work.remember("Another note.")


async def test_recalls_are_counted(here: httpx.AsyncClient, client: AsyncRecollect, embedder: FlakyEmbedder) -> None:
    """By recipe and outcome, with each lane's time and each leg's hits, whichever door they came by."""
    await here.post("/v1/spaces/work/memories", json={"text": "Invoice 12345"})
    await here.post(RECALL, json={"query": "invoice"})
    await client.space("work").recall("invoice", recipe="pgmemory")
    embedder.down = True
    await here.post(RECALL, json={"query": "the other invoice"})
    await here.post(RECALL, json={"query": "what now", "weights": {"keyword": 0, "graph": 0}})
    found = await samples(here)
    assert found["recollect_recalls_total", "ok", "balanced"] == 1
    assert found["recollect_recalls_total", "ok", "pgmemory"] == 1
    assert found["recollect_recalls_total", "degraded", "balanced"] == 1
    assert found["recollect_recalls_total", "failed", "balanced"] == 1
    assert found["recollect_hits_total", "keyword"] == 3
    assert found["recollect_hits_total", "vector"] == 2
    assert found["recollect_lane_seconds_count", "keyword"] == 3
    assert found["recollect_lanes_total", "vector", "failed"] == 2


async def test_the_lag_of_an_index_is_told(
    here: httpx.AsyncClient, client: AsyncRecollect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How much waits for each external index; nothing, rather than something old, while the store is down."""

    async def lag() -> dict[str, Lag]:
        return {"qdrant": Lag(7, None)}

    async def away() -> dict[str, Lag]:
        raise BackendUnavailable("away", backend="sqlite")

    monkeypatch.setattr(client, "lag", lag)
    assert (await samples(here))["recollect_index_waiting", "qdrant"] == 7
    monkeypatch.setattr(client, "lag", away)
    assert ("recollect_index_waiting", "qdrant") not in await samples(here)
