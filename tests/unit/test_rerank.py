"""What a reranker adds, in literals."""

from __future__ import annotations

from math import exp, inf, nan

import pytest

from recollect.ranking.rerank import check_scores, fluency, mean_scores, reranked
from recollect.types import Fused

FUSED = [Fused("a", 2.0, ()), Fused("b", 1.5, ()), Fused("c", 1.0, ()), Fused("d", 0.5, ())]
E = exp(1)
ODDS = {-2.0: 1 / (1 + E**2), 0.0: 0.5, 2.0: E**2 / (1 + E**2)}
"""Scores by their log odds."""


def test_log_odds_from_their_mean_are_added() -> None:
    """Odds -2, 2 and 0 have the mean 0; with e^4 memories a log odd of 2 is half of what singles one out."""
    scores = {"a": ODDS[-2.0], "b": ODDS[2.0], "c": ODDS[0.0]}
    order = reranked(FUSED, scores, {"a": 1.0, "b": 2.0, "c": 1.0}, 55)
    assert [one.id for one in order] == ["b", "a", "c", "d"]
    assert [one.score for one in order] == pytest.approx([1.5 + 2 * 0.5, 2.0 - 0.5, 1.0, 0.5], abs=0.01)


def test_the_part_says_what_was_added() -> None:
    """Its rank is that among what was read, its raw score the reranker's own."""
    order = reranked(FUSED, {"a": ODDS[-2.0], "b": ODDS[2.0]}, {"a": 1.0, "b": 2.0}, 1)
    (part,) = order[0].parts
    assert (part[:3], part[5]) == (("rerank", 1, ODDS[2.0]), "rerank")
    assert part[3:5] == pytest.approx((2.0, 4.0))


def test_what_was_read_stays_before_what_was_not() -> None:
    """However low it was scored, it has no less than the best of the others."""
    order = reranked(FUSED, {"a": 0.0, "b": 1.0}, {"a": 10.0, "b": 10.0}, 100)
    assert [one.id for one in order] == ["b", "a", "c", "d"]
    assert order[1].score == pytest.approx(1.0)


def test_no_trust_changes_no_order() -> None:
    """With a trust of 0 the fused order stands, equal scores included."""
    equal = [Fused("b", 1.0, ()), Fused("a", 1.0, ())]
    assert [one.id for one in reranked(equal, {"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 0.0}, 100)] == ["b", "a"]


def test_trust_alone_lifts_nothing() -> None:
    """A turn and a fact that were read alike keep their places, though the turn is trusted to the reranker more."""
    order = reranked(FUSED[:2], {"a": 0.9, "b": 0.9}, {"a": 0.1, "b": 3.0}, 100)
    assert [(one.id, one.score) for one in order] == [("a", 2.0), ("b", 1.5)]


def test_what_lanes_and_reranker_both_prefer_stays_first() -> None:
    """A turn of which little is thought does not pass a fact of which more is, by the trust in turns alone."""
    scores = {"a": 0.9, "b": 0.03, "c": 0.00001, "d": 0.00001}
    order = reranked(FUSED, scores, {"a": 0.1, "b": 3.0, "c": 0.1, "d": 0.1}, 6)
    assert [one.id for one in order] == ["a", "b", "c", "d"]
    assert order[1].score == order[0].score


def test_a_turn_has_the_mean_of_its_readings() -> None:
    """The mean of the log odds -2 and 0 is -1; what was read once keeps its score."""
    scores = mean_scores(["a", "a", "b"], [ODDS[-2.0], ODDS[0.0], 0.3])
    assert scores == pytest.approx({"a": 1 / (1 + E), "b": 0.3})


@pytest.mark.parametrize("scores", [[], [0.5], [0.5, nan], [0.5, inf], [0.5, -0.1], [0.5, 1.1], [0.1, 0.2, 0.3]])
def test_wrong_scores_are_refused(scores: list[float]) -> None:
    """Too few, too many, not a number, or outside 0 to 1: no order is made of them."""
    with pytest.raises(ValueError, match="it gave"):
        check_scores(scores, 2)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0.0), (0.15, 0.0), (0.225, 0.5), (0.3, 1.0), (0.6, 1.0)])
def test_prose_is_told_by_its_small_words(share: float, expected: float) -> None:
    """From 0.15 to 0.30 of the words, in a straight line."""
    assert fluency(share) == pytest.approx(expected)
