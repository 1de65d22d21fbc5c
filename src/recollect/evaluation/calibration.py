"""Whether a confidence means what it says, and whether it tells answers from noise. Pure functions on plain data."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf
from typing import NamedTuple

BINS = 10


class Judged(NamedTuple):
    """A confidence, and whether it was right."""

    confidence: float
    right: bool


class Bin(NamedTuple):
    """The predictions from `low` to `high`: how many there are, their mean confidence, and the share that was right."""

    low: float
    high: float
    predictions: int
    confidence: float
    right: float


def reliability(judged: Sequence[Judged], bins: int = BINS) -> list[Bin]:
    """The reliability diagram: predictions by confidence in bins of equal width; empty ones are left out.

    >>> [tuple(one) for one in reliability([Judged(0.1, False), Judged(0.9, True), Judged(0.8, False)], bins=2)]
    [(0.0, 0.5, 1, 0.1, 0.0), (0.5, 1.0, 2, 0.85, 0.5)]
    """
    held: dict[int, list[Judged]] = {}
    for one in judged:
        held.setdefault(min(int(one.confidence * bins), bins - 1), []).append(one)
    return [
        Bin(
            number / bins,
            (number + 1) / bins,
            len(some),
            round(fsum(one.confidence for one in some) / len(some), 12),
            sum(one.right for one in some) / len(some),
        )
        for number, some in sorted(held.items())
    ]


def calibration_error(judged: Sequence[Judged], bins: int = BINS) -> float:
    """The expected calibration error: how far confidence and outcome lie apart in a bin, weighed by its count (Guo et
    al., ICML 2017).

    >>> calibration_error([Judged(0.75, True), Judged(0.75, True), Judged(0.25, False)])
    0.25
    """
    if not judged:
        return 0.0
    return fsum(one.predictions * abs(one.confidence - one.right) for one in reliability(judged, bins)) / len(judged)


def auroc(above: Sequence[float], below: Sequence[float]) -> float | None:
    """The chance that one of `above` is higher than one of `below`, a tie counting half: the area under the ROC curve.
    None where there is nothing to compare.

    >>> auroc([0.9, 0.5], [0.5, 0.1])
    0.875
    """
    if not above or not below:
        return None
    everything = sorted([(score, 1) for score in above] + [(score, 0) for score in below])
    won = lower = 0.0
    ahead: list[int] = []
    before = -inf
    for score, is_above in [*everything, (inf, 0)]:
        if score != before:
            losers = len(ahead) - sum(ahead)
            won += sum(ahead) * (lower + losers / 2)
            lower += losers
            ahead, before = [], score
        ahead.append(is_above)
    return won / (len(above) * len(below))
