"""A time cut into equal slots, as the charts of the terminal and of the dashboard draw it. Nothing here does I/O."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import reduce
from math import ceil
from operator import add
from typing import NamedTuple

from recollect.types import SpaceUsage, Usage

HOUR = timedelta(hours=1)


class Slot(NamedTuple):
    """Some hours, and the recalls in them."""

    start: datetime
    usage: Usage


def slotted(used: SpaceUsage, now: datetime, most: int) -> tuple[int, list[Slot]]:
    """The recalls from the beginning until now in at most so many equal slots, and how many hours a slot has."""
    first = used.since or min((bucket.start for bucket in used.buckets), default=now)
    hours = max((now - first) // HOUR + 1, 1)
    width = ceil(hours / most)
    slots: list[list[Usage]] = [[] for _ in range(ceil(hours / width))]
    for bucket in used.buckets:
        slots[min((bucket.start - first) // HOUR // width, len(slots) - 1)].append(bucket.usage)
    return width, [Slot(first + at * width * HOUR, reduce(add, slot, Usage())) for at, slot in enumerate(slots)]
