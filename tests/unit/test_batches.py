"""Batches by length, and work side by side."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.batches import by_length, side_by_side


def test_by_length() -> None:
    """Longest first, each batch within the bound when padded, a too long text alone."""
    assert list(by_length([3, 20, 4, 5, 1], 10)) == [[1], [3, 2], [0, 4]]


@given(st.lists(st.integers(min_value=1, max_value=600)), st.integers(min_value=1, max_value=2000))
def test_every_position_once_and_within_the_bound(lengths: list[int], bound: int) -> None:
    """Nothing is lost or doubled, and only a single text may exceed the bound."""
    batches = list(by_length(lengths, bound))
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= bound for batch in batches)


async def test_side_by_side_keeps_its_width() -> None:
    """Never more than `width` pieces are under way, and all get done."""
    under_way, most, done = 0, 0, []

    async def work(piece: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        done.append(piece)

    await side_by_side(work, range(10), 3)
    assert (most, sorted(done)) == (3, list(range(10)))


async def test_the_first_failure_is_raised_as_itself() -> None:
    """A failure ends the rest, and is not wrapped in a group."""
    begun: list[int] = []

    async def work(piece: int) -> None:
        begun.append(piece)
        await asyncio.sleep(0)
        if piece == 1:
            raise LookupError("piece 1")

    with pytest.raises(LookupError, match="piece 1"):
        await side_by_side(work, range(1000), 2)
    assert len(begun) < 10
