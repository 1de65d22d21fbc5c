"""The analyzer's terms as Postgres' tsvector and tsquery hold them: each with its space in front ("7:invoice"), so that
a term's postings belong to one space. Weight A is the title, B the text, C what stands beside it in its thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import repeat
from operator import add
from typing import Final, NamedTuple

MOST_BYTES: Final = 2**20 - 1
"""What the words of one tsvector may take in all."""
MOST_POSITIONS: Final = 256
"""Of further occurrences of one word Postgres keeps none."""
MOST_PLACES: Final = 16_383
"""To Postgres all that comes later stands here."""
OWN: Final = ":AB"
"""Restricts a question to a memory's own words."""

_BEHIND: Final = "':"
"""Between a word and its positions."""
_BYTES_PER_WORD: Final = 3
"""Beside its text and its positions: their number, and at most one byte so that it is even."""


class Document(NamedTuple):
    """What the index holds of one memory: a tsvector, as text, and how many terms there were."""

    words: str
    length: int


def document(space: int, title: Sequence[str], text: Sequence[str], beside: Iterable[Sequence[str]]) -> Document:
    """The terms of a memory's title and text, and of the texts beside it, in their order; they are the analyzer's, in
    which nothing has a meaning of its own between quotes. A gap keeps a phrase from reaching from one into the next.
    A term that is repeated stands there as often, each time with one position: Postgres puts them together.
    """
    found: list[str] = []
    place, length = 1, 0
    for weight, terms in (("A", title), ("B", text), *(("C", other) for other in beside)):
        found += map(add, terms, _positions(place, len(terms), weight))
        place += len(terms) + 1
        length += len(terms)
    words = _tsvector(space, found)
    if len(words) > MOST_BYTES // 4:  # a character has at most four bytes, and is more in this form than when stored
        words = _tsvector(space, _fitting(space, found))
    return Document(words, length)


def _positions(first: int, count: int, weight: str) -> Sequence[str]:
    """So many places from a first one on, as they stand behind words; what is too far back has the name of the last."""
    names = _names(weight)
    found = names[first - 1 : first - 1 + count]
    return found if len(found) == count else [*found, *repeat(names[-1], count - len(found))]


@cache
def _names(weight: str) -> tuple[str, ...]:
    return tuple(f"{_BEHIND}{place}{weight}" for place in range(1, MOST_PLACES + 1))


def expression(space: int, terms: Sequence[str], *, context: bool) -> str:
    """Adjacent terms of a space as a tsquery, as text; without context only where they are a memory's own."""
    return " <-> ".join([_quoted(space, term) + ("" if context else OWN) for term in terms])


def prefix(space: int) -> str:
    """What every term of a space begins with."""
    return f"{space}:"


def _tsvector(space: int, words: Sequence[str]) -> str:
    """Words with their positions, each quoted but for what stands before it."""
    start = f"'{prefix(space)}"
    return start + f" {start}".join(words) if words else ""


def _quoted(space: int, term: str) -> str:
    return f"'{prefix(space)}{_escaped(term)}'"


def _escaped(term: str) -> str:
    """A term in which nothing has a meaning of its own between quotes."""
    return term.replace("\\", "\\\\").replace("'", "''")


def _fitting(space: int, words: Iterable[str]) -> list[str]:
    """As many words as one tsvector can hold, the first ones first, and of each as many positions."""
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
