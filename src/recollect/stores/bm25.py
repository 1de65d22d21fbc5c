"""BM25 for every database: the weight of a question's parts, which of them are looked up within a budget, and when a
first search was not enough. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, log, sqrt
from operator import attrgetter
from typing import Final, NamedTuple

from recollect.types import Background, Scored

K1: Final = 1.2
"""How fast repeated occurrences of a word stop counting."""
B: Final = 0.75
"""How much a memory's length counts against it."""
TITLE: Final = 1.0
TEXT: Final = 1.0
CONTEXT: Final = 0.2
"""The weight of one occurrence in each field."""
BUDGET: Final = 5_000
"""Rows that one search scores: the most common parts beyond it are dropped."""
WIDE_BUDGET: Final = 100_000
"""The same for a second search, after the filter left too few hits of the first. Where it hides only superseded and
expired memories, that means none: a few hits then mean rare words, not a narrow filter."""
ENOUGH: Final = 10
"""Hits behind a filter that make a second search unnecessary: as many as an answer usually has."""
NARROW: Final = 20
"""If fewer than one in this many rows pass a filter, listing those that pass is faster than checking each hit."""
FIRST_LOOK: Final = 4
"""Rows that the first look behind a filter takes, per row wanted: enough if one in this many passes."""
FEW: Final = 2_000
"""Up to this many passing rows are listed and scored faster than the best of all rows are checked."""
FEW_LISTED: Final = 20_000
"""The same where an index lists them, which is ten times faster."""
PHRASE_BUDGET: Final = 20_000
"""A phrase is looked up if its rarest term is in at most this many rows."""
MOST_PARTS: Final = 200
"""Parts of one question that are looked up."""
MOST_HOLDERS: Final = 1_000
"""A term that more memories hold does not name one thing."""


_ROWS = attrgetter("rows")


class Counted(NamedTuple):
    """A term or phrase of the question in the index's syntax, its weight, and how many rows match it, counted at most
    to one beyond the budget.
    """

    expression: str
    weight: float
    rows: int


@dataclass(frozen=True, slots=True)
class Part:
    """A term or phrase that is looked up, in the index's syntax."""

    expression: str
    rows: int
    worth: float
    """The idf times the part's weight: the score of one occurrence in a memory of average length."""


def idf(size: int, rows: int) -> float:
    """The inverse document frequency of a term in `rows` of `size` memories; never negative."""
    return log(1 + (size - rows + 0.5) / (rows + 0.5))


def choose(counted: Iterable[Counted], budget: int) -> tuple[list[Counted], bool]:
    """The rarest parts whose rows together fit the budget, always including the rarest; and whether matching parts were
    left out.
    """
    found = sorted(filter(_ROWS, counted), key=_ROWS)
    chosen: list[Counted] = []
    spent = 0
    for one in found[:MOST_PARTS]:
        spent += one.rows
        if chosen and spent > budget:
            break
        chosen.append(one)
    return chosen, len(chosen) < len(found)


def weighed(counted: Counted, size: int) -> Part:
    """A fully counted part with its weight in a space of this size."""
    return Part(counted.expression, counted.rows, idf(size, counted.rows) * counted.weight)


def background(parts: Sequence[Part], size: int) -> Background:
    """How the parts score the whole space, estimated from their counts: as if each part occurred once, independently of
    the others, in memories of average length. Scoring every memory would take longer than the search.
    """
    means: list[float] = []
    variances: list[float] = []
    for part in parts:
        share = min(part.rows / max(size, 1), 1.0)
        means.append(share * part.worth)
        variances.append(share * (1 - share) * part.worth**2)
    return Background(fsum(means), sqrt(fsum(variances)), size)


class Look(NamedTuple):
    """The best rows that pass the filter, how many rows were checked, and the score of the last one."""

    hits: Sequence[Scored]
    seen: int
    last: float


def first_look(limit: int, *, filtered: bool) -> int:
    """How many rows to check first: a few more than wanted for ties, and more behind a filter."""
    return FIRST_LOOK * limit if filtered else limit + limit // 4


def most_listed(size: int, *, listed: bool) -> int:
    """Up to how many passing rows a search lists them and skips the first look: a few, or where an index lists them, as
    many as would make a first look find too little.
    """
    return max(FEW, min(size // FIRST_LOOK, FEW_LISTED)) if listed else FEW


def is_enough(look: Look, most: int, limit: int) -> bool:
    """Whether a look at the best `most` rows found the best that pass the filter, and all ties with the last of
    them.
    """
    return look.seen < most or (len(look.hits) > limit and look.last < look.hits[limit - 1].score)


def is_narrow(look: Look) -> bool:
    """Whether so few rows pass the filter that listing them is faster."""
    return NARROW * len(look.hits) < look.seen


def best(hits: Iterable[Scored], limit: int) -> list[Scored]:
    """Best first, ties by id."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]


def is_too_little(hits: Sequence[Scored], limit: int, *, filtered: bool) -> bool:
    """Whether to search again with the parts that were left out."""
    return len(hits) < (min(ENOUGH, limit) if filtered else 1)
