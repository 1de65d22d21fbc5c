"""A soak: recalls and writers at work while engines come and go, and a judge of what they were told.

Faults come in decks. In one deck every engine fails once in every way, half of the times alone and half in pairs.
"""

from __future__ import annotations

import asyncio
import random
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, Protocol, TypeVar

from recollect import AsyncSpace, BackendUnavailable, RecallFailed
from recollect.calls.deadline import HELD_UP
from recollect.recipes import DEADLINE
from recollect.settings import OpenAISettings, Settings
from recollect.types import LaneReport
from tests.falkordb_server import FalkorServer
from tests.faults.embedding_process import EmbeddingProcess
from tests.faults.postgres_process import PostgresProcess
from tests.faults.relay import Relay
from tests.indexes.qdrant_process import QdrantProcess

T = TypeVar("T")

Name = Literal["postgres", "qdrant", "falkordb", "embedder"]
Way = Literal["stopped", "frozen", "cut off", "slow"]
ENGINES: tuple[Name, ...] = ("postgres", "qdrant", "falkordb", "embedder")
WAYS: tuple[Way, ...] = ("stopped", "frozen", "cut off", "slow")
NEEDS: dict[str, tuple[Name, ...]] = {
    "keyword": ("postgres",),
    "vector": ("embedder", "qdrant"),
    "graph": ("falkordb", "postgres"),
}
"""What a lane cannot answer without. The graph lane starts from words where there is no meaning to start from."""
EXCUSES: dict[str, tuple[Name, ...]] = {**NEEDS, "vector": ("embedder", "qdrant", "postgres")}
"""Whose absence can keep a lane from answering: the store tells what may be seen of others' namespaces."""

RECALLS = 32
WRITERS = 8
AWAY = (3.0, 4.5)
"""Seconds that an engine is away: longer than a recall may take, so that some meet nothing else."""
BETWEEN = (0.5, 1.5)
SETTLED = 0.1
"""Seconds that a fault needs to be in force: a signal is on its way, an answer was already sent."""
HEALED = 15.0
"""Seconds after its return within which an engine is used again: the breaker's longest pause of 10 s, one probe of 2 s,
and some to spare.
"""
PAUSES = {"recall": (0.2, 0.8), "write": (0.1, 0.4)}
"""Seconds between two calls of one caller: the machine is to be busy, not overloaded, or everything is late."""
WORDS = [
    first + last for first in ("ba", "de", "fi", "go", "ku", "la", "me", "ni") for last in ("lon", "mar", "nik", "pas")
]


class Engine(Protocol):
    """A server in a process of its own."""

    def start(self) -> None: ...
    def kill(self) -> None: ...
    def freeze(self) -> None: ...
    def thaw(self) -> None: ...


class Fault(NamedTuple):
    engine: Name
    way: Way


def deck(chance: random.Random) -> list[tuple[Fault, ...]]:
    """Every engine in every way, once: eight times one alone, four times two at once."""
    while True:
        faults = [Fault(engine, way) for engine in ENGINES for way in WAYS]
        chance.shuffle(faults)
        pairs = list(zip(faults[::4], faults[1::4], strict=True))
        if all(one.engine != other.engine for one, other in pairs):
            alone = [(fault,) for place, fault in enumerate(faults) if place % 4 > 1]
            rounds: list[tuple[Fault, ...]] = [*pairs, *alone]
            chance.shuffle(rounds)
            return rounds


class Absence(NamedTuple):
    """One time that an engine was away: from when at the earliest, when for certain, until when for certain, and when
    it was back at the latest.
    """

    way: Way
    began: float
    away: float
    returning: float = inf
    back: float = inf


