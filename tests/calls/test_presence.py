"""An engine that goes and returns is one line in the log each, however much is asked and told meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from recollect import AsyncRecollect, AsyncSpace, Recall
from recollect.calls.breaker import FAILURES
from recollect.calls.presence import Presence
from recollect.settings import Settings
from tests.engine.faulty import until
from tests.falkordb_server import FalkorServer, needed
from tests.indexes.qdrant_process import QdrantProcess


class Server(Protocol):
    @property
    def url(self) -> str: ...
    def start(self) -> None: ...
    def kill(self) -> None: ...


@pytest.fixture(params=["qdrant", "falkordb"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Server]]:
    """A running engine of each sort, and its name."""
    server: Server
    if request.param == "qdrant":
        server = QdrantProcess(tmp_path / "qdrant")
    else:
        needed("redis.exceptions")
        (tmp_path / "falkordb").mkdir()
        server = FalkorServer(tmp_path / "falkordb")
    server.start()
    yield request.param, server
    server.kill()


async def traffic(space: AsyncSpace, number: int) -> Recall:
    """A memory is written, and another is asked for."""
    await space.remember(f"blue whale number {number}")
    return await space.recall(f"whale {number}")


async def test_an_engine_that_goes_and_returns_is_a_line_each(
    engine: tuple[str, Server], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its searches and its feeder together: a warning when it goes, an information when both can use it again."""
    name, server = engine
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    settings = (
        Settings(url, "hashing", vectors=server.url) if name == "qdrant" else Settings(url, "hashing", graph=server.url)
    )
    lane = "vector" if name == "qdrant" else "graph"
    caplog.set_level(logging.INFO, "recollect")
    async with AsyncRecollect(settings=settings) as recollect, asyncio.timeout(60):
        space = recollect.space("work")
        assert not (await traffic(space, 0)).degraded
        await asyncio.to_thread(server.kill)
        number, skipped = 0, 0
        while skipped < 2 * FAILURES or (await recollect.lag())[name].waiting < FAILURES:
            number += 1
            answer = await traffic(space, number)
            skipped += {report.lane: report.status for report in answer.lanes}[lane] == "skipped"
        feeder = recollect._engine.feeders[name]
        await until(lambda: "feeding" in feeder._presence._missed_by)
        assert levels(caplog, name) == ["WARNING"]
        await asyncio.to_thread(server.start)
        while (await traffic(space, number)).degraded or (await recollect.lag())[name].waiting:
            number += 1
            await asyncio.sleep(0.01)
        await until(lambda: not feeder._presence._missed_by)
    assert levels(caplog, name) == ["WARNING", "INFO"]


def levels(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    """Of all that was logged: nothing may be logged beside it, by whichever logger, that is worth a warning."""
    ours = [one for one in caplog.records if one.name.startswith("recollect") or one.levelno >= logging.WARNING]
    assert all(name in one.getMessage() for one in ours), [one.getMessage() for one in ours]
    return [one.levelname for one in ours]


def test_it_is_back_when_everybody_can_use_it_again(caplog: pytest.LogCaptureFixture) -> None:
    """What one finds is not yet true for the other; what was never lost is not found."""
    caplog.set_level(logging.INFO, "recollect")
    engine = Presence("qdrant")
    engine.found("feeding")
    assert not caplog.records
    for _ in range(3):
        engine.lost("feeding", "connection refused")
        engine.lost("vector", "failed 5 times")
    engine.found("feeding")
    assert [one.getMessage() for one in caplog.records] == ["qdrant cannot be used: connection refused"]
    engine.found("vector")
    assert caplog.records[-1].getMessage() == "qdrant can be used again, after 0 s"
