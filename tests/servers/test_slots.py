"""A time cut into slots, as every chart has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.servers.slots import HOUR, slotted
from recollect.types import Bucket, SpaceUsage, Usage

NOW = datetime(2026, 5, 8, 12, 30, tzinfo=UTC)
MOST = 43


def used(*ago: int, since: datetime | None = None) -> SpaceUsage:
    """One recall in each of the hours that began so many hours before this one."""
    buckets = tuple(Bucket(NOW.replace(minute=0) - timedelta(hours=hours), Usage(recalls=1)) for hours in ago)
    return SpaceUsage("work", since, Usage(recalls=len(buckets)), buckets)


def test_a_week_in_steps_of_four_hours() -> None:
    """The first hour is in the first slot, and the hour that has begun in the last; between them there are no gaps."""
    week = NOW.replace(minute=0) - timedelta(days=7)
    hours, slots = slotted(used(168, 0, since=week), NOW, MOST)
    assert (hours, len(slots)) == (4, 43)
    assert [slot.start for slot in slots] == [week + at * 4 * HOUR for at in range(43)]
    assert [at for at, slot in enumerate(slots) if slot.usage.recalls] == [0, 42]


@pytest.mark.parametrize("hours", [1, 2, MOST, MOST + 1, 1000, 100_000])
def test_there_are_never_too_many(hours: int) -> None:
    """However long the time is; no recall is lost, and now is in the last slot."""
    ago = sorted({hours - 1, hours // 2, 0}, reverse=True)
    width, slots = slotted(used(*ago), NOW, MOST)
    assert len(slots) <= MOST
    assert sum(slot.usage.recalls for slot in slots) == len(ago)
    assert slots[-1].usage.recalls >= 1
    assert slots[-1].start <= NOW < slots[-1].start + width * HOUR


def test_a_space_that_was_never_asked() -> None:
    """One empty slot, which begins now."""
    assert slotted(used(), NOW, MOST) == (1, [(NOW, Usage())])
