"""A circuit breaker: an engine that keeps failing is left alone for a while, then tried by one call.

    closed ── 5 of the last 10 calls failed ──> open ── the pause is over ──> one call goes through
      ^                                          ^                                  |
      └────────────── it succeeded ──────────────│────────── it failed: twice the pause

State machines and nothing else: they read a clock, start nothing and wait for nothing. See Nygard, "Release It!".
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
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
SLOW_SPACES = 3
"""Spaces whose questions time out that it takes to leave the engine alone for all. Fewer may just ask hard questions:
they lose the engine, and nobody else does.
"""
TIMEOUTS_OF_A_SPACE = 2
"""How many timeouts of one space count among the recent calls of all: so it takes the timeouts of three."""
SPACES = 1_000
"""Spaces whose timeouts are remembered: those that timed out last."""


class Ticket(NamedTuple):
    """Leave to make one call. Its outcome counts as long as the breaker has not opened or closed since."""

    epoch: int
    probe: bool = False
    space: str = ""
    """Whose call it is, and whose breaker gave a ticket for a probe; "": nobody's in particular."""
    space_epoch: int = 0


class Breaker:
    """Whether calls to one engine are let through, by how its recent ones ended."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, longest_pause: float = LONGEST_PAUSE) -> None:
        self.is_open = False
        self.epoch = 0
        self._clock = clock
        self._longest_pause = longest_pause
        self._recent: deque[str | None] = deque(maxlen=RECENT)
        """How recent calls ended: None is well, a name is a timeout of that space, "" is any other failure."""
        self._failures = 0
        self._last = ""
        self._pause = FIRST_PAUSE
        self._again_at = 0.0
        self._probing = False

    def ticket(self) -> Ticket:
        """For a call while the breaker is closed."""
        return Ticket(self.epoch)

    def probe(self) -> Ticket | None:
        """For the one call that tries an open breaker's engine again: none before the pause is over, and none while
        another is under way.
        """
        if not self.is_open or self._probing or self._clock() < self._again_at:
            return None
        self._probing = True
        return Ticket(self.epoch, probe=True)

    def succeeded(self, ticket: Ticket) -> None:
        if ticket.epoch != self.epoch:
            return
        if ticket.probe:
            self._close()
        else:
            self._recent.append(None)

    def failed(self, ticket: Ticket, reason: str, timed_out: str = "") -> None:
        """`timed_out` is the space whose question took too long, where that is what happened."""
        if ticket.epoch != self.epoch:
            return
        self._last = reason
        if ticket.probe:
            self._open(self._failures + 1, min(2 * self._pause, self._longest_pause))
            return
        self._recent.append(timed_out)
        ended = Counter(self._recent)
        del ended[None]
        failures = ended.pop("", 0) + sum(min(count, TIMEOUTS_OF_A_SPACE) for count in ended.values())
        if failures >= FAILURES:
            self._open(failures, FIRST_PAUSE)

    def unknown(self, ticket: Ticket) -> None:
        """The call told nothing about the engine: a probe is then left to the next caller."""
        if ticket.probe and ticket.epoch == self.epoch:
            self._probing = False

    def trip(self, reason: str) -> None:
        """Open it for a reason that its own calls do not show."""
        self._last = reason
        self._open(FAILURES, FIRST_PAUSE)

    @property
    def is_unblemished(self) -> bool:
        """Whether it is closed and no recent call failed."""
        return not self.is_open and all(end is None for end in self._recent)

    def why_open(self) -> str:
        """How often it failed, the last reason, and when it is tried again; "" while closed."""
        if not self.is_open:
            return ""
        left = math.ceil(self._again_at - self._clock())
        again = f"it is tried again in {left} s" if left > 0 else "it is being tried again now"
        return f"failed {self._failures} times, last: {self._last}; {again}"

    def _open(self, failures: int, pause: float) -> None:
        self.epoch += 1
        self.is_open = True
        self._failures = failures
        self._pause = pause
        self._again_at = self._clock() + pause
        self._probing = False

    def _close(self) -> None:
        self.epoch += 1
        self.is_open = False
        self._recent.clear()
        self._probing = False


class SpaceBreakers:
    """The breaker of an engine for all, and one for each space whose questions time out there. A space can make its
    own questions as hard as it likes; it must not take the engine from the others by that.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, longest_pause: float = LONGEST_PAUSE) -> None:
        self.all = Breaker(clock, longest_pause)
        self._clock = clock
        self._longest_pause = longest_pause
        self._spaces: dict[str, Breaker] = {}

    def open_for(self, space: str) -> Breaker | None:
        """The open breaker that keeps a space from the engine, if there is one."""
        if self.all.is_open:
            return self.all
        own = self._spaces.get(space)
        return own if own is not None and own.is_open else None

    def ticket(self, space: str) -> Ticket:
        """For a call of a space while nothing keeps it from the engine."""
        own = self._spaces.get(space)
        return Ticket(self.all.epoch, space=space, space_epoch=own.epoch if own is not None else 0)

    def probe(self, space: str) -> Ticket | None:
        """For the one call that tries the engine again, for all or for a space."""
        breaker = self.open_for(space)
        if breaker is None or (ticket := breaker.probe()) is None:
            return None
        return ticket if breaker is self.all else Ticket(self.all.epoch, True, space, ticket.epoch)

    def succeeded(self, ticket: Ticket) -> None:
        if not (ticket.probe and ticket.space):
            self.all.succeeded(ticket)
        if (own := self._spaces.get(ticket.space)) is not None:
            own.succeeded(Ticket(ticket.space_epoch, ticket.probe))
            if own.is_unblemished:
                del self._spaces[ticket.space]

    def failed(self, ticket: Ticket, reason: str, *, timed_out: bool) -> None:
        """A failure is counted for all; a timeout of a space for that space, and for all as one of few."""
        if ticket.space and (timed_out or ticket.probe):
            self._failed_for(ticket, reason)
        if not (ticket.probe and ticket.space):
            self.all.failed(ticket, reason, ticket.space if timed_out else "")
        if self.all.is_open:
            self._spaces.clear()

    def unknown(self, ticket: Ticket) -> None:
        if not ticket.space:
            self.all.unknown(ticket)
        elif (own := self._spaces.get(ticket.space)) is not None:
            own.unknown(Ticket(ticket.space_epoch, ticket.probe))

    def _failed_for(self, ticket: Ticket, reason: str) -> None:
        own = self._spaces.pop(ticket.space, None) or Breaker(self._clock, self._longest_pause)
        own.failed(Ticket(ticket.space_epoch, ticket.probe), reason)
        self._spaces[ticket.space] = own
        if len(self._spaces) > SPACES:
            del self._spaces[next(iter(self._spaces))]
        if sum(breaker.is_open for breaker in self._spaces.values()) >= SLOW_SPACES:
            self.all.trip(reason)
