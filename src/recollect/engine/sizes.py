"""Bounds the size of every answer. What does not fit is not read, and the answer says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

from recollect.errors import InvalidRequest
from recollect.limits import ANSWER_BYTES, fitting, size_of
from recollect.ports import Beside
from recollect.types import Memory, Page

ROWS_AT_ONCE: Final = 64
"""Rows read at a time, before their size is known."""
Read = Callable[[Sequence[str]], Awaitable[Mapping[str, Memory]]]


def by_distance(beside: Mapping[str, Beside], hits: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a hit and a neighbour, the nearest neighbours of all hits first.

    >>> beside = {"b": Beside(("a",), ("c", "d"))}
    >>> list(by_distance(beside, ["b"]))
    [('b', 'a'), ('b', 'c'), ('b', 'd')]
    """
    sides = [(hit, side) for hit in hits if hit in beside for side in beside[hit]]
    for distance in range(max((len(side) for _, side in sides), default=0)):
        yield from ((hit, side[distance]) for hit, side in sides if distance < len(side))


async def read_windows(
    pairs: Sequence[tuple[str, str]], read: Read, room: int
) -> tuple[dict[tuple[str, str], Memory], int | None]:
    """The neighbours that fit, in this order, and the room left; None if some did not fit."""
    rows: dict[str, Memory] = {}
    kept: dict[tuple[str, str], Memory] = {}
    for start in range(0, len(pairs), ROWS_AT_ONCE):
        batch = pairs[start : start + ROWS_AT_ONCE]
        if unread := list(dict.fromkeys(id for _, id in batch if id not in rows)):
            rows |= await read(unread)
        for pair in batch:
            if pair[1] in rows:
                room -= size_of(rows[pair[1]])
                if room < 0:
                    return kept, None
                kept[pair] = rows[pair[1]]
    return kept, room


async def read_page(read: Callable[[int, str | None], Awaitable[Page]], limit: int, after: str | None) -> Page:
    """A page of a list, read in smaller pages. If it does not fit, its cursor continues where it was cut."""
    memories: list[Memory] = []
    room, cursor = ANSWER_BYTES, after
    while True:
        page = await read(min(limit - len(memories), ROWS_AT_ONCE), cursor)
        count, room = fitting(page.memories, room, at_least=0 if memories else 1)
        memories += page.memories[:count]
        if count < len(page.memories):
            return Page(tuple(memories), memories[-1].id, truncated=f"{full()}: continue after the cursor")
        cursor = page.cursor
        if cursor is None or len(memories) == limit:
            return Page(tuple(memories), cursor)


async def read_all(ids: Sequence[str], read: Read) -> dict[str, Memory]:
    """Read these memories. Raises InvalidRequest if they do not fit into one answer."""
    rows: dict[str, Memory] = {}
    room = ANSWER_BYTES
    for start in range(0, len(ids), ROWS_AT_ONCE):
        found = await read(ids[start : start + ROWS_AT_ONCE])
        room -= sum(map(size_of, found.values()))
        rows |= found
        if room < 0 and len(rows) > 1:
            raise InvalidRequest(f"{full()}: lower the limit")
    return rows


async def read_nearest(versions: Sequence[str], id: str, read: Read) -> list[Memory]:
    """The versions of a memory that fit, in their order. The nearest to it are kept."""
    places = {version: place for place, version in enumerate(versions)}
    nearest = sorted(versions, key=lambda version: abs(places[version] - places[id]))
    rows: dict[str, Memory] = {}
    room = ANSWER_BYTES
    for start in range(0, len(nearest), ROWS_AT_ONCE):
        found = await read(nearest[start : start + ROWS_AT_ONCE])
        here = [found[version] for version in nearest[start : start + ROWS_AT_ONCE] if version in found]
        count, room = fitting(here, room, at_least=0 if rows else 1)
        rows |= {memory.id: memory for memory in here[:count]}
        if count < len(here):
            break
    return [rows[version] for version in versions if version in rows]


def full() -> str:
    return f"an answer holds at most {ANSWER_BYTES:,} bytes of text"
