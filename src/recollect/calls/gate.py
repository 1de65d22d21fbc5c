"""The gate before an engine: a circuit breaker, a bound on the calls under way, one retry where that is safe, and a
time after which a call has failed. All that a recall waits for, it waits for here.

A slow engine costs its callers their deadline and no more, and takes nothing from the other engines: what cannot be
stopped is bounded in number. An engine that runs inside this process is not slow; the processor may be busy.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from inspect import isasyncgenfunction
from math import inf, isinf
from typing import Any, Generic, TypeVar, cast

from recollect.calls.breaker import FIRST_PAUSE, LONGEST_PAUSE, SpaceBreakers, Ticket
from recollect.calls.deadline import Deadline, Stopped, Wait, current_deadline, is_being_cancelled
from recollect.calls.presence import Presence
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
from recollect.ports import Engine
from recollect.recipes import DEADLINE

T = TypeVar("T")
E = TypeVar("E")
_log = logging.getLogger(__name__)

ROOM = 32
"""Calls under way on one engine, at most: 32 recalls at once do not wait for each other on a healthy one. It is more
than an engine works on side by side on a few cores, so further calls lose nothing by waiting here instead of there.
"""
LONGEST = 30.0
"""Seconds after which a call to an engine outside this process has failed, at most. It has what its caller would wait,
and no less than a lane waits by default: so an engine that is known to be slow can be given more time, and a caller in
a hurry cannot make an engine look broken which answers in time for the others.
"""
RETRY_WITHIN = 0.25
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


def no_answer(asked: str, seconds: float) -> BackendTimeout:
    """What a caller gets whose deadline is over."""
    error = BackendTimeout(f"{asked} gave no answer within {seconds:.3g} s", backend=asked)
    error.charged_to = asked
    return error


class Gate:
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
        self._breakers = SpaceBreakers(clock, longest_pause)
        self._room = asyncio.Semaphore(room)
        self._under_way: set[asyncio.Task[Any]] = set()

    async def call(self, work: Callable[[], Awaitable[T]], space: str = "") -> T:
        """What `work` gives, for a space. Raises Skipped at once while the breaker is open, and BackendTimeout.

        When it is time to try the engine again, this very call does it, beside the answer that goes out without it.
        """
        if self._breakers.open_for(space):
            await self._probe(work, space)
            raise self._skipped(space)
        deadline, asking = current_deadline(), _asking.get()
        if self.in_process and asking is None and isinf(deadline.until):
            return await self._inside(work, space)
        if asking is not None:
            asking.asks(self.name)
        try:
            await (self._wait_for_room(deadline) if self._room.locked() else self._room.acquire())
            if self._breakers.open_for(space):  # since this call began to wait for room
                self._room.release()
                raise self._skipped(space)
            return await self._begin(self._breakers.ticket(space), work, deadline).answered()
        finally:
            if asking is not None:
                asking.asks("")

    async def _inside(self, work: Callable[[], Awaitable[T]], space: str) -> T:
        """Nothing hangs in here, so nothing is timed."""
        ticket = self._breakers.ticket(space)
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

    async def _wait_for_room(self, deadline: Deadline) -> None:
        getting = asyncio.ensure_future(self._room.acquire())
        wait = Wait(deadline, getting.cancel, outside=not self.in_process)
        try:
            await getting
        except asyncio.CancelledError:
            if getting.done() and not getting.cancelled():
                self._room.release()
            if is_being_cancelled():
                raise
            raise no_answer(self.name, deadline.seconds) from None
        finally:
            wait.end()

    def judge(self, ticket: Ticket, error: BaseException | None) -> None:
        """Take note of how a call ended. A failure that another gate has taken note of already is not this engine's."""
        if error is None:
            if not ticket.probe:
                self._breakers.succeeded(ticket)
                return
            self._noted(ticket, self._breakers.succeeded)
            return
        charged = isinstance(error, RecollectError) and error.charged_to not in ("", self.name)
        timed_out = isinstance(error, BackendTimeout)
        if charged or isinstance(error, NOT_THE_ENGINES_FAULT) or (self.in_process and timed_out):
            self._breakers.unknown(ticket)
            return
        if isinstance(error, RecollectError):
            error.charged_to = self.name
        self._noted(ticket, partial(self._breakers.failed, reason=in_words(error), timed_out=timed_out))

    def _noted(self, ticket: Ticket, note: Callable[[Ticket], None]) -> None:
        """Log it when the engine goes or comes back by this: for all, or for a space."""
        was_open, was_open_for = self._breakers.all.is_open, self._breakers.open_for(ticket.space)
        note(ticket)
        if self._breakers.all.is_open and not was_open:
            self._presence.lost(self.name, self._breakers.all.why_open())
        elif was_open and not self._breakers.all.is_open:
            self._presence.found(self.name)
        elif (own := self._breakers.open_for(ticket.space)) and not was_open_for:
            _log.warning("%s is left alone for space %r: %s", self.name, ticket.space, own.why_open())
        elif was_open_for and not own:
            _log.info("%s is asked again for space %r", self.name, ticket.space)

    def why_skipped(self, space: str = "") -> str:
        """Why the engine is left alone, for all or for a space; "" while it is asked."""
        breaker = self._breakers.open_for(space)
        return breaker.why_open() if breaker else ""

    async def close(self) -> None:
        """Stop what is under way."""
        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=CLOSING)

    async def _probe(self, work: Callable[[], Awaitable[T]], space: str) -> None:
        if not self._room.locked() and (ticket := self._breakers.probe(space)):
            await self._room.acquire()  # which is there, so that this does not wait
            self._begin(ticket, work, Deadline()).answer.cancel()

    def _begin(self, ticket: Ticket, work: Callable[[], Awaitable[T]], deadline: Deadline) -> _Call[T]:
        call = _Call(self, ticket, work, deadline)
        self._under_way.add(call.task)
        call.task.add_done_callback(self._ended)
        return call

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        self._room.release()

    def stopped(self) -> Stopped:
        return Stopped(f"a call to {self.name} was stopped", backend=self.name)

    def _skipped(self, space: str) -> Skipped:
        error = Skipped(f"{self.name} {self.why_skipped(space)}", backend=self.name)
        error.charged_to = self.name
        return error


