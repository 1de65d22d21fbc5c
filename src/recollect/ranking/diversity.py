"""Keep near-copies from crowding the top: MMR, and a gentler rule that only leaves out near-copies.

Always-on MMR costs a fifth of nDCG when several similar memories are all right answers, so the default only acts on
texts that are almost the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import fsum

SHINGLE = 3
NEAR_COPY = 0.9
"""The share of word triples that two near-copies have in common (w-shingling, Broder 1997)."""

COMPARED_CHARACTERS = 10_000
"""Only the beginnings of long texts are compared."""

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\b\w*\d\w*")


def mmr(
    relevance: Sequence[float], similarity: Callable[[int, int], float | None], *, balance: float, count: int
) -> list[int]:
    """The order in which maximal marginal relevance picks `count` positions (Carbonell and Goldstein 1998).

    Each pick maximises `balance * relevance - (1 - balance) * greatest similarity to what was picked`; the first is the
    most relevant. The earlier position wins a tie, so `balance=1` keeps an order by relevance as it is. A position
    whose similarity is unknown (None) counts as similar as the remaining ones are on average.
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


class NearCopyFilter:
    """Accepts each text that is not a near-copy of one it accepted before.

    Two texts that differ in a number are never near-copies, however alike: invoice 12345 is not invoice 12346.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[str, frozenset[str]]] = []

    def accepts(self, text: str) -> bool:
        own = frozenset(text[:COMPARED_CHARACTERS].casefold().split())
        for other, words in self._kept:
            # most texts share few words, or differ in length, and need no closer look
            if 2 * len(own & words) < max(len(own), len(words)):
                continue
            if _numbers(own) == _numbers(words) and _alike(text, other):
                return False
        self._kept.append((text, own))
        return True


def _alike(one: str, other: str) -> bool:
    shingles, others = _shingles(one), _shingles(other)
    shared = len(shingles & others)
    return shared >= NEAR_COPY * (len(shingles) + len(others) - shared)


@lru_cache(maxsize=256)
def _numbers(words: frozenset[str]) -> frozenset[str]:
    """The words that hold a digit. Most are plain letters, and need no closer look."""
    return frozenset(_NUMBER.findall(" ".join([word for word in words if not word.isalpha()])))


@lru_cache(maxsize=256)
def _shingles(text: str) -> frozenset[tuple[str, str, str]]:
    """Every three words in a row."""
    words = _WORD.findall(text[:COMPARED_CHARACTERS].casefold())
    padded = words + [""] * max(SHINGLE - len(words), 0)
    return frozenset(zip(padded, padded[1:], padded[2:], strict=False))
