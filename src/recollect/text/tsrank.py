"""Postgres' two text scores, `ts_rank` and `ts_rank_cd`, to the last bit.

The arithmetic follows `src/backend/utils/adt/tsrank.c` with its defaults: weights {0.1, 0.2, 0.4, 1.0} (a text without
sections uses the first) and no normalisation. Where the C code has a `float`, the value is rounded to 32 bits. A text
is given as the positions of each of the question's words in it, counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from math import exp, sqrt
from struct import Struct
from typing import Final, TypeAlias

from recollect.text.configurations import And, Lexeme, Not, Or, Phrase, Question, words_of

Positions: TypeAlias = Mapping[str, Sequence[int]]
Score: TypeAlias = Callable[[Question, Positions], float]

LAST_POSITION: Final = 16_383
"""The highest position in Postgres; all later words share it."""
MOST_POSITIONS: Final = 255
"""The most positions of one word that Postgres keeps."""
NO_PAIR: Final = 1e-20
"""The `ts_rank` of a text that holds no two of the required words."""

_FLOAT = Struct("f")


def _float(value: float) -> float:
    """The nearest 32-bit number, like a C `float`."""
    (rounded,) = _FLOAT.unpack(_FLOAT.pack(value))
    return float(rounded)


WEIGHT: Final = _float(0.1)


def stored_positions(positions: Iterable[int]) -> list[int]:
    """The positions of a word that Postgres would store."""
    return sorted({min(position, LAST_POSITION) for position in positions})[:MOST_POSITIONS]


def matches(question: Question, positions: Positions) -> bool:
    match question:
        case Lexeme(word):
            return bool(positions.get(word))
        case Phrase(((first, _), *rest)):
            later = [(frozenset(positions.get(word, ())), distance) for word, distance in rest]
            return any(all(at + distance in found for found, distance in later) for at in positions.get(first, ()))
        case Not(other):
            return not matches(other, positions)
        case And(parts):
            return all(matches(part, positions) for part in parts)
        case Or(parts):
            return any(matches(part, positions) for part in parts)
    return False


def ts_rank(question: Question, positions: Positions) -> float:
    """Rank by word frequency, or, if all words are required, by how near they are to each other."""
    words = words_of(question)
    if isinstance(question, And | Phrase) and len(words) > 1:
        return _nearness([positions.get(word, ()) for word in words])
    return _frequency([positions.get(word, ()) for word in words])


def ts_rank_cd(question: Question, positions: Positions) -> float:
    """Rank by cover density: the shorter the matching stretches of text, and the more of them, the better."""
    text = sorted((position, word) for word in words_of(question) for position in positions.get(word, ()))
    total = 0.0
    start = 0
    while cover := _cover(question, text, start):
        begin, end = cover
        inverse = 0.0
        for _ in range(begin, end + 1):
            inverse += 1.0 / WEIGHT
        noise = (text[end][0] - text[begin][0]) - (end - begin)
        if noise < 0:
            noise = (end - begin) // 2
        total += (end - begin + 1) / inverse / (1 + noise)
        start = begin + 1
    return _float(total)


def _cover(question: Question, text: Sequence[tuple[int, str]], start: int) -> tuple[int, int] | None:
    """The first shortest stretch of the text from `start` that matches the question."""
    end = _reach(question, text, range(start, len(text)))
    if end is None:
        return None
    begin = _reach(question, text, range(end, start - 1, -1))
    return None if begin is None else (begin, end)


def _reach(question: Question, text: Sequence[tuple[int, str]], order: Iterable[int]) -> int | None:
    """The place at which the text, read in this order, matches the question."""
    seen: dict[str, list[int]] = {}
    for at in order:
        position, word = text[at]
        seen.setdefault(word, []).append(position)
        if matches(question, seen):
            return at
    return None


def _frequency(occurrences: Sequence[Sequence[int]]) -> float:
    """`calc_rank_or`: each word's occurrences count 1, 1/4, 1/9 and so on."""
    rank = 0.0
    for positions in occurrences:
        if positions:
            rank = _float(rank + _float(_float(WEIGHT + _repeated(len(positions))) - WEIGHT) / 1.64493406685)
    return _float(rank / len(occurrences)) if occurrences else 0.0


@cache
def _repeated(times: int) -> float:
    total = 0.0
    for number in range(1, times + 1):
        total = _float(total + _float(WEIGHT / (number * number)))
    return total


def _nearness(occurrences: Sequence[Sequence[int]]) -> float:
    """`calc_rank_and`: every pair of two words' occurrences, the nearer the better."""
    rank = -1.0
    for index, positions in enumerate(occurrences):
        for earlier in occurrences[:index]:
            for one, other in product(positions, earlier):
                if one != other:
                    pair = _pair(abs(one - other))
                    rank = pair if rank < 0 else _float(1.0 - (1.0 - rank) * (1.0 - pair))
    return _float(NO_PAIR) if rank < 0 else rank


@cache
def _pair(distance: int) -> float:
    nearness = _float(1e-30 if distance > 100 else 1.0 / (1.005 + 0.05 * exp(distance / 1.5 - 2)))
    return _float(sqrt(_float(_float(WEIGHT * WEIGHT) * nearness)))
