"""Keep near-copies from crowding the top: MMR, and the gentler rule that only moves near-copies back.

Always-on MMR costs a fifth of nDCG where several similar memories are all right answers, so the default only acts
on texts that say the same in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

SHINGLE = 3
SAME = 0.9
"""Share of word triples two texts must have in common to be near-copies (w-shingling, Broder 1997)."""

_WORD = re.compile(r"\w+")


def mmr(
    relevance: Sequence[float], similarity: Callable[[int, int], float], *, balance: float, count: int
) -> list[int]:
    """The order in which maximal marginal relevance picks `count` positions (Carbonell and Goldstein 1998).

    Each pick maximises `balance * relevance - (1 - balance) * greatest similarity to what was picked`, the latter
    starting at 0. The earlier position wins a tie, so `balance=1` keeps an order by relevance as it is.
    """
    left = list(range(len(relevance)))
    nearest = [0.0] * len(relevance)
    picked: list[int] = []
    while left and len(picked) < count:
        best = max(left, key=lambda i: (balance * relevance[i] - (1 - balance) * nearest[i], -i))
        left.remove(best)
        picked.append(best)
        for i in left:
            nearest[i] = max(nearest[i], similarity(best, i))
    return picked


def near_copies(texts: Sequence[str], *, count: int) -> tuple[list[int], list[int]]:
    """Positions of the first `count` texts that are no near-copy of one before them, and the near-copies met.

    Two texts that differ in a number are never near-copies, however alike: invoice 12345 is not invoice 12346.
    """
    kept: list[int] = []
    copies: list[int] = []
    marks: list[tuple[frozenset[str], frozenset[tuple[str, ...]]]] = []
    for position, text in enumerate(texts):
        if len(kept) == count:
            break
        mark = _mark(text)
        if any(_alike(mark, other) for other in marks):
            copies.append(position)
        else:
            kept.append(position)
            marks.append(mark)
    return kept, copies


def _mark(text: str) -> tuple[frozenset[str], frozenset[tuple[str, ...]]]:
    words = _WORD.findall(text.casefold())
    numbers = frozenset(word for word in words if any(c.isdigit() for c in word))
    width = min(SHINGLE, len(words))
    return numbers, frozenset(tuple(words[i : i + width]) for i in range(len(words) - width + 1))


def _alike(
    one: tuple[frozenset[str], frozenset[tuple[str, ...]]], other: tuple[frozenset[str], frozenset[tuple[str, ...]]]
) -> bool:
    (numbers, shingles), (other_numbers, other_shingles) = one, other
    smaller, larger = sorted((len(shingles), len(other_shingles)))
    if numbers != other_numbers or smaller < SAME * larger:
        return False
    shared = len(shingles & other_shingles)
    return shared >= SAME * (len(shingles) + len(other_shingles) - shared)
