"""A circuit breaker: an engine that keeps failing is left alone for a while, then tried by one call.

    closed ── 5 of the last 10 calls failed ──> open ── the pause is over ──> one call goes through
      ^                                          ^                                  |
      └────────────── it succeeded ──────────────│────────── it failed: twice the pause

A state machine and nothing else: it reads a clock, it starts nothing and waits for nothing. See Nygard, "Release It!".
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

RECENT = 10
FAILURES = 5
"""It opens when so many of the most recent calls failed. Calls are counted, not seconds, so that an agent which asks
once a minute is served as well as a server that is asked a thousand times a second. Five in a row are no accident, as
one lost connection or one hard question would be; half of ten is an engine on which every second caller waits in vain.
"""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 10.0
"""Seconds between two tries: at first the time of a restart; each pause is twice the one before, and none so long that
an engine which is back stays unused for longer than this. A try each 10 s is no load, even from many processes.
"""


class Ticket(NamedTuple):
    """Leave to make one call. Its outcome counts as long as the breaker has not opened or closed since."""

    epoch: int
    probe: bool = False


class Breaker:
    """Whether calls to one engine are let through, by how its recent ones ended."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, longest_pause: float = LONGEST_PAUSE) -> None:
        self._clock = clock
        self._longest_pause = longest_pause
        self._epoch = 0
        self._recent: deque[bool] = deque(maxlen=RECENT)
        self._failures = 0
        self._last = ""
        self._pause = FIRST_PAUSE
        self._again_at: float | None = None
        self._probing = False

    @property
    def is_open(self) -> bool:
        return self._again_at is not None

    def ticket(self) -> Ticket:
        """For a call while the breaker is closed."""
        return Ticket(self._epoch)

    def probe(self) -> Ticket | None:
        """For the one call that tries an open breaker's engine again: none before the pause is over, and none while
        another is under way.
        """
        if self._again_at is None or self._probing or self._clock() < self._again_at:
            return None
        self._probing = True
        return Ticket(self._epoch, probe=True)

    def succeeded(self, ticket: Ticket) -> None:
        if ticket.epoch != self._epoch:
            return
        if ticket.probe:
            self._close()
        else:
            self._recent.append(True)

    def failed(self, ticket: Ticket, reason: str) -> None:
        if ticket.epoch != self._epoch:
            return
        self._last = reason
        if ticket.probe:
            self._open(self._failures + 1, min(2 * self._pause, self._longest_pause))
            return
        self._recent.append(False)
        failures = self._recent.count(False)
        if failures >= FAILURES:
            self._open(failures, FIRST_PAUSE)

    def unknown(self, ticket: Ticket) -> None:
        """The call told nothing about the engine: a probe is then left to the next caller."""
        if ticket.probe and ticket.epoch == self._epoch:
            self._probing = False

    def why_open(self) -> str:
        """How often it failed, the last reason, and when it is tried again; "" while closed."""
        if self._again_at is None:
            return ""
        left = math.ceil(self._again_at - self._clock())
        again = f"it is tried again in {left} s" if left > 0 else "it is being tried again now"
        return f"failed {self._failures} times, last: {self._last}; {again}"

    def _open(self, failures: int, pause: float) -> None:
        self._epoch += 1
        self._failures = failures
        self._pause = pause
        self._again_at = self._clock() + pause
        self._probing = False

    def _close(self) -> None:
        self._epoch += 1
        self._recent.clear()
        self._again_at = None
        self._probing = False
