"""From a question to the terms to look for.

A question is analyzed like a memory, with two differences. Its stop words are dropped, unless it has no others: "what
did she say about" says nothing about the answer. And if it is too short to show its language, or is not in English,
its words are also stemmed in other languages, because each memory was stemmed in its own language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from recollect.ports import Term
from recollect.text.analyzer import lexicon, safe, terms, words
from recollect.text.languages import DEFAULT, LANGUAGES, STOP_WORDS, fold, guess

_QUOTED: Final = re.compile(r'"([^"]+)"|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|「([^」]+)」')
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_HUMP: Final = re.compile(r"[a-z][A-Z]")
_JOINED: Final = re.compile(r"[-_.:/@+#]")
_LONG_NUMBER: Final = 4
"""A number with this many digits is an identifier (an invoice, a ticket) rather than an amount, unless it is a year."""

_FORMS: Final[dict[str | None, tuple[str, ...]]] = {
    None: (DEFAULT, *(other for other in LANGUAGES if other != DEFAULT)),
    **{language: tuple(dict.fromkeys((language, DEFAULT))) for language in LANGUAGES},
}
"""The languages to stem in, by the question's language: its own and the default, or all if it shows none."""

WORDS: Final = 128
PHRASES: Final = 8
"""Only the first words and quoted phrases of a question are searched: each costs a lookup."""


@dataclass(frozen=True, slots=True)
class QueryWords:
    """What a question looks for: its terms, each once, in order, and its quoted phrases as adjacent terms.

    `language` is the question's language; None if it does not show.
    """

    terms: tuple[Term, ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    language: str | None = None
    words: tuple[frozenset[str], ...] = ()
    """The terms of each word: a memory that holds any of them holds the word."""


def parse_query(text: str) -> QueryWords:
    """The terms and phrases of a question.

    >>> [t.term for t in parse_query("When was invoice 12345 paid?").terms]
    ['invoic', '12345', 'pay']
    """
    found = words(text)
    language = guess(found)
    small = STOP_WORDS[language or DEFAULT]
    telling = [word for word in found if fold(word) not in small]
    chosen: dict[str, Term] = {}
    forms: list[frozenset[str]] = []
    for word in list(dict.fromkeys(telling or found))[:WORDS]:
        whole = _identifier(word)
        own: list[str] = []
        for form in _FORMS[language]:
            own += lexicon.of(word, form).split()
        forms.append(frozenset(own))
        for term in own:
            names = term == whole or (term in chosen and chosen[term].names)
            chosen[term] = Term(term, names=names)
    return QueryWords(tuple(chosen.values()), _phrases(text, language), language, tuple(dict.fromkeys(forms)))


def coverage(question: QueryWords, text: str) -> float:
    """The share of a question's words that a text holds in any form.

    >>> coverage(parse_query("When was invoice 12345 paid?"), "We pay each invoice at once.")
    0.6666666666666666
    """
    held = frozenset(terms(text))
    return sum(not held.isdisjoint(word) for word in question.words) / max(len(question.words), 1)


def _phrases(text: str, language: str | None) -> tuple[tuple[str, ...], ...]:
    """The quoted phrases of at least two terms, each once."""
    phrases: dict[tuple[str, ...], None] = {}
    for match in _QUOTED.finditer(text):
        phrase = tuple(terms(next(filter(None, match.groups())), language or DEFAULT))[:WORDS]
        if len(phrase) > 1:
            phrases[phrase] = None
            if len(phrases) == PHRASES:
                break
    return tuple(phrases)


def _identifier(word: str) -> str | None:
    """The term under which an identifier is indexed whole; None for an ordinary word."""
    digits = sum(map(str.isdigit, word))
    letters = any(map(str.isalpha, word))
    named = (
        (digits > 0 and letters)
        or (digits >= _LONG_NUMBER and not _YEAR.fullmatch(word))
        or (digits > 0 and _JOINED.search(word) is not None)
        or "_" in word
        or _HUMP.search(word) is not None
    )
    return safe(fold(word).replace(",", "")) if named else None
