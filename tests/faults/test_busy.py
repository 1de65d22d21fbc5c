"""A busy processor is no fault: recalls take longer, and lack nothing. The same at length: benchmarks/busy.py."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import AsyncRecollect, Draft

ROOT = Path(__file__).parents[2]


def test_cold_processes_on_a_busy_machine_answer_whole() -> None:
    """`recollect recall` with its defaults, several at once beside busy loops, half of them for 100 hits: every lane of
    every answer is there.
    """
    words = ["--rounds", "2", "--processes", "4", "--loops", "2"]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "busy.py", *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[2:]) == (0, ["    8 whole"]), done.stdout + done.stderr


@pytest.fixture
def busy() -> Iterator[None]:
    spin = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    loops = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2)]
    yield
    for one in loops:
        one.kill()
        one.wait()


@pytest.fixture(params=["sqlite", "postgres"])
def anywhere(request: pytest.FixtureRequest) -> str:
    """A store inside this process, or one outside."""
    if request.param == "sqlite":
        return str(request.getfixturevalue("url"))
    return f"postgresql://?{urlencode(conninfo_to_dict(request.getfixturevalue('pg_database')))}"


@pytest.mark.usefixtures("busy")
async def test_many_recalls_for_many_hits_on_a_busy_machine(anywhere: str) -> None:
    """With the packaged model cold, and the event loop held up for half a second now and then, on a store inside this
    process and on one outside: not one answer lacks a lane.
    """

    async def hold_up() -> None:
        while True:
            time.sleep(0.4)  # noqa: ASYNC251 (that is the point)
            await asyncio.sleep(0.2)

    async with AsyncRecollect(anywhere, embedder="local") as recollect:
        work = recollect.space("work")
        await work.remember_many([Draft(f"Invoice {n} was paid") for n in range(150)])
        await work.settle()
    async with AsyncRecollect(anywhere, embedder="local") as recollect:
        work = recollect.space("work")
        holding = asyncio.create_task(hold_up())
        answers = await asyncio.gather(*(work.recall(f"invoice {n}", limit=100) for n in range(8)))
        holding.cancel()
    assert Counter(lane.status for answer in answers for lane in answer.lanes) == {"ok": 24}
    assert not any(answer.degraded for answer in answers)
