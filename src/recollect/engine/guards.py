"""What stands before each engine that a recall asks: a circuit breaker, a bound on the calls under way, one more try
where that is safe, and a time after which a call has failed. All that a recall waits for, it waits for here.

A slow engine costs its callers their deadline and no more, and takes nothing from the other engines: what cannot be
stopped is bounded in number. An engine that runs inside this process is not slow; the processor may be busy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from math import inf, isinf
from typing import Any, Generic, TypeVar

from recollect.engine.breaker import FIRST_PAUSE, LONGEST_PAUSE, Breaker, Ticket
from recollect.engine.presence import Presence
from recollect.errors import (
    BackendTimeout,
    BackendUnavailable,
    ConfigError,
    EmbeddingMismatch,
    EmbeddingRefused,
    IndexBuilding,
    InvalidRequest,
    NotAllowed,
    NotFound,
    RecollectError,
)
from recollect.legs.waiting import Patience, Stopped, Waiting, is_being_cancelled, patience_here
from recollect.ports import Engine
from recollect.recipes import DEADLINE

T = TypeVar("T")

ROOM = 32
"""Calls under way on one engine, at most: 32 recalls at once do not wait for each other on a healthy one. It is more
than an engine works on side by side on a few cores, so further calls lose nothing by waiting here instead of there.
"""
LONGEST = 30.0
"""Seconds after which a call to an engine outside this process has failed, at most. It has what its caller would wait,
and no less than a lane waits by default: so an engine that is known to be slow can be given more time, and a caller in
a hurry cannot make an engine look broken which answers in time for the others.
"""
AT_ONCE = 0.25
"""A call that fails within so many seconds is tried once more: most often its connection was cut by a restart. One that
fails later has had its chance, and used up its caller's time.
"""
CLOSING = 1.0
"""Seconds that the end of a client waits for calls that do not heed being cancelled."""

NOT_THE_ENGINES_FAULT = (
    ConfigError, EmbeddingMismatch, EmbeddingRefused, IndexBuilding, InvalidRequest, NotAllowed, NotFound, Stopped,
)  # fmt: skip
"""What says nothing about an engine's health: the caller's mistakes, a space's own key, and a caller who has gone."""


class Skipped(BackendUnavailable):
    """The engine was not asked: it failed too often, and is left alone for a while."""


def in_words(error: BaseException) -> str:
    """What went wrong, for a report. Our own errors and timeouts are words already."""
    spoken = isinstance(error, RecollectError | TimeoutError) and str(error)
    return spoken or f"{type(error).__name__}: {error}"