async def _tried(work: Callable[[], Awaitable[T]]) -> T:
    """What `work` gives, at the second try if the first failed at once; never after a timeout, nor where the failure is
    that of another engine, which was tried twice already.
    """
    started = time.monotonic()
    try:
        return await work()
    except BackendUnavailable as error:
        if isinstance(error, BackendTimeout) or error.charged_to or time.monotonic() - started > RETRY_WITHIN:
            raise
    return await work()


class _Call(Generic[T]):
    """One call under way: its answer, for whoever waits, and what it says of the engine, known at its end or when it
    took too long. A caller whose deadline is over leaves it to that; one who leaves earlier has no more use for it.
    """

    def __init__(self, gate: Gate, ticket: Ticket, work: Callable[[], Awaitable[T]], deadline: Deadline) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[T] = loop.create_future()
        self._gate = gate
        self._ticket = ticket
        self._concluded = False
        self._asked = gate.name
        outside = not gate.in_process
        self._engines = Deadline(min(max(gate.least, deadline.seconds), LONGEST) if outside else inf)
        self._callers = deadline
        self._engine_wait = Wait(self._engines, self._late, outside=outside)
        self._caller_wait = Wait(self._callers, self._leave, outside=outside)
        self.task = loop.create_task(self._run(work))
        self.task.add_done_callback(self._ended)

    def asks(self, other: str) -> None:
        """The engine asks another one, or has its answer (""): meanwhile its own time stands still."""
        self._asked = other or self._gate.name
        if self._concluded:
            return
        if other:
            self._engine_wait.end()
        else:
            self._engine_wait.begin()

    async def answered(self) -> T:
        try:
            return await self.answer
        except asyncio.CancelledError:
            if not self._callers.over:
                self.task.cancel()
            raise
        finally:
            self._caller_wait.end()

    async def _run(self, work: Callable[[], Awaitable[T]]) -> None:
        """An answer is told from here, a turn of the event loop before the task's end would tell it."""
        _asking.set(self)
        answer = await _tried(work)
        if self._concludes(None):
            self.answer.set_result(answer)

    def _leave(self) -> None:
        """The caller's deadline is over. Inside this process, nobody has a use for the work any more."""
        if self._gate.in_process:
            self.task.cancel()
        if not self.answer.done():
            self.answer.set_exception(no_answer(self._asked, self._callers.seconds))

    def _late(self) -> None:
        self._fail(no_answer(self._gate.name, self._engines.seconds))
        self.task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            self._fail(self._gate.stopped())
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
        self._engine_wait.end()
        self._caller_wait.end()
        self._gate.judge(self._ticket, error)
        return not self.answer.done()


_asking: ContextVar[_Call[Any] | None] = ContextVar("asking", default=None)
"""The call on whose behalf an engine asks another one."""


class _Gated:
    """An engine whose methods pass its gate. Each takes the space first, or by name. Streams do not pass it: nobody
    waits for the whole of one.
    """

    def __init__(self, engine: object, gate: Gate) -> None:
        self._engine = engine
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if not callable(found) or isasyncgenfunction(found):
            return found

        def call(*args: Any, **named: Any) -> Awaitable[Any]:
            return self._gate.call(partial(found, *args, **named), named.get("space") or args[0])

        setattr(self, name, call)  # the next one finds it there
        return call


def gated(engine: E, gate: Gate) -> E:
    """The engine behind its gate: the same methods, each of them a call."""
    return cast("E", _Gated(engine, gate))


class Gates:
    """The gates of one client, one per leg and engine: an engine that answers two legs may fail in one of them."""

    def __init__(self, make: Callable[..., Gate] = Gate) -> None:
        self._make = make
        self._known: dict[tuple[str, str], Gate] = {}
        self._presences: dict[str, Presence] = {}

    def presence(self, engine: str) -> Presence:
        """Whether an engine is there, in what all its callers have found."""
        return self._presences.setdefault(engine, Presence(engine))

    def of(self, leg: str, engine: Engine) -> Gate:
        """The gate of what answers a leg, e.g. of Qdrant for "vector", or of an embedder for "embedder"."""
        return self._one(leg, engine, LONGEST_PAUSE)

    def of_rows(self, store: Engine) -> Gate:
        """The gate of a store's rows. There is no answer without them, so they are tried again each second."""
        return self._one("rows", store, FIRST_PAUSE)

    def _one(self, leg: str, engine: Engine, longest_pause: float) -> Gate:
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
        await asyncio.gather(*(gate.close() for gate in self._known.values()))
