"""Postgres' `simple` and `english`: what a text and a question are made of. All expectations are Postgres 18's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.text.configurations import And, Lexeme, Not, Or, Phrase, lexemes, plain, websearch, words_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Quick fox", ["the", "quick", "fox"]),
        ("foo-bar", ["foo-bar", "foo", "bar"]),
        ("invoice-12345", ["invoice", "-12345"]),
        ("covid-19 p53 3rd", ["covid", "-19", "p53", "3rd"]),
        ("co-operate-2", ["co-operate", "co", "operate", "2"]),
        ("ERR_CONN_REFUSED", ["err", "conn", "refused"]),
        ("3.14 -5 1.2.3 v1.2.3 1e-5 10,000", ["3.14", "-5", "1.2.3", "v1.2.3", "1e-5", "10", "000"]),
        ("don't", ["don", "t"]),
        ("a_b@c.com", ["a_b@c.com"]),
        ("http://x.com/a/b", ["x.com/a/b", "x.com", "/a/b"]),
        ("/usr/bin and/or foo_bar.txt", ["/usr/bin", "and/or", "foo_bar.txt"]),
        ("self._list os.w_ok foo.bar_baz", ["self._list", "os.w_ok", "foo.bar", "baz"]),
        ("<b>bold</b> &amp; a < b", ["bold", "a", "b"]),
        ("U.S. army.", ["u.s", "army"]),
        ("café Straße ΑΒΓ 日本語 한국어", ["café", "straße", "αβγ", "日本語", "한국어"]),
        ("½ x²", ["x"]),
        ("", []),
    ],
)
def test_simple_cuts_a_text_like_postgres(text: str, expected: list[str]) -> None:
    """Words, compounds, numbers, names and addresses are Postgres' own tokens, in its order."""
    assert lexemes("simple", text) == expected


def test_english_stems_words_and_leaves_a_gap_for_stop_words() -> None:
    """A stop word is None, so that the next word keeps its position; numbers and names are not stemmed."""
    assert lexemes("english", "The invoices of 12345 were paid") == [None, "invoic", None, "12345", None, "paid"]


def test_plain_wants_every_word() -> None:
    """Operators mean nothing in a plain question; a repeated word stays repeated, as in Postgres."""
    assert plain("simple", 'a or "b" -c') == And((Lexeme("a"), Lexeme("or"), Lexeme("b"), Lexeme("c")))
    assert plain("english", "the foo and foo") == And((Lexeme("foo"), Lexeme("foo")))
    assert plain("simple", "foo") == Lexeme("foo")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "foo-bar pg_class",
            And((Phrase((("foo-bar", 0), ("foo", 1), ("bar", 2))), Phrase((("pg", 0), ("class", 1))))),
        ),
        ('x -"a b" -c', And((Lexeme("x"), Not(Phrase((("a", 0), ("b", 1)))), Not(Lexeme("c"))))),
        ("a or b c", Or((Lexeme("a"), And((Lexeme("b"), Lexeme("c")))))),
        ("or a", And((Lexeme("or"), Lexeme("a")))),
        ("a or", And((Lexeme("a"), Lexeme("or")))),
        ("a oregon", And((Lexeme("a"), Lexeme("oregon")))),
        ('"unclosed quote', Phrase((("unclosed", 0), ("quote", 1)))),
        ("a -", Lexeme("a")),
        ("--a", Lexeme("a")),
        ("a & (b | !c)", And((Lexeme("a"), Lexeme("b"), Lexeme("c")))),
    ],
)
def test_websearch_reads_what_people_type(text: str, expected: object) -> None:
    """Quotes, `or` and `-` work; every other sign is only a separator."""
    assert websearch("simple", text) == expected


def test_websearch_without_stop_words_keeps_their_distance() -> None:
    """A phrase around stop words asks for the distance that they made; what is only stop words asks for nothing."""
    assert websearch("english", '"cats of the dogs"') == Phrase((("cat", 0), ("dog", 3)))
    assert websearch("english", "-the cats or the") == Lexeme("cat")


@pytest.mark.parametrize("text", ["", "   ", "the of and", "!!! ... ()", '""', "-"])
def test_a_question_can_come_to_nothing(text: str) -> None:
    """Without a word to look for there is no question."""
    assert plain("english", text) is None
    assert websearch("english", text) is None


def test_the_words_of_a_question_are_sorted_and_unique() -> None:
    """Unwanted words are among them, because Postgres' scores count them too."""
    question = websearch("simple", '"b a" or c -b')
    assert question is not None
    assert words_of(question) == ["a", "b", "c"]


@given(st.text(max_size=200))
def test_no_text_breaks_the_parsers(text: str) -> None:
    """Lexemes hold no blank, quote or bracket, whatever the text is, and both readings answer."""
    for word in lexemes("simple", text):
        assert word
        assert not set(word) & set(' "()\t\n')
    plain("english", text)
    websearch("english", text)
