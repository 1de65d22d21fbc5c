"""The analyzer: words, identifiers, scripts, stems."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.text import analyzer
from recollect.text.analyzer import Token, terms, tokens, words
from recollect.text.languages import STOP_WORDS, fold, guess


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ERR_CONN_REFUSED", ["err", "conn", "refus", "err_conn_refused"]),
        ("invoice-12345", ["invoic", "12345", "invoice-12345"]),
        ("v1.2.3", ["v1", "2", "3", "v1.2.3"]),
        ("fooBar", ["foo", "bar", "foobar"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("snake_case", ["snake", "case", "snake_case"]),
        ("E0308", ["0308", "e0308"]),
        ("IL-6", ["il", "6", "il-6"]),
        ("std::vector", ["std", "vector", "std::vector"]),
        ("user@example.com", ["user", "exampl", "com", "user@example.com"]),
    ],
)
def test_an_identifier_is_kept_whole_and_in_parts(text: str, expected: list[str]) -> None:
    """The whole makes an exact look-up exact, the parts find it from what one remembers."""
    assert terms(text) == expected


def test_an_ordinary_compound_is_only_its_parts() -> None:
    """A hyphen or slash between plain words makes no name."""
    assert terms("high-speed and/or") == ["high", "speed", "and", "or"]


def test_numbers_and_languages_of_programmers() -> None:
    """Thousands separators go; C++ and C# are not the letter C; URLs and PDFs are plain plurals."""
    assert terms("1,000,000 C++ C# URLs") == ["1000000", "c++", "c#", "url"]


def test_unspaced_scripts_are_overlapping_pairs() -> None:
    """Chinese, Japanese and Korean are found by any two characters that stand together; one alone by itself."""
    assert terms("東京都") == ["東京", "京都"]
    assert terms("水") == ["水"]
    assert terms("서울특별") == ["서울", "울특", "특별"]


def test_stems_are_those_of_the_texts_own_language() -> None:
    """Small words show the language; the same ending is cut in one and not in another."""
    assert terms("Die Häuser sind groß und die Rechnungen bezahlt")[1] == "haus"
    assert terms("l'homme est dans les maisons")[0] == "homm"
    assert terms("the houses are big")[1] == "hous"


def test_irregular_english_forms_meet() -> None:
    """Suffix stemming cannot bring "went" to "go"; a list of irregular forms does."""
    assert terms("She went and bought mice") == terms("She go and buy mouse")


@pytest.mark.parametrize("word", ["café", "Crème", "naïve", "Łódź", "Straße", "Ångström"])
def test_accents_do_not_matter(word: str) -> None:
    """Composed, decomposed and without accents a word is the same."""
    assert terms(word) == terms(unicodedata.normalize("NFD", word)) == terms(fold(word))


def test_combining_signs_stay_inside_their_word() -> None:
    """Hindi vowel signs are part of a word, though Python does not call them letters."""
    assert len(terms("हिन्दी में")) == 2


def test_a_blob_is_no_huge_term() -> None:
    """A long run without spaces is cut to the same bounded term wherever it stands."""
    assert [len(term) for term in terms("a" * 10_000)] == [128]
    assert len(terms("東" * 1000)) == 999


def test_a_voicing_mark_by_itself_is_a_term() -> None:
    """Unicode takes it apart into a space and a mark; no term holds a space."""
    assert terms("゛ カ゜タ") == ["\u3099", "カ\u309a", "\u309aタ"]


def test_apostrophes() -> None:
    """A possessive is its noun, in typewriter and typographic spelling."""
    assert terms("the Caroline's dog") == terms("the Caroline’s dog") == ["the", "carolin", "dog"]  # noqa: RUF001


def test_tokens_point_at_their_words() -> None:
    """A token's place is where its own part stands."""
    assert tokens("see fooBar") == [Token("see", 0, 3), Token("foo", 4, 7), Token("bar", 7, 10), Token("foobar", 4, 10)]


@given(st.text())
def test_terms_survive_a_join_by_spaces(text: str) -> None:
    """No term is empty or holds white space, a quote, a backslash or NUL, whatever the text."""
    found = [token.term for token in tokens(text)]
    assert " ".join(found).split() == found == terms(text)
    assert not any(char in term for term in found for char in "\"'\\\x00")


@given(st.text())
def test_tokens_are_terms_with_places(text: str) -> None:
    """`tokens` and `terms` agree, and every place lies inside the text."""
    found = tokens(text)
    assert [token.term for token in found] == terms(text)
    assert all(0 <= token.start < token.end <= len(text) for token in found)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_pattern_for_ascii_is_the_pattern(text: str) -> None:
    """ASCII text gives the same words when something that is not ASCII follows."""
    assert words(text + " é")[:-1] == words(text)


@given(st.sampled_from(sorted(STOP_WORDS)))
def test_a_language_is_guessed_from_its_own_small_words(language: str) -> None:
    """Every list of small words speaks for its language more than for any other."""
    assert guess(sorted(STOP_WORDS[language] - {"i"})[-60:] * 2) == language


def test_no_small_words_no_guess() -> None:
    """A text without small words, or with as many of two languages, does not say what it is."""
    assert guess(["invoice", "12345"]) is None
    assert guess(["the", "und"]) is None


@pytest.mark.parametrize("text", ["WAS IST DAS FÜR EIN HAUS", "Was ist das fur ein Haus", "was ist das für ein haus"])
def test_small_words_are_known_as_people_write_them(text: str) -> None:
    """In large letters, with a capital, without their accents."""
    assert guess(text.split()) == "german"


def test_more_words_than_are_remembered_have_the_same_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten is analyzed again."""
    monkeypatch.setattr(analyzer, "_MOST_REMEMBERED", 3)
    text = "plums pears figs apples plums dates figs cherries plums"
    expected = ["plum", "pear", "fig", "appl", "plum", "date", "fig", "cherri", "plum"]
    assert terms(text, "english") == terms(text, "english") == expected
