"""Metrics of a ranking, by the judged grades of its documents. Pure functions.

The conventions are those of trec_eval and BEIR: the gain of a document is its grade, not `2 ** grade - 1`; the
ideal ranking contains everything judged, found or not; a question without relevant documents has no score.
Grades of 0 and below are not relevant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import floor, log2
from statistics import fmean
from typing import TypeAlias

Grades: TypeAlias = Mapping[str, float]
"""Id -> grade, for one question."""

DEPTH = 20
"""How many hits the metrics of `scores` need."""


def ndcg(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Discounted gain of the first `k`, as a share of the best possible (Järvelin and Kekäläinen, 2002)."""
    ideal = sorted(_relevant(grades).values(), reverse=True)
    found = (max(grades.get(id, 0.0), 0.0) for id in ranking)
    return _discounted(found, k) / _discounted(ideal, k)


def reciprocal_rank(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 / rank of the first relevant hit, 0 when it is not among the first `k`."""
    relevant = _relevant(grades)
    return next((1 / rank for rank, id in enumerate(ranking[:k], start=1) if id in relevant), 0.0)


def recall_any(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 when at least one relevant document is among the first `k`."""
    return float(not _relevant(grades).keys().isdisjoint(ranking[:k]))


def recall_share(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Which part of the relevant documents is among the first `k`."""
    relevant = _relevant(grades).keys()
    return len(relevant & set(ranking[:k])) / len(relevant)


def recall_all(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 when every relevant document is among the first `k`."""
    return float(_relevant(grades).keys() <= set(ranking[:k]))


def is_judged(grades: Grades) -> bool:
    return bool(_relevant(grades))


def scores(ranking: Sequence[str], grades: Grades) -> dict[str, float]:
    """Every metric of one judged question, by the name it is reported under."""
    recalls = {"any": recall_any, "share": recall_share, "all": recall_all}
    return {
        "ndcg@10": ndcg(ranking, grades, 10),
        "mrr@10": reciprocal_rank(ranking, grades, 10),
        **{
            f"recall_{sense}@{k}": recall(ranking, grades, k)
            for sense, recall in recalls.items()
            for k in (5, 10, DEPTH)
        },
        "no_hit": float(not ranking),
    }


def means(questions: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each metric over questions; nothing when there are none."""
    return {name: fmean(question[name] for question in questions) for name in (questions[0] if questions else ())}


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value below which `share` (0 to 1) of the values lie, interpolated between two; None for no values."""
    if not values:
        return None
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below = floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _relevant(grades: Grades) -> Grades:
    return {id: grade for id, grade in grades.items() if grade > 0}


def _discounted(gains: Iterable[float], k: int) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in zip(range(1, k + 1), gains, strict=False))
