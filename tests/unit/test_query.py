"""From a question to what to look for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ports import Term
from recollect.text.analyzer import terms
from recollect.text.query import parse_query


def found(text: str) -> list[str]:
    return [term.term for term in parse_query(text).terms]


def test_small_words_are_left_out() -> None:
    """Question words say nothing about the answer."""
    assert found("When did she go to the market?") == ["go", "market"]


def test_a_question_of_small_words_only_keeps_them() -> None:
    """To be or not to be is still a question."""
    assert found("to be or not to be") == ["to", "be", "or", "not"]


def test_terms_come_once_in_order() -> None:
    """A repeated word counts once, where it stood first."""
    assert found("the invoice, the second invoice") == ["invoic", "second"]


def identifiers_of(text: str) -> tuple[str, ...]:
    return tuple(term.term for term in parse_query(text).terms if term.names)


@pytest.mark.parametrize(
    ("text", "identifiers"),
    [
        ("what does ERR_CONN_REFUSED mean", ("err_conn_refused",)),
        ("when was invoice 12346 paid", ("12346",)),
        ("explain E0308 to me", ("e0308",)),
        ("is v1.2.3 out", ("v1.2.3",)),
        ("where is fooBar called", ("foobar",)),
        ("what happened in May 2023 to the 12 of them", ()),
    ],
)
def test_identifiers_are_marked(text: str, identifiers: tuple[str, ...]) -> None:
    """Names of one thing are marked; years and small numbers are not such names."""
    assert identifiers_of(text) == identifiers


@pytest.mark.parametrize("text", ["ERR_CONN_REFUSED", "invoice-12345", "v1.2.3", "fooBar", "E0308", "12346", "a_b"])
def test_an_identifier_is_looked_for_as_it_is_indexed(text: str) -> None:
    """The marked term is one of those the memory is indexed under."""
    assert set(identifiers_of(text)) <= set(terms(text))
    assert identifiers_of(text)


def test_quoted_phrases_are_adjacent_terms() -> None:
    """Any kind of quotes; a single quoted word is just a term."""
    words = parse_query('find "connection refused" and “the white house” or "one"')
    assert words.phrases == (("connect", "refus"), ("the", "white", "hous"))


def test_without_a_language_other_stems_are_looked_for_too() -> None:
    """One word shows no language, so its stem in every language is wanted."""
    assert {"rechnung", "rechnungen"} <= set(found("Rechnungen"))


def test_another_language_also_looks_for_english_stems() -> None:
    """A German question may be answered by a text with English words in it."""
    words = parse_query("wie heißt der Browser für Images")
    assert words.language == "german"
    assert {"browser", "imag", "images"} & {t.term for t in words.terms} >= {"browser", "imag"}


def test_nothing_to_look_for() -> None:
    """Punctuation is no word."""
    assert parse_query(' ?! "" ').terms == ()


@given(st.text())
def test_any_text_is_a_question(text: str) -> None:
    """No input raises; terms are distinct and safe to join; the same text gives the same terms."""
    words = parse_query(text)
    distinct = [term.term for term in words.terms]
    assert len(set(distinct)) == len(distinct)
    assert " ".join(distinct).split() == distinct
    assert all(isinstance(term, Term) and term.weight == 1.0 for term in words.terms)
    assert parse_query(text) == words


@given(st.lists(st.sampled_from(["invoice", "paid", "market", "E0308", "東京都"]), min_size=1))
def test_a_text_is_found_by_its_own_words(parts: list[str]) -> None:
    """A question that repeats a memory's telling words shares all its terms with it."""
    text = "the " + " ".join(parts)
    assert set(terms(" ".join(parts))) <= {term.term for term in parse_query(text).terms} | {"the"}
