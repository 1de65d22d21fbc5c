"""How often: token buckets, one for each caller or address."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

KEYS = 10_000
"""Buckets that are kept; the one that was not used for longest goes first, and was most likely full again."""
BURST_SECONDS = 10
"""A bucket holds what flows into it in so many seconds."""


class Rates:
    """At most so many a minute for each key, in bursts of a sixth of that. No number, no limit."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_minute / 60
        self._most = max(self._per_second * BURST_SECONDS, 1.0)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> float:
        """Take one out of a bucket: 0, or the seconds until there is one again."""
        left, now = self._left(key)
        if self._per_second <= 0:
            return 0.0
        if left < 1:
            return (1 - left) / self._per_second
        self._buckets[key] = (left - 1, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > KEYS:
            self._buckets.popitem(last=False)
        return 0.0

    def wait(self, key: str) -> float:
        """The seconds until there is one again; 0 if there is one now, and nothing is taken."""
        left, _ = self._left(key)
        return max((1 - left) / self._per_second, 0.0) if self._per_second > 0 else 0.0

    def _left(self, key: str) -> tuple[float, float]:
        now = self._clock()
        left, since = self._buckets.get(key, (self._most, now))
        return min(left + (now - since) * self._per_second, self._most), now
