"""How common words are in a space.

The number of memories that hold a word decides its weight, and whether it is looked up at all. Postgres has to count
them, so a process caches the counts until the space changes. Very common words are not counted: Postgres' own
statistics are enough to leave them out. Such a word is counted only if the question has no rarer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from recollect.stores import bm25
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.lexemes import expression, prefix
from recollect.stores.postgres.rows import rows_of

COMMON: Final = 1.25
"""A word that Postgres estimates beyond the budget by this factor is not counted."""
MOST_COUNTS: Final = 10_000
"""Counts kept in memory."""

Q = load(__name__, "words.sql")


class Size(NamedTuple):
    """How many memories a space holds, how many terms they have, and how often one was written or removed."""

    memories: int
    length: int
    changes: int


class _Rows(NamedTuple):
    """How many rows match an expression, or at least so many."""

    number: int
    all: bool


@dataclass(slots=True)
class _Known:
    """The counts of a space as of some size, and the estimates for its very common words."""

    since: Size
    common: dict[str, int]
    counted: dict[str, _Rows] = field(default_factory=dict)

    def rows(self, expression: str, budget: int) -> int | None:
        """How many rows match: exact within the budget, else some number beyond it. None if unknown."""
        rows = self.counted.get(expression)
        if rows and (rows.all or rows.number > budget):
            return rows.number
        return self.common.get(expression)

    def unknown(self, expressions: Iterable[str], budget: int) -> list[str]:
        return [each for each in dict.fromkeys(expressions) if self.rows(each, budget) is None]


class Counts:
    """The counts that a process has made in one database, by space."""

    def __init__(self) -> None:
        self._spaces: dict[int, _Known] = {}
        self._kept = 0

    def of(self, space: int) -> _Known | None:
        return self._spaces.get(space)

    def begin(self, space: int, size: Size, common: dict[str, int]) -> _Known:
        """Discard a space's old counts."""
        self._spaces[space] = _Known(size, common)
        return self._spaces[space]

    def learn(self, known: _Known, expressions: Sequence[str], numbers: Sequence[int], most: int | None) -> None:
        """Keep counts that were made up to `most`. If there are too many, all are discarded."""
        for each, number in zip(expressions, numbers, strict=True):
            known.counted[each] = _Rows(number, all=most is None or number < most)
        self._kept += len(numbers)
        if self._kept > MOST_COUNTS:
            self._spaces.clear()
            self._kept = 0


class Frequencies:
    """How common words are in a space, for one search."""

    def __init__(self, db: Database, space: int, size: Size, counts: Counts, known: _Known) -> None:
        self.size = size
        self._db = db
        self._space = space
        self._counts = counts
        self._known = known

    @classmethod
    async def read(
        cls, db: Database, space: int, counts: Counts, expressions: Sequence[str], budget: int
    ) -> Frequencies:
        """The space as it is now. One statement also counts the expressions that are not known yet."""
        known = counts.of(space)
        unknown = known.unknown(expressions, budget) if known else []
        size, numbers = await _count(db, space, unknown, budget + 1)
        if known is None or known.since.changes != size.changes:
            known = counts.begin(space, size, await _common(db, space, size))
        counts.learn(known, unknown, numbers, budget + 1)
        return cls(db, space, size, counts, known)

    async def rows(self, expressions: Sequence[str], budget: int) -> list[int]:
        """How many rows match each: exact within the budget, else some number beyond it."""
        if unknown := self._known.unknown(expressions, budget):
            await self._learn(unknown, budget + 1)
        return [self._known.rows(each, budget) or 0 for each in expressions]

    async def all_rows(self, expression: str) -> int:
        """How many rows match, however many."""
        if expression not in self._known.counted or not self._known.counted[expression].all:
            await self._learn([expression], None)
        return self._known.counted[expression].number

    async def _learn(self, expressions: Sequence[str], most: int | None) -> None:
        _, numbers = await _count(self._db, self._space, expressions, most)
        self._counts.learn(self._known, expressions, numbers, most)


class FrequenciesWithin(Frequencies):
    """The same within some namespaces. Counted for each search, because cached counts would reveal the rest of the
    space.
    """

    def __init__(self, db: Database, space: int, namespaces: Sequence[str], size: Size) -> None:
        super().__init__(db, space, size, Counts(), _Known(size, {}))
        self._namespaces = [*namespaces]

    @classmethod
    async def counted(cls, db: Database, space: int, namespaces: Sequence[str]) -> FrequenciesWithin:
        ((memories, length),) = await rows_of(db, Q["size_within"], space=space, namespaces=[*namespaces])
        return cls(db, space, namespaces, Size(memories, length, 0))

    async def _learn(self, expressions: Sequence[str], most: int | None) -> None:
        numbers = await rows_of(
            self._db, Q["count_within"], space=self._space, namespaces=self._namespaces, queries=expressions, most=most
        )
        self._counts.learn(self._known, expressions, [number for (number,) in numbers], most)


async def _count(db: Database, space: int, queries: Sequence[str], most: int | None) -> tuple[Size, list[int]]:
    ((*size, numbers),) = await rows_of(db, Q["count"], space=space, queries=queries, most=most)
    return Size(*size), numbers


async def _common(db: Database, space: int, size: Size) -> dict[str, int]:
    """Estimated rows of each very common word."""
    least = COMMON * bm25.BUDGET
    if size.memories <= least:
        return {}
    found = await rows_of(db, Q["common"], prefix=prefix(space), least=least)
    return {expression(space, [term], context=True): rows for term, rows in found}
