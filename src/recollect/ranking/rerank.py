"""After fusion: what a reranker says of the best few, weighed by how far it is trusted with each of them.

A reranker knows the kind of text that it was trained on, and harms the order of what it does not know: package names,
identifiers, other languages. So trust is a number for each memory, not one for the recipe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, fsum, inf, isfinite, log

from recollect.types import Fused, Part

PROSE = (0.15, 0.30)
"""Shares of small words ("the", "of", "and"): with the first or fewer a text is code or a list of names, with the
second or more it is prose. Of the passages in the training material 9 in 10 have more than 0.30; of functions of the
standard library 9 in 10 have fewer than 0.28, and half have fewer than 0.16."""


SURE = 12.0
"""The log odds beyond which a score says no more: the packaged model's own go from about -11 to 10."""


def fluency(share: float) -> float:
    """How much a text is like prose, from 0 to 1, by its share of small words.

    >>> [round(fluency(share), 2) for share in (0.1, 0.225, 0.45)]
    [0.0, 0.5, 1.0]
    """
    none, full = PROSE
    return min(max((share - none) / (full - none), 0.0), 1.0)


def check_scores(scores: Sequence[float], count: int) -> list[float]:
    """What a reranker answered, if it is one number from 0 to 1 for each of `count` passages. Raises ValueError."""
    if len(scores) != count:
        raise ValueError(f"it gave {len(scores)} scores for {count} passages")
    if wrong := [score for score in scores if not (isfinite(score) and 0 <= score <= 1)]:
        raise ValueError(f"it gave the score {wrong[0]!r}, which is not between 0 and 1")
    return [float(score) for score in scores]


def log_odds(score: float) -> float:
    """A score from 0 to 1 as the logarithm of its odds, at most `SURE`.

    >>> [round(log_odds(score), 2) for score in (0.0, 0.5, 0.9, 1.0)]
    [-12.0, 0.0, 2.2, 12.0]
    """
    least = 1 / (1 + exp(SURE))
    bounded = min(max(score, least), 1 - least)
    return log(bounded / (1 - bounded))


def mean_scores(ids: Sequence[str], scores: Sequence[float]) -> dict[str, float]:
    """The score with the mean log odds of all that each id was given: a turn is read alone, and with what stands
    beside it.

    >>> {id: round(score, 2) for id, score in mean_scores(["a", "b", "a"], [0.5, 0.9, 0.9]).items()}
    {'a': 0.75, 'b': 0.9}
    """
    given: dict[str, list[float]] = {}
    for id, score in zip(ids, scores, strict=True):
        given.setdefault(id, []).append(log_odds(score))
    return {id: 1 / (1 + exp(-fsum(own) / len(own))) for id, own in given.items()}


def reranked(
    fused: Sequence[Fused], scores: Mapping[str, float], trust: Mapping[str, float], memories: int
) -> list[Fused]:
    """The fused list with what was read in its new order, before what was not.

    Lanes add up how surprising a score is, `-ln p` as a share of `ln count`. A reranker's log odds are of the same
    kind, so they are added as a share of the same: with a trust of 1 they weigh as much as one lane. They count
    from their mean, so that memories with a high trust do not rise above the others for that alone. Of two memories the
    one that both the lanes and the reranker prefer stays first, however different the trust in them.
    """
    whole = max(log(max(memories, 1)), 1.0)
    odds = {id: log_odds(score) for id, score in scores.items()}
    mean = fsum(odds.values()) / max(len(odds), 1)
    places = {id: place for place, id in enumerate(sorted(odds, key=lambda one: -odds[one]), start=1)}
    unread = [one for one in fused if one.id not in odds]
    lowest = unread[0].score if unread else -inf
    read: list[Fused] = []
    for one in fused:
        if one.id not in odds:
            continue
        normalised = (odds[one.id] - mean) / whole
        better = (other.score for other in read if odds[other.id] >= odds[one.id])
        score = max(min(one.score + trust[one.id] * normalised, *better, inf), lowest)
        part: Part = ("rerank", places[one.id], scores[one.id], normalised, score - one.score, "rerank")
        read.append(Fused(one.id, score, (*one.parts, part)))
    return sorted(read, key=lambda one: -one.score) + unread
