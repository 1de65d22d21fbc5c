"""What stands beside a memory in its thread, as a word index needs it: pure functions that every store shares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from recollect.stores.contents import Thread, position
from recollect.types import Memory

REACH: Final = 2
"""How many memories before and after one in its thread make up its context."""


class WordRow(NamedTuple):
    """What a word index needs of one memory."""

    row: int
    title: str
    text: str
    namespace: str
    thread: str | None = None
    place: int | None = None

    @classmethod
    def of(cls, row: int, memory: Memory) -> WordRow:
        return cls(row, memory.title, memory.text, *position(memory))


def by_thread(rows: Iterable[tuple[int, str, str | None, int | None]]) -> dict[Thread, dict[int, int]]:
    """The place of each row, thread by thread; what is in none is left out. Rows come with their namespace, thread and
    place.
    """
    threads: defaultdict[Thread, dict[int, int]] = defaultdict(dict)
    for row, namespace, name, place in rows:
        if name is not None and place is not None:
            threads[Thread(namespace, name)][row] = place
    return dict(threads)


def beside(order: Sequence[int], *, changed: Collection[int] = (), gone: Collection[int] = ()) -> dict[int, list[int]]:
    """For each row of a stretch of a thread whose context is affected, the rows that now make it up.

    `order` holds the rows in the thread's order, those that go included.
    """
    kept = [row for row in order if row not in gone]
    affected: set[int] = set()
    place = 0
    for row in order:
        if row in gone:
            affected.update(range(place - REACH, place + REACH))
            continue
        if row in changed:
            affected.update(range(place - REACH, place + REACH + 1))
        place += 1
    return {
        kept[at]: kept[max(at - REACH, 0) : at] + kept[at + 1 : at + 1 + REACH]
        for at in affected
        if 0 <= at < len(kept)
    }
