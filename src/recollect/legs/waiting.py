"""How long a recall waits. Deadlines are for engines that hang, not for a processor that is busy: a wait is charged for
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

STEP: Final = 0.25
"""Seconds charged at a time."""

NOTHING: Final = 0.001
"""Seconds that are not worth a timer: sums of floats rarely come out even."""
HELD_UP: Final = 0.05
"""Seconds by which a timer fires late where this process, not the engine, was held up. Nothing of that time is charged;
and a wait that would be over gets as much again, once: the answer may have come meanwhile, unread.
"""

_loose: set[asyncio.Task[Any]] = set()
"""Work that was let go and has not ended yet: the event loop alone would not keep it from being collected."""


class Stopped(BackendUnavailable):
    """The work was cancelled by somebody else than the one who waits: what it asked is being closed."""


class Patience:
    """How many seconds somebody waits for engines outside this process, and until when (on the monotonic clock) for
    anything at all.
    """

    def __init__(self, seconds: float = DEADLINE, until: float = inf) -> None:
        self.seconds = seconds
        self.until = until
        self.spent = 0.0
        self.over = False
        """Whether somebody has waited in vain: what was asked is left to come to its end, and to be judged by it."""
        self._charged_to = 0.0

    @property
    def left(self) -> float:
        """Seconds for engines outside this process."""
        return min(self.seconds - self.spent, self.until - time.monotonic())

    def charge(self, since: float, to: float) -> None:
        """Time that two waits have in common is charged once."""
        self.spent += max(0.0, to - max(since, self._charged_to))
        self._charged_to = max(self._charged_to, to)


class Waiting:
    """One wait, charged to a patience from its beginning to `end`. `over` is called when nothing is left; with a
    `share`, when so much of the patience is spent.
    """

    def __init__(self, patience: Patience, over: Callable[[], object], *, outside: bool, share: float = 1.0) -> None:
        self._patience = patience
        self._over = over
        self._outside = outside
        self._kept = (1 - share) * patience.seconds if share < 1 else 0.0
        self._was_held_up = False
        self._timer: asyncio.TimerHandle | None = None
        if outside or not isinf(patience.until):
            self._begin(self._left())

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._charge(min(time.monotonic(), self._since + self._step))

    def _left(self) -> float:
        patience = self._patience
        return (patience.left if self._outside else patience.until - time.monotonic()) - self._kept

    def _begin(self, seconds: float) -> None:
        self._since = time.monotonic()
        self._step = min(max(seconds, 0.0), STEP) if self._outside else seconds
        if not isinf(self._step):
            self._timer = asyncio.get_running_loop().call_later(self._step, self._tick)

    def _tick(self) -> None:
        now = time.monotonic()
        held_up = now - self._since - self._step > HELD_UP
        self._charge(self._since + self._step if held_up else now)
        if (left := self._left()) > NOTHING:
            self._begin(left)
        elif held_up and not self._was_held_up:
            self._was_held_up = True
            self._begin(HELD_UP)
        else:
            self._timer = None
            self._patience.over = True
            self._over()

    def _charge(self, to: float) -> None:
        if self._outside:
            self._patience.charge(self._since, to)


_patience: ContextVar[Patience | None] = ContextVar("patience", default=None)
"""Of whoever asks. Ambient, because the ports do not speak of time."""


def patience_here() -> Patience:
    """The patience of whoever asks; where nobody said, as much as a lane has."""
    return _patience.get() or Patience()


def time_left() -> float:
    """Seconds that whoever asks still waits for engines outside this process."""
    return patience_here().left


@contextmanager
def waiting_with(patience: Patience) -> Iterator[None]:
    """What is asked in here, is asked by somebody with this patience."""
    token = _patience.set(patience)
    try:
        yield
    finally:
        _patience.reset(token)


def start(patience: Patience, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin work on behalf of somebody with this patience."""
    with waiting_with(patience):
        return asyncio.create_task(work)


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives, where engines outside this process get so many seconds for it. Raises BackendTimeout."""
    outer, inner = patience_here(), Patience(seconds)
    with waiting_with(inner):
        try:
            return await work
        finally:
            outer.spent += inner.spent


def is_being_cancelled() -> bool:
    """Whether a CancelledError here means that our own caller has gone, and not that the work was stopped."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def let_go(task: asyncio.Task[Any]) -> None:
    """Cancel what nobody waits for any more, without waiting for its end."""
    task.cancel()
    _loose.add(task)
    task.add_done_callback(_ended)


def _ended(task: asyncio.Task[Any]) -> None:
    _loose.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report a failure that concerns nobody
