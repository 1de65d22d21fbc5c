"""The arithmetic of BM25 that every store shares, and what it looks up within a budget."""

from __future__ import annotations

from math import isclose, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.stores import bm25
from recollect.stores.bm25 import Counted, Look, Part
from recollect.types import Scored


def chosen(rows: dict[str, int], budget: int) -> tuple[list[str], bool]:
    parts, more = bm25.choose([Counted(name, 1.0, count) for name, count in rows.items()], budget)
    return [part.expression for part in parts], more


def test_idf_is_the_textbooks() -> None:
    """ln(1 + (N - n + 0.5) / (n + 0.5)), which stays above 0 for a word that is everywhere."""
    assert isclose(bm25.idf(9, 2), log(1 + 7.5 / 2.5))
    assert isclose(bm25.idf(9, 9), log(1 + 0.5 / 9.5))
    assert bm25.weighed(Counted("plum", 2.0, 2), 9) == Part("plum", 2, 2 * log(4))


def test_the_rarest_parts_are_looked_up_within_the_budget() -> None:
    """Rarest first until the budget is spent; what nobody holds is neither looked up nor left out."""
    assert chosen({"common": 60, "rare": 1, "some": 30, "none": 0}, 100) == (["rare", "some", "common"], False)
    assert chosen({"common": 60, "rare": 1, "some": 30, "none": 0}, 90) == (["rare", "some"], True)
    assert chosen({"none": 0}, 90) == ([], False)


def test_the_rarest_part_is_looked_up_whatever_it_takes() -> None:
    """Of parts that are all beyond the budget the rarest, and of equally rare ones the first."""
    assert chosen({"common": 300, "less": 200}, 100) == (["less"], True)
    assert chosen({"first": 101, "second": 101}, 100) == (["first"], True)


def test_a_question_has_no_more_parts_than_a_statement_takes() -> None:
    """However rare they are."""
    parts, more = chosen({f"w{number}": 1 for number in range(bm25.MOST_PARTS + 1)}, 5_000)
    assert len(parts) == bm25.MOST_PARTS
    assert more


@given(st.lists(st.integers(0, 400), max_size=12), st.integers(1, 500))
def test_what_is_looked_up_is_rarer_than_what_is_not(rows: list[int], budget: int) -> None:
    """No part that is left out is rarer than one that is looked up, and the budget is kept by all but a first one."""
    parts, more = bm25.choose([Counted(str(at), 1.0, count) for at, count in enumerate(rows)], budget)
    left = sorted(count for at, count in enumerate(rows) if count and str(at) not in {p.expression for p in parts})
    assert more is bool(left)
    assert not left or all(part.rows <= left[0] for part in parts)
    assert len(parts) <= 1 or sum(part.rows for part in parts) <= budget


def test_the_background_is_told_by_the_document_frequencies() -> None:
    """Mean p x worth and variance p (1 - p) x worth^2, summed over the parts, p being the share that holds one."""
    found = bm25.background([Part("plum", 1, 3.0), Part("pear", 2, 1.0)], 4)
    assert isclose(found.mean, 3 / 4 + 1 / 2)
    assert isclose(found.deviation, sqrt(3 / 16 * 9 + 1 / 4))
    assert found.count == 4
    assert bm25.background([], 0).mean == 0.0


def hits(*scores: float) -> list[Scored]:
    return [Scored(f"{number}", score) for number, score in enumerate(scores)]


@pytest.mark.parametrize(
    ("look", "enough"),
    [
        (Look(hits(5, 4), seen=2, last=4), True),  # all there are
        (Look(hits(5, 4, 3), seen=3, last=3), True),  # one more than wanted, and it scores less
        (Look(hits(5, 4, 4), seen=3, last=4), False),  # the next may tie with the last one wanted
        (Look(hits(5, 4), seen=3, last=3), False),  # the filter hid one
    ],
)
def test_a_look_is_enough_when_nothing_better_can_follow(look: Look, enough: bool) -> None:
    """The best two of the best three rows: none may be missing that passes the filter or ties with the last."""
    assert bm25.is_enough(look, most=3, limit=2) is enough


def test_a_filter_is_narrow_when_not_one_in_twenty_passes() -> None:
    """Then the filter's own rows are the way in."""
    assert bm25.is_narrow(Look(hits(1), seen=21, last=0))
    assert not bm25.is_narrow(Look(hits(1), seen=20, last=0))
    assert bm25.first_look(100, filtered=False) == 125
    assert bm25.first_look(100, filtered=True) == 400


@pytest.mark.parametrize(
    ("size", "listed", "most"),
    [(100, False, 2_000), (10**6, False, 2_000), (100, True, 2_000), (40_000, True, 10_000), (10**6, True, 20_000)],
)
def test_rows_are_listed_where_a_first_look_would_find_too_little(size: int, listed: bool, most: int) -> None:
    """One in four, where an index lists them; a few in any case."""
    assert bm25.most_listed(size, listed=listed) == most


def test_ties_go_by_id() -> None:
    """Best first, and of equal scores the smaller id."""
    assert bm25.best([Scored("b", 1), Scored("a", 1), Scored("c", 2)], 2) == [Scored("c", 2), Scored("a", 1)]


def test_too_little_behind_a_filter_is_fewer_than_an_answer_has() -> None:
    """Without a filter only an empty answer is."""
    assert bm25.is_too_little(hits(*range(9)), 100, filtered=True)
    assert not bm25.is_too_little(hits(*range(10)), 100, filtered=True)
    assert not bm25.is_too_little(hits(1, 2), 2, filtered=True)
    assert bm25.is_too_little([], 100, filtered=False)
    assert not bm25.is_too_little(hits(1), 100, filtered=False)
