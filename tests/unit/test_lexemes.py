"""The analyzer's terms as tsvector and tsquery, in text."""

from __future__ import annotations

from recollect.stores.postgres.lexemes import MOST_BYTES, document, expression


def test_a_document_keeps_order_and_leaves_gaps() -> None:
    """Title A, text B, what stands beside it C, each term with its space, repeated ones too; a phrase cannot reach over
    a gap.
    """
    made = document(7, ["plum", "pie"], ["bake", "plum"], [["pear"], ["fig", "pear"]])
    assert made.words == "'7:plum':1A '7:pie':2A '7:bake':4B '7:plum':5B '7:pear':7C '7:fig':9C '7:pear':10C"
    assert made.length == 7
    assert document(7, [], [], []) == ("", 0)


def test_an_expression_is_adjacent_terms() -> None:
    """Own words are those of title and text."""
    assert expression(7, ["plum"], context=True) == "'7:plum'"
    assert expression(7, ["plum", "pie"], context=False) == "'7:plum':AB <-> '7:pie':AB"


def test_nothing_that_is_asked_for_has_a_meaning_of_its_own() -> None:
    """Quotes and backslashes are doubled."""
    assert expression(1, ["o'b\\c"], context=True) == "'1:o''b\\\\c'"


def test_a_document_keeps_as_many_terms_as_a_tsvector_holds() -> None:
    """The first ones; the length is that of all."""
    made = document(1, ["title"], [f"term{number:06}" for number in range(150_000)], [["beside"]])
    kept = made.words.split(" ")
    assert kept[:2] == ["'1:title':1A", "'1:term000000':3B"]
    assert made.length == 150_002
    stored = sum(len(word.partition("':")[0]) - 1 + 5 for word in kept)
    assert MOST_BYTES - 20 < stored <= MOST_BYTES


def test_a_term_that_is_repeated_keeps_the_positions_that_postgres_does() -> None:
    """Its first 256; a text of one word over and over does not become a list of all its places."""
    made = document(1, [], ["ha"] * 100_000, [])
    places = made.words.removeprefix("'1:ha':").split(",")
    assert places == [f"{number}B" for number in range(2, 258)]
    assert made.length == 100_000


def test_what_is_too_far_back_stands_at_the_last_place() -> None:
    """As Postgres would put it there."""
    made = document(1, [], [f"t{number}" for number in range(16_400)], [["beside"]])
    kept = made.words.split(" ")
    assert kept[16_381:16_384] == ["'1:t16381':16383B", "'1:t16382':16383B", "'1:t16383':16383B"]
    assert kept[-1] == "'1:beside':16383C"