@dataclass
class Trouble:
    """Makes engines fail and lets them return, and knows when which was away."""

    engines: dict[Name, Engine]
    relay: Relay
    absences: dict[Name, list[Absence]] = field(default_factory=lambda: defaultdict(list))
    rounds: int = 0

    async def cause(self, chance: random.Random, seconds: float) -> None:
        """Whole decks, until so many seconds are over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for faults in deck(chance):
                await asyncio.gather(*(self._fail(fault, chance.uniform(*AWAY)) for fault in faults))
                await asyncio.sleep(chance.uniform(*BETWEEN))
                self.rounds += 1
                if time.monotonic() > until:
                    break

    async def _fail(self, fault: Fault, seconds: float) -> None:
        began = time.monotonic()
        await asyncio.to_thread(self._begin, fault)
        away = time.monotonic() + SETTLED
        place = len(self.absences[fault.engine])
        self.absences[fault.engine].append(Absence(fault.way, began, away))
        await asyncio.sleep(seconds)
        returning = time.monotonic()
        self.absences[fault.engine][place] = Absence(fault.way, began, away, returning)
        await asyncio.to_thread(self._end, fault)
        self.absences[fault.engine][place] = Absence(fault.way, began, away, returning, time.monotonic())

    def _begin(self, fault: Fault) -> None:
        engine, wire = self.engines[fault.engine], ENGINES.index(fault.engine)
        begin: dict[Way, Callable[[], None]] = {
            "stopped": engine.kill,
            "frozen": engine.freeze,
            "cut off": lambda: self.relay.cut(wire),
            "slow": lambda: self.relay.slow(wire),
        }
        begin[fault.way]()

    def _end(self, fault: Fault) -> None:
        engine, wire = self.engines[fault.engine], ENGINES.index(fault.engine)
        end: dict[Way, Callable[[], None]] = {
            "stopped": engine.start,
            "frozen": engine.thaw,
            "cut off": lambda: self.relay.mend(wire),
            "slow": lambda: self.relay.mend(wire),
        }
        end[fault.way]()

    def was_away(self, engine: Name, start: float, end: float) -> bool:
        """Whether it was away all the time."""
        return any(one.away <= start and end <= one.returning for one in self.absences[engine])

    def was_well(self, engine: Name, start: float, end: float) -> bool:
        """Whether it was there all the time, and long enough before to be in use again."""
        return all(end < one.began or one.back + HEALED < start for one in self.absences[engine])

    def before(self, moment: float) -> str:
        """Who had been away lately, in words: when, in seconds before this moment, and how."""
        return ", ".join(
            f"{engine} {one.way} from {moment - one.began:.1f} s to {moment - one.back:.1f} s before"
            for engine, absences in self.absences.items()
            for one in absences
            if one.began < moment < one.back + HEALED
        )

    @property
    def settings(self) -> Settings:
        """A memory over all of them, each reached by its wire."""
        postgres, qdrant, falkordb, embedder = (f"127.0.0.1:{port}" for port in self.relay.ports)
        return Settings(
            f"postgresql://postgres@{postgres}/postgres",
            "openai:words",
            OpenAISettings(f"http://{embedder}/v1", key=""),
            vectors=f"qdrant+http://{qdrant}",
            graph=f"falkordb://{falkordb}",
        )

    def returned(self) -> float:
        """When the last engine was back."""
        return max(one.back for absences in self.absences.values() for one in absences)


@contextmanager
def three_tiers(folder: Path) -> Iterator[Trouble]:
    """Every engine as a process of its own, behind a wire."""
    (folder / "falkordb").mkdir()
    with TemporaryDirectory(prefix="recollect-pg-") as open_to_all, ExitStack() as ending:
        postgres, qdrant = PostgresProcess(Path(open_to_all)), QdrantProcess(folder / "qdrant")
        falkordb, embedder = FalkorServer(folder / "falkordb"), EmbeddingProcess()
        ending.callback(postgres.end)  # also one that does not run
        postgres.start()
        for engine in (qdrant, falkordb, embedder):
            ending.callback(engine.kill)
            engine.start()
        relay = Relay([postgres.port, int(qdrant.url.rpartition(":")[2]), falkordb.port, embedder.port])
        ending.callback(relay.end)
        yield Trouble(dict(zip(ENGINES, (postgres, qdrant, falkordb, embedder), strict=True)), relay)


class Asked(NamedTuple):
    """One recall: when, what was said of its lanes, and where there was no answer what was raised and said. Not the
    error itself, which would keep all that was under way: a heap that grows makes garbage collections long.
    """

    start: float
    end: float
    lanes: tuple[LaneReport, ...]
    error: type[Exception] | None = None
    said: str = ""

    @property
    def over(self) -> float:
        """Seconds beyond the deadline."""
        return self.end - self.start - DEADLINE


@dataclass
class Load:
    """Recalls and writers at work on one space."""

    space: AsyncSpace
    chance: random.Random
    asked: list[Asked] = field(default_factory=list)
    stored: dict[str, str] = field(default_factory=dict)
    """What was acknowledged: ids by text."""
    forgotten: set[str] = field(default_factory=set)
    """Texts whose forgetting was begun."""
    refused: Counter[str] = field(default_factory=Counter)
    recalling: bool = True
    writing: bool = True

    async def recall(self, caller: int) -> None:
        """Ask, and ask again."""
        for number in count():
            if not self.recalling:
                return
            question = f"{' '.join(self.chance.choices(WORDS, k=3))} q{caller}x{number}"
            start = time.monotonic()
            try:
                answer = await self.space.recall(question)
                self.asked.append(Asked(start, time.monotonic(), answer.lanes))
            except Exception as error:  # noqa: BLE001  # whatever it is, it is judged
                lanes = getattr(error, "lanes", ())
                self.asked.append(Asked(start, time.monotonic(), lanes, type(error), str(error)))
            await asyncio.sleep(self.chance.uniform(*PAUSES["recall"]))

    async def write(self, writer: int) -> None:
        """Remember, link, change and forget; what fails is tried again until it is acknowledged."""
        mine: list[str] = []
        for number in count():
            if not self.writing:
                return
            text = f"{' '.join(self.chance.choices(WORDS, k=8))} w{writer}x{number}"
            await self._insist(self._remember, text)
            mine.append(text)
            if number % 3 == 1:
                await self._insist(self._link, *mine[-2:])
            if number % 4 == 3:
                await self._insist(self._tag, mine[-1])
            if number % 5 == 4:
                await self._insist(self._forget, mine.pop(self.chance.randrange(len(mine) - 1)))
            await asyncio.sleep(self.chance.uniform(*PAUSES["write"]))

    async def _insist(self, work: Callable[..., Awaitable[None]], *texts: str) -> None:
        while True:
            try:
                return await work(*texts)
            except BackendUnavailable as error:
                self.refused[type(error).__name__] += 1
                await asyncio.sleep(0.2)

    async def _remember(self, text: str) -> None:
        self.stored[text] = (await self.space.remember(text)).memory.id

    async def _link(self, one: str, other: str) -> None:
        await self.space.link(self.stored[one], self.stored[other], relation="after", strength=0.8)

    async def _tag(self, text: str) -> None:
        await self.space.update(self.stored[text], tags=["changed"])

    async def _forget(self, text: str) -> None:
        self.forgotten.add(text)
        await self.space.forget(self.stored[text])


class LoopLag:
    """How late the event loop is with what is due: what the machine, not the memory, adds to a wait."""

    STEP = 0.01

    def __init__(self) -> None:
        self._at: list[float] = []
        self._lag: list[float] = []

    async def watch(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(self.STEP)
            now = time.monotonic()
            self._at.append(now)
            self._lag.append(now - before - self.STEP)

    def worst(self, start: float, end: float) -> float:
        """The longest wait for the loop between two times."""
        return max(self._between(start, end), default=0.0)

    def held_up(self, start: float, end: float) -> float:
        """Seconds between two times in which this process did not listen, and which no engine is charged for."""
        return sum(lag for lag in self._between(start, end) if lag > HELD_UP)

    def _between(self, start: float, end: float) -> list[float]:
        first, last = bisect_left(self._at, start), bisect_left(self._at, end)
        return self._lag[first : last + 1]


@contextmanager
def running(*work: Awaitable[None]) -> Iterator[list[asyncio.Task[None]]]:
    """Have work done meanwhile; what is still under way at the end is stopped."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()


