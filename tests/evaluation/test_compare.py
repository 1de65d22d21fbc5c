"""The paired bootstrap: the same each time, wide when unsure, refused when the questions differ."""

from __future__ import annotations

import pytest

from recollect.evaluation.compare import paired_bootstrap


def test_the_interval_is_the_same_each_time() -> None:
    """A seeded draw gives the same numbers on every run; another seed gives nearly the same."""
    baseline = [0.1, 0.9, 0.4, 0.3, 0.8] * 20
    other = [0.3, 0.8, 0.9, 0.2, 0.9] * 20
    interval = paired_bootstrap(baseline, other)
    assert interval == paired_bootstrap(baseline, other)
    assert interval.difference == pytest.approx(0.12)
    assert interval.low == pytest.approx(paired_bootstrap(baseline, other, seed=1).low, abs=0.01)


def test_a_constant_difference_has_no_width() -> None:
    """When every question gains the same, chance has no part in it."""
    interval = paired_bootstrap([0.25, 0.5, 0.75], [0.5, 0.75, 1.0])
    assert interval == (0.25, 0.25, 0.25)
    assert interval.is_certain


def test_a_difference_by_chance_spans_zero() -> None:
    """Gains and losses that cancel out leave 0 inside the interval."""
    interval = paired_bootstrap([0.0, 1.0] * 50, [1.0, 0.0] * 50)
    assert interval.difference == 0.0
    assert interval.low < 0 < interval.high
    assert not interval.is_certain


def test_the_width_is_that_of_the_normal_interval() -> None:
    """For many questions the bootstrap agrees with 1.96 standard errors: 0.5 / sqrt(400) is 0.025."""
    interval = paired_bootstrap([0.0] * 400, [0.0, 1.0] * 200)
    assert interval.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.006)
    assert interval.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.006)


@pytest.mark.parametrize(("baseline", "other"), [([0.1], [0.1, 0.2]), ([], [])])
def test_scores_that_cannot_be_paired_are_refused(baseline: list[float], other: list[float]) -> None:
    """Both recipes must have answered the same questions, and at least one."""
    with pytest.raises(ValueError, match="two scores for each question"):
        paired_bootstrap(baseline, other)
