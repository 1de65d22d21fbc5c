"""A crowd waits for its turn: nobody is turned away at once, and nobody waits without end."""

from __future__ import annotations

import asyncio

import pytest

from recollect.calls.deadline import Admission
from recollect.errors import BackendUnavailable
from tests.engine.faulty import until


async def test_so_many_are_under_way_and_the_others_follow_in_their_order() -> None:
    """Of five who come, two begin; whenever one has ended, the next begins."""
    admission, begun, release = Admission(at_once=2), list[int](), asyncio.Event()

    async def recall(number: int) -> None:
        async with admission:
            begun.append(number)
            await release.wait()

    asked = [asyncio.create_task(recall(number)) for number in range(5)]
    await until(lambda: len(begun) == 2)
    assert begun == [0, 1]
    release.set()
    await asyncio.gather(*asked)
    assert begun == [0, 1, 2, 3, 4]


async def test_a_turn_that_does_not_come_is_a_clear_error() -> None:
    """Whoever waits too long is told so; the place of one who has gone is free again."""
    admission = Admission(at_once=1, longest_wait=0.01)
    async with admission:
        with pytest.raises(BackendUnavailable, match="1 recalls are under way and more are waiting"):
            async with admission:
                raise AssertionError("there was no room")
    async with admission:
        pass


async def test_who_fails_or_leaves_makes_room() -> None:
    """A recall that raises gives its turn back, and so does one that is cancelled while it waits."""
    admission = Admission(at_once=1)
    with pytest.raises(KeyError):
        async with admission:
            raise KeyError("surprise")

    async def wait() -> None:
        async with admission:
            pass

    async with admission:
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with admission:
        pass