class Guard:
    """Stands before one engine, for reads. `name` is what messages call it. One that runs `in_process` has all the time
    that its caller has.
    """

    def __init__(
        self,
        name: str,
        *,
        in_process: bool = False,
        room: int = ROOM,
        least: float = DEADLINE,
        longest_pause: float = LONGEST_PAUSE,
        clock: Callable[[], float] = time.monotonic,
        presence: Presence | None = None,
    ) -> None:
        self.name = name
        self._presence = presence or Presence(name)
        self.in_process = in_process
        self.least = least
        self._breaker = Breaker(clock, longest_pause)
        self._room = asyncio.Semaphore(room)
        self._under_way: set[asyncio.Task[Any]] = set()

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` gives. Raises Skipped at once while the breaker is open, and BackendTimeout.

        When it is time to try the engine again, this very call does it, beside the answer that goes out without it.
        """
        if self._breaker.is_open:
            await self._probe(work)
            raise self._skipped()
        patience = patience_here()
        if self.in_process and isinf(patience.until):
            return await self._inside(work)
        await (self._wait_for_room(patience) if self._room.locked() else self._room.acquire())
        if self._breaker.is_open:  # since this call began to wait for room
            self._room.release()
            raise self._skipped()
        return await self._begin(self._breaker.ticket(), work, patience).answered()

    async def _inside(self, work: Callable[[], Awaitable[T]]) -> T:
        """Nothing hangs in here, so nothing is timed."""
        ticket = self._breaker.ticket()
        try:
            answer = await _tried(work)
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            raise self.stopped() from None
        except BaseException as error:
            self.judge(ticket, error)
            raise
        self.judge(ticket, None)
        return answer

    async def _wait_for_room(self, patience: Patience) -> None:
        getting = asyncio.ensure_future(self._room.acquire())
        waiting = Waiting(patience, getting.cancel, outside=not self.in_process)
        try:
            await getting
        except asyncio.CancelledError:
            if getting.done() and not getting.cancelled():
                self._room.release()
            if is_being_cancelled():
                raise
            raise self.late(patience.seconds) from None
        finally:
            waiting.end()

    def late(self, seconds: float) -> BackendTimeout:
        return BackendTimeout(f"{self.name} gave no answer within {seconds:.2g} s", backend=self.name)

    def judge(self, ticket: Ticket, error: BaseException | None) -> None:
        """Take note of how a call ended."""
        was_open = self._breaker.is_open
        if error is None:
            self._breaker.succeeded(ticket)
        elif isinstance(error, NOT_THE_ENGINES_FAULT) or (self.in_process and isinstance(error, BackendTimeout)):
            self._breaker.unknown(ticket)
        else:
            self._breaker.failed(ticket, in_words(error))
        if self._breaker.is_open and not was_open:
            self._presence.lost(self.name, self._breaker.why_open())
        elif was_open and not self._breaker.is_open:
            self._presence.found(self.name)

    def why_skipped(self) -> str:
        """Why the engine is left alone; "" while it is asked."""
        return self._breaker.why_open()

    async def close(self) -> None:
        """Stop what is under way."""
        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=CLOSING)

    async def _probe(self, work: Callable[[], Awaitable[T]]) -> None:
        if not self._room.locked() and (ticket := self._breaker.probe()):
            await self._room.acquire()  # which is there, so that this does not wait
            self._begin(ticket, work, Patience()).answer.cancel()

    def _begin(self, ticket: Ticket, work: Callable[[], Awaitable[T]], patience: Patience) -> _Call[T]:
        call = _Call(self, ticket, work, patience)
        self._under_way.add(call.task)
        call.task.add_done_callback(self._ended)
        return call

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        self._room.release()

    def stopped(self) -> Stopped:
        return Stopped(f"a call to {self.name} was stopped", backend=self.name)

    def _skipped(self) -> Skipped:
        return Skipped(f"{self.name} {self._breaker.why_open()}", backend=self.name)


async def _tried(work: Callable[[], Awaitable[T]]) -> T:
    """What `work` gives, at the second try if the first failed at once; never after a timeout."""
    started = time.monotonic()
    try:
        return await work()
    except BackendUnavailable as error:
        if isinstance(error, BackendTimeout) or time.monotonic() - started > AT_ONCE:
            raise
    return await work()


class _Call(Generic[T]):
    """One call under way: its answer, for whoever waits, and what it says of the engine, known at its end or when it
    took too long. A caller whose patience is over leaves it to that; one who leaves earlier has no more use for it.
    """

    def __init__(self, guard: Guard, ticket: Ticket, work: Callable[[], Awaitable[T]], patience: Patience) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[T] = loop.create_future()
        self._guard = guard
        self._ticket = ticket
        self._concluded = False
        outside = not guard.in_process
        self._engines = Patience(min(max(guard.least, patience.seconds), LONGEST) if outside else inf)
        self._callers = patience
        self._waits = (
            Waiting(self._engines, self._late, outside=outside),
            Waiting(self._callers, self._leave, outside=outside),
        )
        self.task = loop.create_task(self._run(work))
        self.task.add_done_callback(self._ended)

    async def answered(self) -> T:
        try:
            return await self.answer
        except asyncio.CancelledError:
            if not self._callers.over:
                self.task.cancel()
            raise
        finally:
            self._waits[1].end()

    async def _run(self, work: Callable[[], Awaitable[T]]) -> None:
        """An answer is told from here, a turn of the event loop before the task's end would tell it."""
        answer = await _tried(work)
        if self._concludes(None):
            self.answer.set_result(answer)

    def _leave(self) -> None:
        """The caller's patience is over. Inside this process, nobody has a use for the work any more."""
        if self._guard.in_process:
            self.task.cancel()
        if not self.answer.done():
            self.answer.set_exception(self._guard.late(self._callers.seconds))

    def _late(self) -> None:
        self._fail(self._guard.late(self._engines.seconds))
        self.task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            self._fail(self._guard.stopped())
        elif error := task.exception():
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._concludes(error):
            self.answer.set_exception(error)

    def _concludes(self, error: BaseException | None) -> bool:
        """Whether this is to be told. The first conclusion counts: an answer that comes after the call was late came
        too late; and whoever waited may have gone.
        """
        if self._concluded:
            return False
        self._concluded = True
        for waiting in self._waits:
            waiting.end()
        self._guard.judge(self._ticket, error)
        return not self.answer.done()


class Guards:
    """The guards of one client, one per leg and engine: an engine that answers two legs may fail in one of them."""

    def __init__(self, make: Callable[..., Guard] = Guard) -> None:
        self._make = make
        self._known: dict[tuple[str, str], Guard] = {}
        self._presences: dict[str, Presence] = {}

    def presence(self, engine: str) -> Presence:
        """Whether an engine is there, in what all its callers have found."""
        return self._presences.setdefault(engine, Presence(engine))

    def of(self, leg: str, engine: Engine) -> Guard:
        """The guard of what answers a leg, e.g. of Qdrant for "vector", or of an embedder for "embedder"."""
        return self._one(leg, engine, LONGEST_PAUSE)

    def of_rows(self, store: Engine) -> Guard:
        """The guard of a store's rows. There is no answer without them, so they are tried again each second."""
        return self._one("rows", store, FIRST_PAUSE)

    def _one(self, leg: str, engine: Engine, longest_pause: float) -> Guard:
        if (leg, engine.name) not in self._known:
            self._known[leg, engine.name] = self._make(
                f"{engine.name} ({leg})",
                in_process=engine.in_process,
                longest_pause=longest_pause,
                presence=self.presence(engine.name),
            )
        return self._known[leg, engine.name]

    async def close(self) -> None:
        """Stop what is under way."""
        await asyncio.gather(*(guard.close() for guard in self._known.values()))
