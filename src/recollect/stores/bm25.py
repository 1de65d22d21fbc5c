"""BM25, whichever database holds the words: what the parts of a question are worth, which of them are looked up within
a budget, and when a first look was not enough. Pure functions that every store shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, log, sqrt
from typing import Final, NamedTuple

from recollect.types import Background, Scored

K1: Final = 1.2
"""How soon further occurrences of a word count no more."""
B: Final = 0.75
"""How much a memory's length counts against it."""
TITLE: Final = 1.0
TEXT: Final = 1.0
CONTEXT: Final = 0.2
"""What one occurrence counts in each field."""
BUDGET: Final = 5_000
"""Rows that one search scores, part by part: the commonest parts beyond it are dropped."""
WIDE_BUDGET: Final = 100_000
"""The same for a second look, after a filter has hidden what the first one found: some of it, or all of it where only
what is superseded or expired is filtered out, for then few hits mean rare words and not a narrow filter."""
ENOUGH: Final = 10
"""Hits behind a narrow filter that make the second look unnecessary: as many as an answer usually has."""
NARROW: Final = 20
"""When not even one in so many passes a filter, listing what passes is faster than asking for each that was found."""
FIRST_LOOK: Final = 4
"""How many times as many rows as are wanted a first look behind a filter takes: enough where one in so many passes."""
FEW: Final = 2_000
"""Rows that pass a filter: up to so many are listed and scored in less time than it takes to find which of the best of
all rows pass."""
FEW_LISTED: Final = 20_000
"""The same where an index lists them, in a tenth of the time for each."""
PHRASE_BUDGET: Final = 20_000
"""A phrase is looked up when its rarest term is in no more rows than this."""
MOST_PARTS: Final = 200
"""Parts of one question that are looked up at most."""
MOST_HOLDERS: Final = 1_000
"""What more memories than these hold names none of them."""


class Counted(NamedTuple):
    """A term or phrase of the question: as the index reads it, its own weight, and how many rows match it, counted no
    further than one beyond the budget.
    """

    expression: str
    weight: float
    rows: int


@dataclass(frozen=True, slots=True)
class Part:
    """A term or phrase that is looked up: as the index reads it, how many rows match it, and what it is worth."""

    expression: str
    rows: int
    worth: float
    """The space's idf times the part's own weight: what one occurrence in a memory of average length scores."""


def idf(size: int, rows: int) -> float:
    """How much a term counts that is in `rows` of `size` memories; never negative."""
    return log(1 + (size - rows + 0.5) / (rows + 0.5))


def choose(counted: Iterable[Counted], budget: int) -> tuple[list[Counted], bool]:
    """The rarest parts whose rows together stay within the budget, in any case the rarest one; and whether parts that
    some row matches were left out.
    """
    found = sorted((one for one in counted if one.rows), key=lambda one: one.rows)
    chosen: list[Counted] = []
    spent = 0
    for one in found[:MOST_PARTS]:
        spent += one.rows
        if chosen and spent > budget:
            break
        chosen.append(one)
    return chosen, len(chosen) < len(found)


def weighed(counted: Counted, size: int) -> Part:
    """A part whose rows were counted to the end, in a space of some size."""
    return Part(counted.expression, counted.rows, idf(size, counted.rows) * counted.weight)


def background(parts: Sequence[Part], size: int) -> Background:
    """How the parts score the whole space, from how many memories hold each: as if each part stood in a memory, once
    and at average length, or did not, whatever the others do. Scoring every memory would tell it better, and take
    longer than the search itself.
    """
    shares = [(min(part.rows / max(size, 1), 1.0), part.worth) for part in parts]
    mean = fsum(share * worth for share, worth in shares)
    variance = fsum(share * (1 - share) * worth**2 for share, worth in shares)
    return Background(mean, sqrt(variance), size)


class Look(NamedTuple):
    """The best rows that pass the filter, how many were looked at, and the score of the last of those."""

    hits: Sequence[Scored]
    seen: int
    last: float


def first_look(limit: int, *, filtered: bool) -> int:
    """How many rows to look at first. Most often nothing is filtered out and few scores are equal, so little more than
    wanted is enough, and somewhat more behind a filter.
    """
    return FIRST_LOOK * limit if filtered else limit + limit // 4


def most_listed(size: int, *, listed: bool) -> int:
    """How many rows may pass a filter, in a space of some size, for them to be the way in without a first look: a few,
    or, where an index lists them, as many as make a first look find too little.
    """
    return max(FEW, min(size // FIRST_LOOK, FEW_LISTED)) if listed else FEW


def is_enough(look: Look, most: int, limit: int) -> bool:
    """Whether a look at the best `most` rows has found the best that pass the filter, and with the last of them all
    that tie with it, so that ids decide.
    """
    return look.seen < most or (len(look.hits) > limit and look.last < look.hits[limit - 1].score)


def is_narrow(look: Look) -> bool:
    """Whether so few pass the filter that its own rows are the better way in."""
    return NARROW * len(look.hits) < look.seen


def best(hits: Iterable[Scored], limit: int) -> list[Scored]:
    """Best first, ties by id."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]


def is_too_little(hits: Sequence[Scored], limit: int, *, filtered: bool) -> bool:
    """Whether the parts that were left out are to be looked up as well."""
    return len(hits) < (min(ENOUGH, limit) if filtered else 1)
