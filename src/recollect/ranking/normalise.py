"""Put a lane's raw scores on a scale that can be added to another lane's.

Every function returns as many scores as it takes, in the same order. `min_max` and `by_max` only look at the list
itself, so they make the best of a bad list look perfect. `surprisal` compares each score with what chance would give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from typing import TypeAlias

from recollect.types import Background, Tail

Normalise: TypeAlias = Callable[[Sequence[float]], list[float]]


def min_max(scores: Sequence[float]) -> list[float]:
    """From 0 for the least to 1 for the best; 1.0 for all when they are equal.

    >>> min_max([4.0, 3.0, 2.0])
    [1.0, 0.5, 0.0]
    """
    if not scores:
        return []
    least, width = min(scores), max(scores) - min(scores)
    return [(score - least) / width for score in scores] if width > 0 else [1.0] * len(scores)


def by_max(scores: Sequence[float]) -> list[float]:
    """As a share of the best score; 0 where that is not above 0.

    >>> by_max([4.0, 1.0])
    [1.0, 0.25]
    """
    best = max(scores, default=0.0)
    return [score / best for score in scores] if best > 0 else [0.0] * len(scores)


def surprisal(scores: Sequence[float], background: Background, tail: Tail) -> list[float]:
    """How unlikely chance alone is to reach each score, as a share of what it takes to single out one memory.

    `-ln p`, where p is the chance that an unrelated memory scores as high, divided by `ln count`: at 1.0, one
    unrelated memory of all would be expected to do as well. Scores of unrelated memories fall off exponentially
    for words (Manmatha, Rath and Feng, SIGIR 2001), so `-ln p` grows with z; similarities, sums of many small
    products, fall off like a normal distribution, so it grows with z^2 / 2. Scores below the mean are 0.

    >>> background = Background(mean=0.0, deviation=1.0, count=20)
    >>> [round(s, 3) for s in surprisal([3.0, -1.0], background, "exponential")]
    [1.001, 0.0]
    >>> [round(s, 3) for s in surprisal([3.0, -1.0], background, "normal")]
    [1.502, 0.0]
    """
    mean, deviation = background.mean, background.deviation
    if deviation <= 0:
        return [0.0] * len(scores)
    above = [max((score - mean) / deviation, 0.0) for score in scores]
    whole = max(log(max(background.count, 1)), 1.0)  # a space of one or two has nothing to single out
    return [z / whole for z in above] if tail == "exponential" else [z * z / 2 / whole for z in above]
