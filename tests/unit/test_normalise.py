"""Normalisations, on plain numbers."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ranking.fusion import by_max, min_max, surprisal
from recollect.types import Background

scores = st.lists(st.floats(0, 1000, allow_subnormal=False), max_size=20)
backgrounds = st.builds(Background, st.floats(-1, 1), st.floats(0.01, 2), st.integers(1, 10**6))


def test_min_max() -> None:
    """(s - min) / (max - min)."""
    assert min_max([4.0, 3.0, 2.0]) == [1.0, 0.5, 0.0]


def test_min_max_of_equal_scores_is_one() -> None:
    """One hit, or hits that are all alike, are all the best."""
    assert min_max([0.7]) == [1.0]
    assert min_max([0.0, 0.0]) == [1.0, 1.0]
    assert min_max([]) == []


def test_by_max() -> None:
    """A share of the best in the list."""
    assert by_max([4.0, 1.0]) == [1.0, 0.25]
    assert by_max([0.0]) == [0.0]


def test_surprisal_where_nothing_varies_is_nothing() -> None:
    """Every memory scores the same: no score says anything."""
    assert surprisal([3.0, 3.0], Background(3.0, 0.0, 100), "exponential") == [0.0, 0.0]


def test_a_background_is_the_mean_and_deviation_of_a_sample() -> None:
    """2, 2 and six times 0: mean 0.5, variance (2 x 1.5^2 + 6 x 0.5^2) / 8 = 0.75, for as many as it stands for."""
    background = Background.of([2.0, 2.0, 0, 0, 0, 0, 0, 0], count=800)
    assert (background.mean, background.count) == (0.5, 800)
    assert background.deviation == pytest.approx(0.75**0.5)
    assert Background.of([], count=0) == Background(0.0, 0.0, 0)


def test_surprisal_of_words_grows_with_z_and_of_meaning_with_its_square() -> None:
    """z = 4 among 1000: 4 / ln 1000, and 8 / ln 1000."""
    background = Background(0.2, 0.1, 1000)
    assert surprisal([0.6], background, "exponential") == [pytest.approx(4 / log(1000))]
    assert surprisal([0.6], background, "normal") == [pytest.approx(8 / log(1000))]


def test_surprisal_below_the_mean_is_nothing() -> None:
    """What any memory would reach is no evidence; in a tiny space the divisor stays 1."""
    assert surprisal([0.1], Background(0.2, 0.1, 50), "normal") == [0.0]
    assert surprisal([0.4], Background(0.2, 0.1, 1), "exponential") == [pytest.approx(2.0)]


@given(scores)
def test_normalised_lists_keep_length_order_and_input(values: list[float]) -> None:
    """Better raw scores are never worse after normalising, and the input stays as it was."""
    values = sorted(values, reverse=True)
    before = list(values)
    background = Background(1.0, 2.0, 10)
    for result in (
        min_max(values),
        by_max(values),
        surprisal(values, background, "normal"),
        surprisal(values, background, "exponential"),
    ):
        assert len(result) == len(values)
        assert result == sorted(result, reverse=True)
    assert values == before


@given(scores.filter(bool))
def test_min_max_lies_between_zero_and_one(values: list[float]) -> None:
    """The best is 1, and nothing is outside 0..1."""
    result = min_max(values)
    assert max(result) == 1.0
    assert min(result) >= 0.0


@given(st.floats(0, 10), backgrounds, st.sampled_from(["normal", "exponential"]))
def test_surprisal_is_never_negative(score: float, background: Background, tail: str) -> None:
    """Evidence is for a memory or absent, never against it."""
    assert surprisal([score], background, "normal" if tail == "normal" else "exponential")[0] >= 0
