"""What a memory replaced, and what replaced it."""

from __future__ import annotations

from typing import NamedTuple

from recollect.client import AsyncSpace
from recollect.errors import NotFound
from recollect.types import Memory

PAGE = 1000
PAGES = 10
"""How many memories are looked through for those that this one replaced: no store finds these by the newer one."""
STEPS = 50


class History(NamedTuple):
    """The memories before and after one, oldest first; `whole` says that all of a space was looked through."""

    earlier: tuple[Memory, ...]
    later: tuple[Memory, ...]
    whole: bool


async def history(space: AsyncSpace, memory: Memory) -> History:
    """The chain that a memory is part of. Several may have been replaced by one."""
    replaced, whole = await replaced_memories(space)
    earlier: list[Memory] = []
    newer = [memory.id]
    while newer and len(earlier) < STEPS:
        older = replaced.get(newer.pop(), [])
        earlier += older
        newer += [one.id for one in older]
    earlier.sort(key=lambda one: (one.created_at, one.id))
    return History(tuple(earlier), tuple(await successors(space, memory)), whole)


async def successors(space: AsyncSpace, memory: Memory) -> list[Memory]:
    """What replaced a memory, step by step, as far as it was not forgotten."""
    found: list[Memory] = []
    while memory.superseded_by is not None and len(found) < STEPS:
        try:
            memory = await space.get(memory.superseded_by)
        except NotFound:
            break
        found.append(memory)
    return found


async def replaced_memories(space: AsyncSpace) -> tuple[dict[str, list[Memory]], bool]:
    """The superseded memories by what replaced them, and whether these are all of them."""
    left, cursor = (await space.stats()).superseded, None
    found: dict[str, list[Memory]] = {}
    for _ in range(PAGES):
        if not left:
            break
        page = await space.list(limit=PAGE, after=cursor, include_superseded=True, include_expired=True)
        for memory in page.memories:
            if memory.superseded_by is not None:
                found.setdefault(memory.superseded_by, []).append(memory)
                left -= 1
        cursor = page.cursor
        if cursor is None:
            return found, True
    return found, left <= 0
