"""MMR and near-copies, on plain numbers and texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.ranking.diversity import NearCopyFilter, mmr

relevances = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(relevances)
def test_mmr_with_balance_one_is_plain_relevance(relevance: list[float]) -> None:
    """With lambda 1 the order is by relevance, earlier positions first among equals."""
    by_relevance = sorted(range(len(relevance)), key=lambda i: (-relevance[i], i))
    assert mmr(relevance, lambda _a, _b: 1.0, balance=1.0, count=len(relevance)) == by_relevance


@given(relevances, st.integers(1, 12))
def test_mmr_picks_each_position_once(relevance: list[float], count: int) -> None:
    """MMR returns `count` different positions, or all there are."""
    picked = mmr(relevance, lambda _a, _b: 0.5, balance=0.7, count=count)
    assert len(set(picked)) == len(picked) == min(count, len(relevance))


def test_mmr_arithmetic() -> None:
    """0.7 x 0.8 - 0.3 x 0.95 = 0.275 loses against 0.7 x 0.6 - 0.3 x 0.1 = 0.39: variety before a near-copy."""
    similar = {(0, 1): 0.95, (0, 2): 0.1, (2, 1): 0.1}
    order = mmr([0.9, 0.8, 0.6], lambda a, b: similar[a, b], balance=0.7, count=3)
    assert order == [0, 2, 1]


def test_mmr_has_no_floor_under_similarity() -> None:
    """What points away from everything picked is the most different: 0.7 x 0.5 + 0.3 x 0.8 = 0.59 wins against
    0.7 x 0.6 - 0.3 x 0.0 = 0.42. The source's formula takes the greatest similarity, and that may be below 0.
    """
    similar = {(0, 1): 0.0, (0, 2): -0.8, (2, 1): 0.0}
    assert mmr([1.0, 0.6, 0.5], lambda a, b: similar[a, b], balance=0.7, count=2) == [0, 2]


def test_mmr_treats_an_unknown_similarity_as_the_usual_one() -> None:
    """Position 3 has no vector. It counts as similar as the others left are on average: after those that differ more
    than most, before those that differ less, and where nothing is known of any, by relevance alone.
    """
    alike = {1: 0.9, 2: 0.5, 4: 0.7}

    def similarity(_picked: int, other: int) -> float | None:
        return alike.get(other)

    assert mmr([1.0, 0.9, 0.9, 0.91, 0.9], similarity, balance=0.7, count=5) == [0, 2, 4, 3, 1]
    assert mmr([1.0, 0.9, 0.8], lambda _a, _b: None, balance=0.7, count=3) == [0, 1, 2]


def accepted(texts: list[str]) -> list[int]:
    """The positions of the texts that are not near-copies of an earlier one."""
    near_copies = NearCopyFilter()
    return [position for position, text in enumerate(texts) if near_copies.accepts(text)]


def test_a_near_copy_is_left_out() -> None:
    """The same words with other punctuation and case are a near-copy."""
    texts = ["The door code is with Anna.", "the door code is with Anna!", "The garage code is with Ben."]
    assert accepted(texts) == [0, 2]


def test_texts_that_differ_in_a_number_are_no_near_copies() -> None:
    """A hundred invoices that differ only in their number are a hundred memories."""
    texts = [f"Invoice {number} was paid by bank transfer on the third of May as agreed" for number in range(100)]
    assert accepted(texts) == list(range(100))


def test_a_denial_is_no_near_copy() -> None:
    """One word more can turn the meaning around; a sentence's length of agreement does not hide it."""
    texts = ["Deploys are allowed on Friday after four", "Deploys are not allowed on Friday after four"]
    assert accepted(texts) == [0, 1]


def test_swapped_words_are_no_near_copy() -> None:
    """Order counts: who pays whom matters."""
    assert accepted(["Anna pays Ben", "Ben pays Anna"]) == [0, 1]


@given(st.lists(st.text(max_size=30), max_size=10))
def test_the_first_text_is_always_kept(texts: list[str]) -> None:
    """The best hit is never held back, and a text that comes again always is."""
    kept = accepted(texts)
    assert kept[:1] == ([0] if texts else [])
    assert accepted([*texts, *texts]) == kept
