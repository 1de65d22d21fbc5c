"""`ts_rank` and `ts_rank_cd`. The numbers were printed by a Postgres 18 server with extra_float_digits = 3."""

from __future__ import annotations

from struct import pack

import pytest

from recollect.text.configurations import Configuration, Lexeme, Phrase, lexemes, plain, websearch
from recollect.text.tsrank import LAST_POSITION, matches, stored_positions, ts_rank, ts_rank_cd

FOX = "The quick brown fox jumps over the lazy dog"
ROSE = "a rose is a rose is a rose"
COUNT = "one two three four five six seven eight nine ten"
CATS = "cats of the dogs met dogs of the cats"
INVOICES = "the invoice 12345 was paid, invoice 12346 was not"


def positions(configuration: Configuration, text: str) -> dict[str, list[int]]:
    placed: dict[str, list[int]] = {}
    for at, word in enumerate(lexemes(configuration, text), start=1):
        if word is not None:
            placed.setdefault(word, []).append(at)
    return placed


def same_float(one: float, other: float) -> bool:
    """Whether two numbers are the same once Postgres has stored them in 32 bits."""
    return pack("f", one) == pack("f", other)


@pytest.mark.parametrize(
    ("configuration", "text", "question", "rank", "rank_cd", "found"),
    [
        ("english", FOX, "quick brown fox", 0.26832977, 0.1, True),
        ("english", FOX, "dog quick", 0.07614762, 0.014285714, True),
        ("english", FOX, "foxes", 0.06079271, 0.1, True),
        ("english", INVOICES, "invoice paid 12346", 0.39998734, 0.1, True),
        ("simple", "fox fox fox and one more fox", "fox", 0.08654518, 0.4, True),
        ("simple", ROSE, "rose is", 0.4578214, 0.3, True),
        ("simple", ROSE, "tulip rose", 1e-20, 0.0, False),
        ("simple", COUNT, "one ten", 0.05174401, 0.011111111, True),
    ],
)
def test_plain_questions(
    configuration: Configuration, text: str, question: str, rank: float, rank_cd: float, found: bool
) -> None:
    """Every word must match; both scores are Postgres' to the last bit."""
    asked = plain(configuration, question)
    assert asked is not None
    placed = positions(configuration, text)
    assert matches(asked, placed) is found
    assert same_float(ts_rank(asked, placed), rank)
    assert same_float(ts_rank_cd(asked, placed), rank_cd)


@pytest.mark.parametrize(
    ("configuration", "text", "question", "rank", "rank_cd"),
    [
        ("simple", ROSE, '"is a rose"', 0.8799847, 0.2),
        ("simple", ROSE, "rose or tulip", 0.041372817, 0.3),
        ("simple", ROSE, "rose -tulip", 1e-20, 0.3),
        ("simple", ROSE, "-tulip", 0.0, 0.0),
        ("english", CATS, '"cats of the dogs"', 0.32750347, 0.033333335),
        ("simple", COUNT, 'two three or nine "five six"', 0.060792707, 0.13333334),
    ],
)
def test_websearch_questions(
    configuration: Configuration, text: str, question: str, rank: float, rank_cd: float
) -> None:
    """Phrases, alternatives and exclusions score as in Postgres, odd as 1e-20 for "rose -tulip" may look."""
    asked = websearch(configuration, question)
    assert asked is not None
    placed = positions(configuration, text)
    assert matches(asked, placed)
    assert same_float(ts_rank(asked, placed), rank)
    assert same_float(ts_rank_cd(asked, placed), rank_cd)


def test_a_phrase_needs_its_distance() -> None:
    """Words in another order, or further apart, are no match."""
    phrase = Phrase((("cat", 0), ("dog", 3)))
    assert matches(phrase, {"cat": [1, 10], "dog": [4]})
    assert not matches(phrase, {"cat": [4], "dog": [1]})
    assert not matches(phrase, {"cat": [1]})


def test_positions_end_where_postgres_stops_counting() -> None:
    """Positions are capped, each is kept once, and only the first 255 of a word are kept."""
    assert stored_positions([20_000, 3, 30_000]) == [3, LAST_POSITION]
    assert stored_positions(range(1, 1000)) == list(range(1, 256))


def test_a_text_without_the_word_scores_nothing() -> None:
    """No occurrence, no score."""
    assert ts_rank(Lexeme("x"), {}) == 0.0
    assert ts_rank_cd(Lexeme("x"), {}) == 0.0
