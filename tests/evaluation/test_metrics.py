"""The metrics by literal arithmetic, in the convention of trec_eval and BEIR."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.evaluation import metrics

GRADES = {"a": 3.0, "b": 1.0, "c": 0.0, "d": -1.0}


def test_ndcg_uses_the_grade_as_gain() -> None:
    """Gain is the grade over log2(rank + 1); the ideal is everything judged in the best order."""
    found = 1 / log2(2) + 3 / log2(4)
    ideal = 3 / log2(2) + 1 / log2(3)
    assert metrics.ndcg(["b", "x", "a"], GRADES, 10) == pytest.approx(found / ideal)
    assert metrics.ndcg(["b", "x", "a"], GRADES, 10) == pytest.approx(0.688529, abs=1e-6)


def test_ndcg_counts_what_was_not_found() -> None:
    """A relevant document that is missing lowers the score even when all that was found is relevant."""
    assert metrics.ndcg(["a"], {"a": 1.0, "b": 1.0}, 10) == pytest.approx(1 / (1 + 1 / log2(3)))


def test_ndcg_ideal_is_cut_at_k() -> None:
    """With more relevant documents than places, a full list of relevant ones is perfect."""
    grades = {str(i): 1.0 for i in range(30)}
    assert metrics.ndcg([str(i) for i in range(10)], grades, 10) == pytest.approx(1.0)


def test_grades_of_zero_and_below_gain_nothing() -> None:
    """A document judged irrelevant, or worse, is like one never judged."""
    assert metrics.ndcg(["c", "d", "a", "b"], GRADES, 10) == metrics.ndcg(["x", "y", "a", "b"], GRADES, 10)
    assert metrics.reciprocal_rank(["c", "d", "b"], GRADES, 10) == pytest.approx(1 / 3)
    assert metrics.recall_any(["c", "d"], GRADES, 10) == 0.0


def test_reciprocal_rank_stops_at_k() -> None:
    """Rank counts from 1; a first relevant hit after the k-th place counts as none."""
    ranking = [str(i) for i in range(10)] + ["a"]
    assert metrics.reciprocal_rank(["a"], GRADES, 10) == 1.0
    assert metrics.reciprocal_rank(["x", "b", "a"], GRADES, 10) == 0.5
    assert metrics.reciprocal_rank(ranking, GRADES, 10) == 0.0
    assert metrics.reciprocal_rank(ranking, GRADES, 11) == pytest.approx(1 / 11)


def test_recall_in_three_senses() -> None:
    """One of two relevant documents: any is 1, the share is a half, all is 0."""
    ranking = ["x", "a", "y", "z", "w", "b"]
    assert [sense(ranking, GRADES, 5) for sense in (metrics.recall_any, metrics.recall_share, metrics.recall_all)] == [
        1.0,
        0.5,
        0.0,
    ]
    assert metrics.recall_share(ranking, GRADES, 6) == metrics.recall_all(ranking, GRADES, 6) == 1.0


def test_a_question_is_judged_when_something_is_relevant() -> None:
    """Only a grade above 0 makes a question one that can be scored."""
    assert metrics.is_judged({"a": 1.0})
    assert not metrics.is_judged({"a": 0.0, "b": -1.0})
    assert not metrics.is_judged({})


def test_scores_name_every_metric() -> None:
    """The names under which a report gives its numbers, in their order."""
    assert list(metrics.scores(["a"], GRADES)) == [
        "ndcg@10", "mrr@10",
        "recall_any@5", "recall_any@10", "recall_any@20",
        "recall_share@5", "recall_share@10", "recall_share@20",
        "recall_all@5", "recall_all@10", "recall_all@20",
        "no_hit",
    ]  # fmt: skip


def test_no_hit_is_an_empty_answer() -> None:
    """Hits that are all wrong are still hits; only an empty answer counts as none."""
    assert metrics.scores([], GRADES)["no_hit"] == 1.0
    assert metrics.scores(["x"], GRADES)["no_hit"] == 0.0


def test_means_are_over_questions() -> None:
    """Each metric is averaged over questions; without questions there is no mean to give."""
    assert metrics.means([{"ndcg@10": 1.0, "no_hit": 0.0}, {"ndcg@10": 0.5, "no_hit": 1.0}]) == {
        "ndcg@10": 0.75,
        "no_hit": 0.5,
    }
    assert metrics.means([]) == {}


def test_percentiles_are_interpolated() -> None:
    """Between two values the percentile lies in proportion; of nothing there is none."""
    assert metrics.percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert metrics.percentile([float(i) for i in range(101)], 0.95) == pytest.approx(95.0)
    assert metrics.percentile([7.0], 0.95) == 7.0
    assert metrics.percentile([], 0.5) is None


ids = st.lists(st.sampled_from("abcdefghijkl"), unique=True)


@given(ids, st.dictionaries(st.sampled_from("abcdefghijkl"), st.integers(1, 4).map(float), min_size=1))
def test_every_metric_is_a_share(ranking: list[str], grades: dict[str, float]) -> None:
    """Whatever the ranking, each metric lies between 0 and 1, and the senses of recall are ordered."""
    scored = metrics.scores(ranking, grades)
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in scored.values())
    for k in (5, 10, 20):
        assert scored[f"recall_all@{k}"] <= scored[f"recall_share@{k}"] <= scored[f"recall_any@{k}"]


@given(st.dictionaries(st.sampled_from("abcdefghijkl"), st.integers(1, 4).map(float), min_size=1))
def test_the_best_order_is_perfect(grades: dict[str, float]) -> None:
    """Everything relevant, best grade first, scores 1 by nDCG and by MRR."""
    ranking = sorted(grades, key=grades.__getitem__, reverse=True)
    scored = metrics.scores(ranking, grades)
    assert scored["ndcg@10"] == pytest.approx(1.0)
    assert scored["mrr@10"] == 1.0
