"""Splits work into batches of bounded size, and runs them concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def by_length(lengths: Sequence[int], bound: int) -> Iterator[list[int]]:
    """Positions in batches of similar length, longest first, each at most `bound` when padded to its longest. A text
    longer than `bound` is a batch by itself.
    """
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > bound:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


async def side_by_side(work: Callable[[T], Awaitable[None]], pieces: Iterable[T], width: int) -> None:
    """Do every piece, at most `width` at a time. The first failure cancels the rest and is raised. Pieces start one by
    one, so a question asked during a long import waits for `width` pieces, not for all.
    """
    left = iter(pieces)

    async def take_turns() -> None:
        for piece in left:
            await work(piece)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(width):
                group.create_task(take_turns())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
