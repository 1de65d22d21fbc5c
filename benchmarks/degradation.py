"""What it costs that engines may fail: a recall while an engine is frozen beside one while all are well, and writes and
recalls with the outbox and the accounting beside those without, each pair measured in one run.

    PYTHONPATH=. python benchmarks/degradation.py

The engines are the processes that the soak uses (tests/faults/soak.py), Qdrant a stand-in. Nothing is asserted: the
goals are printed beside.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from tests.faults.embedding_process import vector_of
from tests.faults.soak import ENGINES, WORDS, Name, Trouble, three_tiers

from recollect import AsyncRecollect, AsyncSpace, Draft, RecallFailed
from recollect.engine.feeding import Feeder
from recollect.engine.usage import FLUSH_SECONDS, HitCounter
from recollect.evaluation.metrics import percentile
from recollect.ports import Change, ExternalIndex, Store
from recollect.recipes import Recipe
from recollect.settings import PostgresSettings, Settings
from recollect.types import Generation, LaneReport, Leg, Recall

SPACE = "bench"
LANE: dict[Name, str] = {"postgres": "keyword", "qdrant": "vector", "falkordb": "graph", "embedder": "vector"}
"""The lane that an engine's absence is first seen in."""
CONCURRENT = 8
"""Recalls at once until the breaker has opened, and writers."""
WRITING = 2.0
"""Seconds of writes in a round."""
EMBEDDER = "hashing:64"
PARTS = ("plain", "noted", "told")
CHANCE = random.Random(4)
NUMBERS = count()


def words(many: int) -> str:
    """A text that was never used before."""
    return f"{' '.join(CHANCE.choices(WORDS, k=many))} no{next(NUMBERS)}"


async def ask(space: AsyncSpace) -> tuple[LaneReport, ...]:
    """What became of the lanes; with the store away there is no answer, but a report."""
    try:
        return (await space.recall(words(3))).lanes
    except RecallFailed as failed:
        return failed.lanes


async def p95(space: AsyncSpace, questions: int) -> float:
    """Milliseconds of a recall, asked one after the other."""
    took = []
    for _ in range(questions):
        started = perf_counter()
        await ask(space)
        took.append(1000 * (perf_counter() - started))
    return percentile(took, 0.95) or 0.0


async def until(space: AsyncSpace, right: Callable[[Sequence[LaneReport]], bool]) -> None:
    """Ask until the lanes are as wanted."""
    while not all(map(right, await asyncio.gather(*(ask(space) for _ in range(CONCURRENT))))):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


class Frozen(NamedTuple):
    """95 of 100 recalls took at most so many milliseconds, while all was well and with one engine frozen."""

    engine: Name
    well: float
    frozen: float


async def measure_frozen(tiers: Trouble, engine: Name, space: AsyncSpace, questions: int) -> Frozen:
    def skipped(lanes: Sequence[LaneReport]) -> bool:
        return any(lane.leg == LANE[engine] and lane.status == "skipped" for lane in lanes)

    def well(lanes: Sequence[LaneReport]) -> bool:
        return all(lane.status == "ok" for lane in lanes)

    await until(space, well)
    before = await p95(space, questions)
    tiers.engines[engine].freeze()
    try:
        await until(space, skipped)
        return Frozen(engine, before, await p95(space, questions))
    finally:
        tiers.engines[engine].thaw()


async def measure_engines(tiers: Trouble, size: int, questions: int) -> list[Frozen]:
    async with AsyncRecollect(settings=tiers.settings) as recollect:
        space = recollect.space(SPACE)
        await space.remember_many([Draft(words(8)) for _ in range(size)])
        await space.settle()
        await recollect.sync()
        await p95(space, questions)  # to warm up
        return [await measure_frozen(tiers, engine, space, questions) for engine in ENGINES]


class NoCounter(HitCounter):
    """Counts nothing."""

    def count(self, space: str, recipe: Recipe, outcome: Recall | RecallFailed) -> None:
        """Nothing is counted."""


class Abyss:
    """An index that takes everything and costs nothing: what is left is the outbox and the feeder."""

    in_process = True

    def __init__(self, name: str) -> None:
        self.name = name

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def check(self) -> None: ...
    async def use(self, generation: Generation) -> None: ...
    async def apply(self, space: str, changes: Sequence[Change]) -> None: ...

    async def count(self, space: str) -> int:  # noqa: ARG002
        return 0

    async def ids(self, space: str) -> AsyncIterator[str]:  # noqa: ARG002
        for id in list[str]():
            yield id

    async def spaces(self) -> Sequence[str]:
        return ()

    async def shadow(self) -> ExternalIndex:
        return self

    async def publish(self, shadow: ExternalIndex) -> None: ...


async def feed(recollect: AsyncRecollect, *, tell: bool) -> None:
    """Have changes noted for two indexes, as for Qdrant and FalkorDB, and these told; the store answers as before."""
    store: Store = recollect._store
    legs: tuple[Leg, ...] = ("vector", "graph")
    for leg in legs:
        feeder = Feeder(store, Abyss(f"abyss-{leg}"), leg)
        await store.ledger.feed(feeder.index.name, leg)
        if tell:
            recollect._engine.feeders[feeder.index.name] = feeder
            await feeder.open()


