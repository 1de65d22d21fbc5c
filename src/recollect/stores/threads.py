"""A memory's neighbours in its thread, as a word index needs them. Pure functions for all databases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from recollect.stores.contents import Thread, position
from recollect.types import Memory

REACH: Final = 2
"""Memories before and after one in its thread that make up its context."""


class WordRow(NamedTuple):
    """The fields of a memory that a word index needs."""

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
    """The place of each row, by thread. Rows come with namespace, thread and place; those in no thread are left out."""
    threads: defaultdict[Thread, dict[int, int]] = defaultdict(dict)
    for row, namespace, name, place in rows:
        if name is not None and place is not None:
            threads[Thread(namespace, name)][row] = place
    return dict(threads)


def beside(order: Sequence[int], *, changed: Collection[int] = (), gone: Collection[int] = ()) -> dict[int, list[int]]:
    """For each row whose context changes, the rows that now make it up.

    `order` is a stretch of the thread in order, including the rows that are `gone`.
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
