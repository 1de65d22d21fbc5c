"""The analyzer's terms as tsvector and tsquery: each with its space in front ("7:invoice"), so that a term's postings
belong to one space. Weight A is the title, B the text, C the neighbours in the thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import repeat
from operator import add
from typing import Final, NamedTuple

MOST_BYTES: Final = 2**20 - 1
"""Bytes of words in one tsvector."""
MOST_POSITIONS: Final = 256
"""Positions that Postgres keeps of one word."""
MOST_PLACES: Final = 16_383
"""The highest position: Postgres moves later ones here."""
OWN: Final = ":AB"
"""Restricts a query to a memory's own words."""

_BEHIND: Final = "':"
"""Between a word and its positions."""
_BYTES_PER_WORD: Final = 3
"""Beside its text and its positions: their number, and at most one byte so that it is even."""


class Document(NamedTuple):
    """What the index holds of one memory: a tsvector, as text, and how many terms there were."""

    words: str
    length: int


def document(space: int, title: Sequence[str], text: Sequence[str], beside: Iterable[Sequence[str]]) -> Document:
    """The terms of a memory's title and text, and of the texts beside it, in order. The analyzer's terms need no
    escaping. A gap keeps a phrase from matching across two texts. A repeated term is listed again with each position:
    Postgres merges them.
    """
    found: list[str] = []
    place, length = 1, 0
    for weight, terms in (("A", title), ("B", text), *(("C", other) for other in beside)):
        found += map(add, terms, _positions(place, len(terms), weight))
        place += len(terms) + 1
        length += len(terms)
    words = _tsvector(space, found)
    if len(words) > MOST_BYTES // 4:  # at most four bytes per character
        words = _tsvector(space, _fitting(space, found))
    return Document(words, length)


def _positions(first: int, count: int, weight: str) -> Sequence[str]:
    """`count` positions from `first` on, as suffixes; those beyond the highest repeat it."""
    names = _names(weight)
    found = names[first - 1 : first - 1 + count]
    return found if len(found) == count else [*found, *repeat(names[-1], count - len(found))]


@cache
def _names(weight: str) -> tuple[str, ...]:
    return tuple(f"{_BEHIND}{place}{weight}" for place in range(1, MOST_PLACES + 1))


def expression(space: int, terms: Sequence[str], *, context: bool) -> str:
    """Adjacent terms of a space as a tsquery; without context, only in a memory's own words."""
    return " <-> ".join([_quoted(space, term) + ("" if context else OWN) for term in terms])


def prefix(space: int) -> str:
    """What every term of a space begins with."""
    return f"{space}:"


def _tsvector(space: int, words: Sequence[str]) -> str:
    """Words, which end in a quote and their positions, as a tsvector."""
    start = f"'{prefix(space)}"
    return start + f" {start}".join(words) if words else ""


def _quoted(space: int, term: str) -> str:
    return f"'{prefix(space)}{_escaped(term)}'"


def _escaped(term: str) -> str:
    return term.replace("\\", "\\\\").replace("'", "''")


def _fitting(space: int, words: Iterable[str]) -> list[str]:
    """The first words that fit in one tsvector, each with the positions that Postgres keeps."""
    positions: dict[str, list[str]] = {}
    for word in words:
        term, _, position = word.rpartition(_BEHIND)
        kept = positions.setdefault(term, [])
        if len(kept) < MOST_POSITIONS:
            kept.append(position)
    room = MOST_BYTES
    fitting = []
    for term, kept in positions.items():
        room -= len(prefix(space)) + len(term.encode()) + _BYTES_PER_WORD + 2 * len(kept)
        if room < 0:
            break
        fitting.append(f"{term}{_BEHIND}{','.join(kept)}")
    return fitting
