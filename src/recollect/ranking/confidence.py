"""How sure an answer is: the probability that a hit answers the question, from what the lanes and the reranker say.

A logistic regression whose weights are all positive: whatever says more for a hit never makes it less sure. Nothing in
it depends on how many memories a space holds but the surprisal, which is a share of `ln count` and so means the same in
a small space and in a large one. `training/confidence.py` fits the weights, on questions that no judged set holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, fsum
from typing import NamedTuple

UNRELATED: Mapping[str, float] = {"granite-embedding-30m-english": 0.5, "multilingual-e5-small": 0.75}
"""The cosine of texts that have nothing to do with each other, by embedder. For others 0, as for vectors in general."""
TYPICAL = 0.6
"""The similarity of right answers in the training material. It stands for a hit's where no vector lane answered."""
LEAD = 2.0
"""A hit that is ahead or behind by more than this is no surer or less sure for that."""
SURPRISE = 6.0
NOISE = 0.03
"""Below this confidence a hit is noise: the best one for most off-topic questions has less than 0.02. A right one that
shares no word with its question, among a handful of memories, has 0.04, or 0.1 where a reranker has read it."""


class Signals(NamedTuple):
    """What is known of one hit.

    `similarity` is the cosine with the question, from 0 for unrelated texts to 1 (None: no vector lane answered);
    `coverage` the share of the question's words that it holds; `surprise` the sum of its lanes' surprisals, and `lead`
    its score less the best other hit's (None: scores of this recipe are not surprisals); `odds` the reranker's log
    odds (None: it has not read the hit, or is not trusted with it).
    """

    similarity: float | None
    coverage: float
    surprise: float | None = None
    lead: float | None = None
    odds: float | None = None


class Weights(NamedTuple):
    bias: float
    similarity: float
    coverage: float
    surprise: float = 0.0
    lead: float = 0.0
    odds: float = 0.0


READ = Weights(bias=-3.54, similarity=4.82, coverage=0.0, lead=1.36, odds=0.169)
"""Where a reranker has read the hit: it knows what coverage and surprisal tell, and their weights come out as 0."""
FUSED = Weights(bias=-5.63, similarity=5.99, coverage=0.89, surprise=0.43, lead=0.46)
"""Where lanes add surprisals."""
PLAIN = Weights(bias=-6.66, similarity=9.99, coverage=2.45)
"""For any other recipe."""


def confidence(signals: Signals) -> float:
    """The probability that the hit answers the question.

    >>> round(confidence(Signals(similarity=0.7, coverage=1.0, surprise=3.0, lead=1.0)), 2)
    0.77
    >>> round(confidence(Signals(similarity=0.1, coverage=0.0, surprise=1.5, lead=0.0)), 2)
    0.01
    """
    weights = weights_for(signals)
    similarity = TYPICAL * signals.coverage if signals.similarity is None else signals.similarity
    logit = fsum(
        (
            weights.bias,
            weights.similarity * min(max(similarity, 0.0), 1.0),
            weights.coverage * signals.coverage,
            weights.surprise * min(max(signals.surprise or 0.0, 0.0), SURPRISE),
            weights.lead * min(max(signals.lead or 0.0, -LEAD), LEAD),
            weights.odds * (signals.odds or 0.0),
        )
    )
    return 1 / (1 + exp(-logit))


def weights_for(signals: Signals) -> Weights:
    if signals.surprise is None or signals.lead is None:
        return PLAIN
    return FUSED if signals.odds is None else READ


def similarity(cosine: float, embedder: str) -> float:
    """A cosine from 0 for unrelated texts to 1, whichever model made the vectors.

    >>> similarity(0.75, "granite-embedding-30m-english")
    0.5
    """
    unrelated = UNRELATED.get(embedder, 0.0)
    return (cosine - unrelated) / (1 - unrelated)


def lead_of(scores: Sequence[float], place: int) -> float:
    """How far a score is ahead of the best other one, or behind it.

    >>> [lead_of([3.0, 2.0, 0.5], place) for place in range(3)]
    [1.0, -1.0, -2.5]
    """
    others = [score for at, score in enumerate(scores) if at != place]
    return scores[place] - max(others, default=0.0)
