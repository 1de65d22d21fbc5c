"""Calibration and separation, in literals."""

from __future__ import annotations

import pytest

from recollect.evaluation.calibration import Bin, Judged, auroc, calibration_error, reliability


def test_bins_hold_their_own() -> None:
    """1.0 belongs to the last bin; bins without a prediction are left out."""
    judged = [Judged(0.05, False), Judged(0.15, True), Judged(1.0, True), Judged(0.96, False)]
    assert reliability(judged) == [
        Bin(0.0, 0.1, 1, 0.05, 0.0),
        Bin(0.1, 0.2, 1, 0.15, 1.0),
        Bin(0.9, 1.0, 2, 0.98, 0.5),
    ]


def test_error_is_weighed_by_count() -> None:
    """(1 x 0.05 + 1 x 0.85 + 2 x 0.48) / 4."""
    judged = [Judged(0.05, False), Judged(0.15, True), Judged(1.0, True), Judged(0.96, False)]
    assert calibration_error(judged) == pytest.approx(0.465)


def test_what_is_right_as_often_as_it_says_has_no_error() -> None:
    """Three of four at 0.75."""
    assert calibration_error([Judged(0.75, True)] * 3 + [Judged(0.75, False)]) == 0.0


@pytest.mark.parametrize(
    ("above", "below", "area"),
    [
        ([3, 4], [1, 2], 1.0),
        ([1, 2], [3, 4], 0.0),
        ([1], [1], 0.5),
        ([2, 1], [1, 0], 0.875),
        ([1, 3], [2], 0.5),
        ([], [1], None),
    ],
)
def test_area_under_the_curve(above: list[float], below: list[float], area: float | None) -> None:
    """Each pair that is in order counts 1, a tie a half."""
    assert auroc(above, below) == area
