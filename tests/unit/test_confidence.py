"""Confidence: a probability, monotone in all that is known, and literal where it matters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ranking.confidence import FUSED, PLAIN, READ, Signals, confidence, lead_of, similarity, weights_for

unit = st.floats(0, 1)
found = st.builds(
    Signals,
    st.none() | unit,
    unit,
    st.none() | st.floats(-5, 50),
    st.none() | st.floats(-50, 50),
    st.none() | st.floats(-12, 12),
)


@given(found)
def test_it_is_a_probability(signals: Signals) -> None:
    """Whatever is known, and whatever is not."""
    assert 0 < confidence(signals) < 1


@given(found, st.sampled_from(Signals._fields), st.floats(0, 10))
def test_more_for_a_hit_never_makes_it_less_sure(signals: Signals, name: str, more: float) -> None:
    """Monotone in each signal that is there."""
    value = getattr(signals, name)
    if value is not None:
        better: dict[str, Any] = {name: value + more if name != "coverage" else min(value + more, 1.0)}
        assert confidence(signals._replace(**better)) >= confidence(signals) - 1e-12


@pytest.mark.parametrize(
    ("signals", "weights"),
    [
        (Signals(0.5, 0.5), PLAIN),
        (Signals(0.5, 0.5, odds=3.0), PLAIN),
        (Signals(0.5, 0.5, 2.0, 0.5), FUSED),
        (Signals(0.5, 0.5, 2.0, 0.5, 3.0), READ),
    ],
)
def test_the_weights_fit_what_is_known(signals: Signals, weights: object) -> None:
    """Surprisals where scores are surprisals, the reranker where it has read."""
    assert weights_for(signals) is weights


def test_in_literals() -> None:
    """-5.63 + 5.99 x 0.6 + 0.89 x 0.5 + 0.43 x 3 + 0.46 x 1 = 0.159, and its logistic."""
    assert confidence(Signals(0.6, 0.5, 3.0, 1.0)) == pytest.approx(0.5397, abs=1e-4)
    # -3.54 + 4.82 x 0.6 + 1.36 x 1 + 0.169 x 4 = 1.388
    assert confidence(Signals(0.6, 0.5, 3.0, 1.0, 4.0)) == pytest.approx(0.8003, abs=1e-4)


def test_without_a_vector_lane_words_stand_for_meaning() -> None:
    """An answer that lacks the vector lane is as sure as its words allow, and not sure of nothing."""
    assert confidence(Signals(None, 1.0, 3.0, 1.0)) > 0.5
    assert confidence(Signals(None, 0.0, 1.0, 0.0)) < 0.05


def test_similarity_is_on_the_models_scale() -> None:
    """Unrelated texts have a cosine of 0.5 by the packaged model."""
    assert similarity(0.8, "granite-embedding-30m-english") == pytest.approx(0.6)
    assert similarity(0.8, "another") == pytest.approx(0.8)


def test_a_lead_is_over_the_best_other() -> None:
    """One that stands alone leads by its whole score."""
    assert lead_of([1.5], 0) == 1.5
    assert lead_of([1.0, 3.0, 2.0], 1) == 1.0
