"""Waiting that ends. Whatever is asked under a deadline can know of it, and nobody waits longer than that, also for
work that does not heed being cancelled: a thread inside a C library, a driver that waits for its server's consent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from recollect.errors import BackendUnavailable

T = TypeVar("T")

_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))
"""When whoever asks will be gone, on the monotonic clock. Ambient, because the ports do not speak of time."""

_loose: set[asyncio.Task[Any]] = set()
"""Work that was let go and has not ended yet: the event loop alone would not keep it from being collected."""


class Stopped(BackendUnavailable):
    """The work was cancelled by somebody else than the one who waits: what it asked is being closed."""


def time_left() -> float:
    """Seconds until whoever asks will be gone; infinite where nobody said."""
    return _deadline.get() - time.monotonic()


def start(seconds: float, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin work whose askers will be gone after so many seconds."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        return asyncio.create_task(work)
    finally:
        _deadline.reset(token)


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives. Raises TimeoutError when it takes longer; it then ends in its own time."""
    task = start(seconds, work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise TimeoutError(f"no answer within {seconds:.3g} s")
        if task.cancelled():  # not by us: a CancelledError would look as if our own caller had gone
            raise Stopped("it was stopped while under way", backend="recollect")
        return task.result()
    finally:
        let_go(task)


def let_go(task: asyncio.Task[Any]) -> None:
    """Cancel what nobody waits for any more, without waiting for its end."""
    task.cancel()
    _loose.add(task)
    task.add_done_callback(_ended)


def _ended(task: asyncio.Task[Any]) -> None:
    _loose.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report a failure that concerns nobody
