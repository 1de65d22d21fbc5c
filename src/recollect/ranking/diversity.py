"""Keep near-copies from crowding the top: MMR, and the gentler rule that only moves near-copies back.

Always-on MMR costs a fifth of nDCG where several similar memories are all right answers, so the default only acts
on texts that say the same in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import fsum

SHINGLE = 3
SAME = 0.9
"""Share of word triples two texts must have in common to be near-copies (w-shingling, Broder 1997)."""

BEGINNING = 10_000
"""Characters by which two texts are compared: what agrees so far is a near-copy, or a version of the same document."""

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\b\w*\d\w*")


def mmr(
    relevance: Sequence[float], similarity: Callable[[int, int], float | None], *, balance: float, count: int
) -> list[int]:
    """The order in which maximal marginal relevance picks `count` positions (Carbonell and Goldstein 1998).

    Each pick maximises `balance * relevance - (1 - balance) * greatest similarity to what was picked`; the first is the
    most relevant. The earlier position wins a tie, so `balance=1` keeps an order by relevance as it is. A position
    whose similarity is unknown (None) is taken to be as similar as the others left are on average: it goes neither
    first nor last for that.
    """
    left = list(range(len(relevance)))
    nearest: dict[int, float] = {}
    picked: list[int] = []
    while left and len(picked) < count:
        known = [nearest[i] for i in left if i in nearest]
        usual = fsum(known) / len(known) if known else 0.0
        best = max(left, key=lambda i: (balance * relevance[i] - (1 - balance) * nearest.get(i, usual), -i))
        left.remove(best)
        picked.append(best)
        for i in left:
            if (alike := similarity(best, i)) is not None:
                nearest[i] = max(nearest.get(i, alike), alike)
    return picked


def near_copies(texts: Sequence[str], *, count: int) -> tuple[list[int], list[int]]:
    """Positions of the first `count` texts that are no near-copy of one before them, and the near-copies met.

    Two texts that differ in a number are never near-copies, however alike: invoice 12345 is not invoice 12346.
    """
    sieve = Sieve()
    kept: list[int] = []
    copies: list[int] = []
    for position, text in enumerate(texts):
        if len(kept) == count:
            break
        (kept if sieve.lets_through(text) else copies).append(position)
    return kept, copies


class Sieve:
    """Holds back near-copies of what it has let through, however many texts come one after the other."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, frozenset[str]]] = []

    def lets_through(self, text: str) -> bool:
        own = frozenset(text[:BEGINNING].casefold().split())
        for other, words in self._kept:
            # most texts share few words with the others, or are much longer or shorter, and need no closer look
            if 2 * len(own & words) < max(len(own), len(words)):
                continue
            if _numbers(own) == _numbers(words) and _alike(text, other):
                return False
        self._kept.append((text, own))
        return True


def _alike(one: str, other: str) -> bool:
    shingles, others = _shingles(one), _shingles(other)
    shared = len(shingles & others)
    return shared >= SAME * (len(shingles) + len(others) - shared)


@lru_cache(maxsize=256)
def _numbers(words: frozenset[str]) -> frozenset[str]:
    """Those that hold a digit. Most words are plain, and need no closer look."""
    return frozenset(_NUMBER.findall(" ".join([word for word in words if not word.isalpha()])))


@lru_cache(maxsize=256)
def _shingles(text: str) -> frozenset[tuple[str, str, str]]:
    """Every three words in a row."""
    words = _WORD.findall(text[:BEGINNING].casefold())
    padded = words + [""] * max(SHINGLE - len(words), 0)
    return frozenset(zip(padded, padded[1:], padded[2:], strict=False))
