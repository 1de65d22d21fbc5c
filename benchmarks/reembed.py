"""Recalls while a store is changed to another embedding model:

    python benchmarks/reembed.py --size 100000

Twenty questions a second are asked by a client that was opened before: for a while in quiet, then while another process
makes the new vectors and after it has switched. Vectors are hashed words of two widths, so that the cost is the store's
and not a model's. Every question quotes a memory: an answer by vectors of the wrong model would not find it first.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from recollect import AsyncRecollect, Draft
from recollect.evaluation.metrics import percentile

OLD, NEW = "hashing:256", "hashing:384"
RATE = 20
QUIET_QUESTIONS = 400
WORDS = [
    f"{a}{b}{c}" for a in ("bo", "ka", "ri", "te", "lu") for b in ("na", "mi", "so", "vu") for c in ("rk", "lt", "ns")
]
CHANGE = """
import asyncio, sys
from recollect import AsyncRecollect

async def main():
    async with AsyncRecollect(sys.argv[1], embedder=sys.argv[2]) as r:
        await r.reembed(sys.argv[3])

asyncio.run(main())
"""


def text_of(number: int) -> str:
    draw = random.Random(number)
    return " ".join([f"n{number}", *draw.choices(WORDS, k=12)])


class Asking:
    """Asks at a steady pace, and keeps how long each answer took and what was wrong with it."""

    def __init__(self, r: AsyncRecollect, size: int) -> None:
        self._space = r.space("bench")
        self._size = size
        self._draw = random.Random(7)
        self.times: list[float] = []
        self.failed = self.wrong = 0

    async def ask(self) -> None:
        number = self._draw.randrange(self._size)
        started = time.perf_counter()
        try:
            answer = await self._space.recall(text_of(number), weights={"keyword": 0.0, "graph": 0.0}, limit=3)
        except Exception as error:  # noqa: BLE001 (whatever it was, it is counted)
            print(f"failed: {error}", file=sys.stderr)
            self.failed += 1
            return
        self.times.append(time.perf_counter() - started)
        self.failed += answer.degraded
        self.wrong += not answer.hits or answer.hits[0].memory.id != f"{number:07}"

    async def until(self, ended: asyncio.Task[int] | None, questions: int = sys.maxsize) -> None:
        asked: list[asyncio.Task[None]] = []
        while len(asked) < questions and not (ended and ended.done()):
            asked.append(asyncio.create_task(self.ask()))
            await asyncio.sleep(1 / RATE)
        await asyncio.gather(*asked)

    def line(self, name: str) -> str:
        times = (
            f"{len(self.times):6} recalls, p50 {1000 * self.part(0.5):6.1f} ms, p95 {1000 * self.part(0.95):6.1f} ms"
        )
        return f"{name:24} {times}, {self.failed} failed, {self.wrong} wrong"

    def part(self, share: float) -> float:
        return percentile(self.times, share) or 0.0


async def change(url: str) -> int:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", CHANGE, url, OLD, NEW)
    return await process.wait()


async def main(size: int, url: str) -> None:
    async with AsyncRecollect(url, embedder=OLD) as r:
        space = r.space("bench")
        await space.remember_many([Draft(text_of(n), id=f"{n:07}", linked=True) for n in range(size)])
        await space.recall("warm up")
        quiet = Asking(r, size)
        await quiet.until(None, QUIET_QUESTIONS)
        print(quiet.line("quiet"), flush=True)
        started = time.perf_counter()
        under, task = Asking(r, size), asyncio.create_task(change(url))
        await under.until(task)
        assert task.result() == 0
        print(under.line(f"while {size:,} change"), flush=True)
        after = Asking(r, size)
        await after.until(None, QUIET_QUESTIONS // 4)
        print(after.line("after the switch"), flush=True)
        states = {one.generation.model: one.state for one in await r.generations()}
    async with AsyncRecollect(url, embedder=NEW) as r:
        new = Asking(r, size)
        await r.space("bench").recall("warm up")
        await new.until(None, QUIET_QUESTIONS // 4)
        print(new.line("with the new model"), flush=True)
    ratio = under.part(0.95) / quiet.part(0.95)
    print(f"{states}; changed in {time.perf_counter() - started:.0f} s; p95 {ratio:.2f} x the quiet one (goal 2)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--store", help="the URL of an empty store, instead of a new file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(given.size, given.store or f"sqlite:///{Path(folder, 'memory.db')}"))
