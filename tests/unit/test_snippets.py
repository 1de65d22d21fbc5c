"""Snippets: 240 characters around the first match."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.text.analyzer import terms
from recollect.text.snippets import ELLIPSIS, WIDTH, snippet

words = st.text(alphabet="ab c.d-e 12\n", max_size=400)


@given(words, words, st.integers(8, 300))
def test_a_snippet_is_a_part_of_its_text(text: str, query: str, width: int) -> None:
    """Without its ellipses a snippet stands in the text as it is, and is never longer than asked for."""
    made = snippet(text, set(terms(query)), width=width).text.removeprefix(ELLIPSIS).removesuffix(ELLIPSIS)
    assert made in text
    assert len(made) <= width


@given(words, words)
def test_marks_lie_on_matching_words(text: str, query: str) -> None:
    """Every mark is within the snippet, in order, not overlapping, and marks one of the terms."""
    wanted = set(terms(query))
    made = snippet(text, wanted)
    last = 0
    for start, end in made.marks:
        assert last <= start < end <= len(made.text)
        assert wanted & set(terms(made.text[start:end]))
        last = end


def test_a_short_text_is_returned_whole() -> None:
    """Nothing is cut, so there is no ellipsis; the match is marked."""
    made = snippet("Invoice 12345 was paid", set(terms("12345")))
    assert made.text == "Invoice 12345 was paid"
    assert made.marks == ((8, 13),)


def test_the_window_is_centred_on_the_first_match() -> None:
    """With room on both sides, as much text stands before the match as after it, and both sides are cut."""
    text = "x " * 300 + "zebra" + " y" * 300
    made = snippet(text, set(terms("zebra")))
    assert len(made.text) == WIDTH + 2 * len(ELLIPSIS)
    assert made.text.startswith(ELLIPSIS)
    assert made.text.endswith(ELLIPSIS)
    ((start, end),) = made.marks
    assert made.text[start:end] == "zebra"
    assert abs((start - 1) - (WIDTH - (end - 1))) <= 1


def test_no_match_gives_the_beginning() -> None:
    """Found by meaning alone: the text's beginning is shown, cut on the right only."""
    made = snippet("a long story " * 100, set(terms("zebra")))
    assert made.text == ("a long story " * 100)[:WIDTH] + ELLIPSIS
    assert made.marks == ()


def test_a_late_match_in_a_long_text_is_found() -> None:
    """Wherever the first match stands, it is the centre."""
    made = snippet("word " * 5000 + "zebra", set(terms("zebra")))
    assert [made.text[start:end] for start, end in made.marks] == ["zebra"]
