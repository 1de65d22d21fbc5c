"""Several rankings into one.

* `rrf`: by rank alone. Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual
  rank learning methods", SIGIR 2009.
* `weighted`: a weighted sum of normalised scores. Fox and Shaw, "Combination of multiple searches" (CombSUM),
  TREC-2, 1994; for words and vectors Bruch, Gai and Ingber, "An analysis of fusion functions for hybrid
  retrieval", TOIS 2023.
* `calibrated`: the default; a sum of how surprising each score is (`surprisal`). Adding -ln p of
  independent tests is Fisher's method (1925). It has no constant to fit, and a list whose best score is nothing
  special for this question adds little, however it compares with the rest of that list.

A lane that did not return an id adds nothing to it. Of two with the same score the one goes first that the earlier
lane found, or found at a better rank; in one lane, equal scores stand in the order of their ids. That is what a stable
sort makes of a map filled lane by lane, which is how the source systems fuse. The rankings handed in are not changed.

A lane's scores are normalised before they are added to another's. `min_max` and `by_max` only look at the list itself,
so they make the best of a bad list look perfect; `surprisal` looks at what chance alone would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import fsum, log
from operator import attrgetter, itemgetter
from typing import Literal, Protocol, TypeAlias

from recollect.types import Background, Fused, Part, Ranking, Tail

Normalise: TypeAlias = Callable[[Sequence[float]], list[float]]
"""Scores onto a scale that can be added to another lane's: as many, in the same order."""

_CONTRIBUTION = itemgetter(4)
_SCORE, _TAIL = attrgetter("score"), attrgetter("tail")

FEW = 3
"""Memories that it takes for one of them to stand out from the others."""


class LaneLike(Protocol):
    """What fusion needs to know of a lane."""

    @property
    def name(self) -> str: ...
    @property
    def weight(self) -> float: ...


class FusionLike(Protocol):
    """What a recipe says about fusion."""

    @property
    def method(self) -> Literal["rrf", "min_max", "calibrated", "raw"]: ...
    @property
    def k(self) -> int: ...
    @property
    def renormalise(self) -> bool: ...


def fuse(fusion: FusionLike, lanes: Iterable[tuple[LaneLike, Ranking | None]]) -> list[Fused]:
    """The rankings of a recipe's lanes, fused as the recipe says. No ranking: that lane did not answer."""
    rankings: list[Ranking] = []
    weights: list[float] = []
    wanted: list[float] = []
    for lane, ranking in lanes:
        wanted.append(lane.weight)
        if ranking is not None:
            rankings.append(ranking)
            weights.append(lane.weight)
    if fusion.renormalise and len(weights) < len(wanted):
        weights = renormalised(weights, fsum(wanted))
    if fusion.method == "rrf":
        return rrf(rankings, fusion.k, weights)
    if fusion.method == "min_max":
        return weighted(rankings, weights)
    if fusion.method == "raw":
        return weighted(rankings, weights, normalise=list)
    return calibrated(rankings, weights, [*map(_TAIL, rankings)])


def renormalised(weights: Sequence[float], total: float) -> list[float]:
    """The weights of the lanes that answered, in their proportion, scaled to what all lanes weigh together. Scores then
    mean the same with a lane missing (`min_score` holds), and nothing changes when none is.
    """
    present = fsum(weights)
    return [weight * (total / present) for weight in weights] if present > 0 else list(weights)


def rrf(rankings: Sequence[Ranking], k: int = 60, weights: Sequence[float] | None = None) -> list[Fused]:
    """The sum of `1 / (k + rank)` over the rankings, rank from 1: the first hit of one ranking is 1/61."""
    shares = [[1 / (k + rank) for rank in range(1, len(ranking.hits) + 1)] for ranking in rankings]
    return _summed(rankings, shares, weights or [1.0] * len(rankings))


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
    whole = max(log(max(background.count, 1)), 1.0)  # a space of one or two has nothing to single out
    shares: list[float] = []
    for score in scores:
        z = max((score - mean) / deviation, 0.0)
        shares.append(z / whole if tail == "exponential" else z * z / 2 / whole)
    return shares


def weighted(rankings: Sequence[Ranking], weights: Sequence[float], normalise: Normalise = min_max) -> list[Fused]:
    """The weighted sum of scores, each normalised within its own ranking."""
    shares = [normalise([hit.score for hit in ranking.hits]) for ranking in rankings]
    return _summed(rankings, shares, weights)


def calibrated(rankings: Sequence[Ranking], weights: Sequence[float], tails: Sequence[Tail | None]) -> list[Fused]:
    """The weighted sum of surprisals; then what holds an exact identifier or phrase keeps its place (`keep_exact`).

    A ranking without a tail counts as it is. One with a tail but without a background, or with one of so few memories
    that nothing can stand out, is min-max normalised: it can then only compare its own hits.
    """
    fused = _summed(rankings, [*map(_calibrated, rankings, tails)], weights)
    for ranking in rankings:
        if ranking.exact:
            fused = keep_exact(fused, ranking)
    return fused


def _calibrated(ranking: Ranking, tail: Tail | None) -> list[float]:
    scores = [*map(_SCORE, ranking.hits)]
    if tail is None:
        return scores
    if ranking.background is None or ranking.background.count < FEW:
        return min_max(scores)
    return surprisal(scores, ranking.background, tail)


def keep_exact(fused: Sequence[Fused], ranking: Ranking) -> list[Fused]:
    """Move each hit in `ranking.exact` up to the place it has in `ranking`, unless it stands higher already.

    Whatever the other rankings say: who asks for invoice 12346 does not want invoice 12345. A hit that moves is
    given the score of the one it stands before, and its `why` says so as a part of the kind "exact".
    """
    order = list(fused)
    if not ranking.exact:
        return order
    for place, hit in enumerate(ranking.hits):
        if hit.id not in ranking.exact:
            continue
        at = next((i for i, f in enumerate(order) if f.id == hit.id), place)
        if at > place:
            moved, above = order.pop(at), order[place].score
            lift = above - moved.score
            parts = (*moved.parts, ("exact", place + 1, hit.score, lift, lift, "exact"))
            order.insert(place, Fused(moved.id, above, parts))
    return order


def _summed(rankings: Sequence[Ranking], shares: Sequence[Sequence[float]], weights: Sequence[float]) -> list[Fused]:
    """For each id its lanes' weighted shares, best sum first, ties by lane and rank. `fsum`, because then a sum does
    not depend on the order of the lanes, to the last digit.
    """
    found: dict[str, tuple[Part, ...]] = {}
    for ranking, normalised, weight in zip(rankings, shares, weights, strict=True):
        lane, leg = ranking.lane, ranking.leg
        for rank, ((id, raw), share) in enumerate(zip(ranking.hits, normalised, strict=True), start=1):
            part: Part = (lane, rank, raw, share, weight * share, leg)
            found[id] = (*found[id], part) if id in found else (part,)
    fused = [Fused(id, fsum(map(_CONTRIBUTION, parts)), parts) for id, parts in found.items()]
    return sorted(fused, key=itemgetter(1), reverse=True)  # a stable sort: equals stay in the order they were found in