class Rates(NamedTuple):
    """Calls per second, without something and with it, turn by turn."""

    what: str
    without: Sequence[float]
    with_it: Sequence[float]

    @property
    def cost(self) -> float:
        """The share of the throughput that is lost, by the median turn."""
        return 1 - median(b / a for a, b in zip(self.without, self.with_it, strict=True))


async def rate(work: Callable[[], Awaitable[object]], seconds: float, after: Callable[[], Awaitable[object]]) -> float:
    """Calls per second by some callers at once, what is put off included: it is done at the end."""
    started, calls = perf_counter(), 0

    async def caller() -> None:
        nonlocal calls
        while perf_counter() - started < seconds:
            await work()
            calls += 1

    await asyncio.gather(*(caller() for _ in range(CONCURRENT)))
    await after()
    return calls / (perf_counter() - started)


async def measure_writes(stores: Sequence[Settings], size: int, rounds: int) -> list[Rates]:
    """Three stores of one kind, turn by turn and there and back, so that what else the machine does falls on all."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(AsyncRecollect(settings=settings)) for settings in stores]
        plain, noted, told = clients
        await feed(noted, tell=False)
        await feed(told, tell=True)
        for one in clients:
            await one.space(SPACE).remember_many([draft() for _ in range(size)])
            await one.space(SPACE).settle()
            await one.sync()
        rates: dict[AsyncRecollect, list[float]] = {one: [] for one in clients}
        for turn in range(rounds):
            for one in clients[:: (-1) ** turn]:
                rates[one].append(await rate(writer(one), WRITING, one.sync))
        return [
            Rates("writes, outbox", rates[plain], rates[noted]),
            Rates("writes, outbox and two feeders", rates[plain], rates[told]),
        ]


async def measure_recalls(settings: Settings, rounds: int) -> Rates:
    """One store, asked with and without the accounting in turns; each of them as long as counts are put off."""
    async with AsyncRecollect(settings=settings) as recollect:
        recaller = recollect._engine.recaller
        counters = [NoCounter(recollect._store), recaller.hits]
        rates: dict[HitCounter, list[float]] = {counter: [] for counter in counters}
        for turn in range(rounds):
            for recaller.hits in counters[:: (-1) ** turn]:
                rates[recaller.hits].append(await rate(asker(recollect), FLUSH_SECONDS, recaller.hits.flush))
        return Rates("recalls, accounting", *(rates[counter] for counter in counters))


def draft() -> Draft:
    text = words(8)
    return Draft(text, vector=vector_of(text))


def writer(recollect: AsyncRecollect) -> Callable[[], Awaitable[object]]:
    async def write() -> None:
        text = words(8)
        await recollect.space(SPACE).remember(text, vector=vector_of(text))

    return write


def asker(recollect: AsyncRecollect) -> Callable[[], Awaitable[object]]:
    async def recall() -> None:
        text = words(3)
        await recollect.space(SPACE).recall(text, vector=vector_of(text))

    return recall


def print_frozen(console: Console, measured: Sequence[Frozen]) -> None:
    table = Table("frozen", "well, p95 ms", "frozen, p95 ms", "x", "goal", title="recall, once the breaker is open")
    for one in measured:
        name = f"{one.engine} (no answer is possible)" if one.engine == "postgres" else one.engine
        table.add_row(name, f"{one.well:.1f}", f"{one.frozen:.1f}", f"{one.frozen / one.well:.2f}", "< 1.5")
    console.print(table)


def print_costs(console: Console, store: str, measured: Sequence[Rates]) -> None:
    table = Table("", "without, / s", "with, / s", "cost", "goal", title=f"outbox and accounting, {store}")
    for one in measured:
        rates = (f"{median(some):,.0f}" for some in (one.without, one.with_it))
        table.add_row(one.what, *rates, f"{one.cost:.1%}", "< 10 %")
    console.print(table)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=500, help="memories there are at first")
    parser.add_argument("--questions", type=int, default=100, help="questions asked one after the other")
    parser.add_argument("--rounds", type=int, default=12, help="turns of 2 s of writes and of 5 s of recalls")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name, three_tiers(Path(name)) as tiers:
        folder = Path(name)
        print_frozen(console, await measure_engines(tiers, options.size, options.questions))
        url = tiers.settings.url
        kinds = {
            "SQLite": [Settings(f"sqlite:///{folder / part}.db", EMBEDDER) for part in PARTS],
            "Postgres": [Settings(url, EMBEDDER, postgres=PostgresSettings(schema=part)) for part in PARTS],
        }
        for kind, stores in kinds.items():
            writes = await measure_writes(stores, options.size, options.rounds)
            print_costs(console, kind, [*writes, await measure_recalls(stores[0], options.rounds)])
    console.print(f"load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    asyncio.run(main())
