"""How long a caller waits. Deadlines are for engines that hang, not for a processor that is busy: a wait is charged for
the time in which an engine outside this process was waited for and this process was there to listen. What runs inside
the process costs nothing, unless the caller gave a deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf, isinf
from typing import Any, Final, TypeVar

from recollect.errors import BackendUnavailable
from recollect.recipes import DEADLINE

T = TypeVar("T")

STEP: Final = 0.05
"""Seconds charged at a time. Small, because others read what is spent while a wait is under way."""

NOTHING: Final = 0.001
"""Seconds that are not worth a timer: sums of floats rarely come out even."""
HELD_UP: Final = 0.05
"""Seconds by which a timer fires late where this process, not the engine, was held up. Nothing of that time is charged;
and a wait that would be over gets as much again, once: the answer may have come meanwhile, unread.
"""

LONGEST_WAIT: Final = 30.0
"""Seconds that a recall waits for its turn."""

_loose: set[asyncio.Task[Any]] = set()
"""Work that was let go and has not ended yet: the event loop alone would not keep it from being collected."""


class Admission:
    """So many recalls are under way at once, and the others wait before their deadlines begin: `async with admission`.
    They begin in the order in which they came; BackendUnavailable is raised when the turn of one does not come.

    Work that an engine cannot do in time is not done in time by beginning all of it at once: everybody would be late.
    """

    def __init__(self, at_once: int, longest_wait: float = LONGEST_WAIT) -> None:
        self._at_once = at_once
        self._longest_wait = longest_wait
        self._room = asyncio.Semaphore(at_once)

    async def __aenter__(self) -> None:
        if not self._room.locked():
            await self._room.acquire()
            return
        try:
            async with asyncio.timeout(self._longest_wait):
                await self._room.acquire()
        except TimeoutError:
            raise BackendUnavailable(
                f"{self._at_once} recalls are under way and more are waiting, this one for {self._longest_wait:g} s: "
                "ask again later, or ask less at once",
                backend="recollect",
            ) from None

    async def __aexit__(self, *_: object) -> None:
        self._room.release()


class Stopped(BackendUnavailable):
    """The work was cancelled by somebody else than the one who waits: what it asked is being closed."""


class Deadline:
    """How many seconds a caller waits for engines outside this process, and until when (on the monotonic clock) for
    anything at all. What is charged to a deadline is charged to the one that it is `part_of`, too.
    """

    def __init__(self, seconds: float = DEADLINE, until: float = inf, part_of: Deadline | None = None) -> None:
        self.seconds = seconds
        self.until = until
        self.spent = 0.0
        self.over = False
        """Whether somebody has waited in vain: what was asked is left to come to its end, and to be judged by it."""
        self._part_of = part_of
        self._charged_to = 0.0

    @property
    def left(self) -> float:
        """Seconds for engines outside this process."""
        return min(self.seconds - self.spent, self.until - time.monotonic())

    def charge(self, since: float, to: float) -> None:
        """Time that two waits have in common is charged once."""
        self.spent += max(0.0, to - max(since, self._charged_to))
        self._charged_to = max(self._charged_to, to)
        if self._part_of is not None:
            self._part_of.charge(since, to)


class Wait:
    """One wait, charged to a deadline from its beginning to `end`. `over` is called when nothing is left; with a
    `share`, when so much of the deadline is spent.
    """

    def __init__(self, deadline: Deadline, over: Callable[[], object], *, outside: bool, share: float = 1.0) -> None:
        self._deadline = deadline
        self._over = over
        self._outside = outside
        self._kept = (1 - share) * deadline.seconds if share < 1 else 0.0
        self._was_held_up = False
        self._timer: asyncio.TimerHandle | None = None
        self.begin()

    def begin(self) -> None:
        """Go on after an `end` that was only a pause."""
        if self._outside or not isinf(self._deadline.until):
            self._next(self._left())

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._charge(min(time.monotonic(), self._since + self._step))

    def _left(self) -> float:
        deadline = self._deadline
        return (deadline.left if self._outside else deadline.until - time.monotonic()) - self._kept

    def _next(self, seconds: float) -> None:
        self._since = time.monotonic()
        self._step = min(max(seconds, 0.0), STEP) if self._outside else seconds
        if not isinf(self._step):
            self._timer = asyncio.get_running_loop().call_later(self._step, self._tick)

    def _tick(self) -> None:
        now = time.monotonic()
        held_up = now - self._since - self._step > HELD_UP
        self._charge(self._since + self._step if held_up else now)
        if (left := self._left()) > NOTHING:
            self._next(left)
        elif held_up and not self._was_held_up:
            self._was_held_up = True
            self._next(HELD_UP)
        else:
            self._timer = None
            self._deadline.over = True
            self._over()

    def _charge(self, to: float) -> None:
        if self._outside:
            self._deadline.charge(self._since, to)


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)
"""Of whoever asks. Ambient, because the ports do not speak of time."""


def current_deadline() -> Deadline:
    """The deadline of whoever asks; where nobody gave one, as much time as a lane has."""
    return _current.get() or Deadline()


@contextmanager
def on_deadline(deadline: Deadline) -> Iterator[None]:
    """What is asked in here is asked on this deadline."""
    token = _current.set(deadline)
    try:
        yield
    finally:
        _current.reset(token)


def start(deadline: Deadline, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin work on this deadline."""
    token = _current.set(deadline)
    try:
        return asyncio.create_task(work)
    finally:
        _current.reset(token)


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives, where engines outside this process get so many seconds of the caller's time for it. Raises
    BackendTimeout.
    """
    token = _current.set(Deadline(seconds, part_of=_current.get()))
    try:
        return await work
    finally:
        _current.reset(token)


def is_being_cancelled() -> bool:
    """Whether a CancelledError here means that our own caller has gone, and not that the work was stopped."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def let_go(task: asyncio.Task[Any]) -> None:
    """Cancel what nobody waits for any more, without waiting for its end."""
    if not task.done():
        task.cancel()
        _loose.add(task)
        task.add_done_callback(_loose.discard)
        task.add_done_callback(let_go)
    elif not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report a failure that concerns nobody
