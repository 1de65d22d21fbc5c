"""A change of the embedding model that is killed at random moments, and run again."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import islice
from pathlib import Path
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import Recollect

MEMORIES = 300
KILLS = 6
WORDS = ("foxes", "owls", "bees", "invoices", "trains", "hedgehogs")
RUN = """
import asyncio, sys
from recollect import AsyncRecollect

async def main():
    async with AsyncRecollect(sys.argv[1], embedder="hashing:64") as r:
        await r.reembed("hashing:32", rate=1500, on_progress=lambda now: print(now.done, flush=True))

asyncio.run(main())
"""


def fill(url: str) -> None:
    with Recollect(url, embedder="hashing:64") as r:
        space = r.space("work")
        for n in range(MEMORIES):
            space.remember(f"note {n} about {WORDS[n % len(WORDS)]}")


def state(url: str) -> dict[str, tuple[str, int]]:
    with Recollect(url, embedder="hashing:64") as r:
        return {one.generation.model: (one.state, one.vectors) for one in r.generations()}


def kill_some(url: str) -> None:
    """Each run is killed after a random number of batches."""
    draw = random.Random(16)
    for _ in range(KILLS):
        run = subprocess.Popen([sys.executable, "-c", RUN, url], stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        list(islice(run.stdout, draw.randint(1, 8)))
        run.kill()
        run.wait()
        run.stdout.close()
        states = state(url)
        if states.get("hashing-32", ("next", 0))[0] == "current":  # it was killed after the switch
            assert states["hashing-32"][1] == MEMORIES
            return
        assert states["hashing-64"] == ("current", MEMORIES)
        with Recollect(url, embedder="hashing:64") as r:
            answer = r.space("work").recall("hedgehogs")
            assert not answer.degraded
            assert "hedgehogs" in answer.hits[0].memory.text


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    return f"postgresql://?{urlencode(conninfo_to_dict(request.getfixturevalue('pg_database')))}"


def test_it_goes_on_when_it_is_run_again(url: str) -> None:
    """After each kill the old vectors answer, whole; the last run completes the new ones and switches."""
    fill(url)
    kill_some(url)
    subprocess.run([sys.executable, "-c", RUN, url], check=True, capture_output=True)
    assert state(url) == {"hashing-64": ("old", MEMORIES), "hashing-32": ("current", MEMORIES)}
    with Recollect(url, embedder="hashing:32") as r:
        answer = r.space("work").recall("hedgehogs", weights={"keyword": 0.0, "graph": 0.0})
        assert "hedgehogs" in answer.hits[0].memory.text