def untrue(asked: Asked, trouble: Trouble) -> list[str]:
    """What was said of the lanes, or of the recall, and cannot be so."""
    found = [
        f"{lane.lane} {lane.status} ({lane.ms:.0f} ms, {lane.reason!r}) {why}"
        for lane in asked.lanes
        if (why := _contradiction(lane, asked, trouble))
    ]
    if asked.error is not None:
        if not issubclass(asked.error, RecallFailed):
            found.append(f"no answer, and no RecallFailed: {asked.error.__name__} {asked.said}")
        elif trouble.was_well("postgres", asked.start, asked.end):
            found.append(f"no answer while the store was well: {asked.said}")
    return [f"{word} [recall of {asked.end - asked.start:.2f} s; {trouble.before(asked.end)}]" for word in found]


def _contradiction(lane: LaneReport, asked: Asked, trouble: Trouble) -> str:
    if lane.status == "ok":
        away = [engine for engine in NEEDS[lane.leg] if trouble.was_away(engine, asked.start, asked.end)]
        return f"while {away[0]} was away" if away else ""
    if not lane.reason:
        return "without a reason"
    if not all(trouble.was_well(engine, asked.start, asked.end) for engine in EXCUSES[lane.leg]):
        return ""
    if lane.status == "late":  # which a busy machine may be: then it took its time
        return "and yet was not late" if lane.ms < 1000 * DEADLINE * 0.9 else ""
    return f"while {' and '.join(EXCUSES[lane.leg])} were well"


def spread(values: Sequence[float]) -> str:
    """Some quantiles, in milliseconds."""
    ordered = sorted(values) or [0.0]
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "most": 1.0}
    return ", ".join(f"{name} {1000 * ordered[int(share * (len(ordered) - 1))]:.0f}" for name, share in shares.items())
