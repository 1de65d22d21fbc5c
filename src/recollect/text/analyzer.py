# ruff: noqa: RUF001  # typographic apostrophes are meant
"""The analyzer: from a text to the terms it is indexed under, for every store's default words.

* Words of any script, in lower case, stemmed in the language of the text (`languages.guess`). Accents are folded after
  stemming, because stemmers know the accents of their language.
* Identifiers whole and in parts: `ERR_CONN_REFUSED` is also err, conn, refused; likewise `invoice-12345`, `v1.2.3`,
  `fooBar`, `E0308`. The whole makes an exact search exact; the parts find it from memory.
* Chinese, Japanese, Korean and Thai, which have no spaces between words, as overlapping pairs of characters.

Stop words are indexed, because phrases need them; questions drop them (`text.query`). Terms hold no white space,
quotes, backslash or NUL, so they can be joined by spaces and quoted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import Stemmer  # type: ignore[import-not-found]  # PyStemmer ships neither types nor Python files

from recollect.text.languages import DEFAULT, ENGLISH_FORMS, GUESS_WORDS, LANGUAGES, STOP_WORDS, fold, guess

_UNSPACED: Final = (
    "\u0e00-\u0e7f\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_MARKS: Final = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
"""Combining marks, which Python's \\w lacks: without them Hindi, Arabic and decomposed text would be split."""
_CHARS: Final = rf"[^\W_{_UNSPACED}]++(?:[{_MARKS}]++[^\W_{_UNSPACED}]*+)*+"


def _word(chars: str) -> str:
    """A pattern for a word: runs of `chars`, joined by the characters of identifiers, and three special cases."""
    return (
        r"\d{1,3}(?:,\d{3})+(?![\w,])"  # 1,000,000
        r"|[A-Za-z](?:\+\+|\#)(?!\w)"  # C++, C#
        rf"|{chars}(?:(?:://|::|__|[-_.:/@+&#'’]){chars})*+"
    )


_WORD: Final = re.compile(rf"[{_UNSPACED}]+|" + _word(_CHARS))
_ASCII_WORD: Final = re.compile(_word("[A-Za-z0-9]++"))
"""The same for pure ASCII text, in half the time."""
_UNSPACED_RUN: Final = re.compile(rf"[{_UNSPACED}]")
_PART: Final = re.compile(rf"{_CHARS}(?:['’]{_CHARS})*+")
_ASCII_PART: Final = re.compile(r"[A-Za-z0-9]++(?:'[A-Za-z0-9]++)*+")
_HUMP: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_HUMPS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LETTERS_AND_DIGITS: Final = re.compile(r"[A-Za-z]+\d+|\d+[A-Za-z]+")
_LETTERS_OR_DIGITS: Final = re.compile(r"[A-Za-z]{2,}|\d{2,}")
_NAMELIKE: Final = re.compile(r"[\d_.@]|::|[a-z][A-Z]")
_UNSAFE: Final = re.compile(r"[\s\"'\x00]+")
_ELIDING: Final = frozenset({"french", "italian"})
"""Languages that join an article and its noun: l'homme, dell'arte."""

_MOST_REMEMBERED: Final = 262_144
"""The size of each of the two caches of analyzed words: some 50 MB when full. A hundred thousand texts in three
languages repeat about that many words."""
_LONGEST_REMEMBERED: Final = 32
"""Longer words (a Chinese sentence, a base64 blob) are rarely repeated, and not cached."""
_LONGEST_TERM: Final = 128
"""Longer terms are cut, in memories and questions alike, so that a blob does not become one huge term."""


class Token(NamedTuple):
    """A term and its place in the text."""

    term: str
    start: int
    end: int


_Piece: TypeAlias = tuple[str, int, int]
"""Term, start and end within a word. A plain tuple is made in a tenth of the time."""


def _stemmers() -> dict[str, Callable[[str], str]]:
    # a stemmer's own cache is switched off: terms are remembered here
    return {language: Stemmer.Stemmer(language, 0).stemWord for language in LANGUAGES}


_STEM: Final = _stemmers()


class Lexicon:
    """A cache of words and their terms, by language. When it is full, words that are not used again drop out.

    The terms of a word are one text, joined by spaces, because the garbage collector skips dictionaries that hold only
    texts.
    """

    def __init__(self) -> None:
        self._recent: dict[str, dict[str, str]] = {language: {} for language in LANGUAGES}
        self._fading = self._recent
        self._room = _MOST_REMEMBERED

    def terms(self, words: Sequence[str], language: str) -> str:
        """The terms of some words, joined by spaces."""
        known = self._recent[language].get
        return " ".join([made if (made := known(word)) is not None else self._learn(word, language) for word in words])

    def of(self, word: str, language: str) -> str:
        """The terms of one word, joined by spaces."""
        made = self._recent[language].get(word)
        return self._learn(word, language) if made is None else made

    def _learn(self, word: str, language: str) -> str:
        made = self._fading[language].get(word)
        if made is None:
            made = " ".join(word_terms(word, language))
        if len(word) <= _LONGEST_REMEMBERED:
            if self._room <= 0:
                self._fading, self._recent = self._recent, {other: {} for other in LANGUAGES}
                self._room = _MOST_REMEMBERED
            self._recent[language][word] = word if made == word else made
            self._room -= 1
        return made


lexicon: Final = Lexicon()


def words(text: str) -> list[str]:
    """The words of a text, unchanged, with identifiers in one piece."""
    return _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(text)


def terms(text: str, language: str | None = None) -> list[str]:
    """The terms of a text, in order. `language` overrides the guess.

    >>> terms("Invoices went to ERR_CONN_REFUSED")
    ['invoic', 'go', 'to', 'err', 'conn', 'refus', 'err_conn_refused']
    """
    found = words(text)
    return lexicon.terms(found, language or guess(found) or DEFAULT).split()


def word_terms(word: str, language: str) -> tuple[str, ...]:
    """The terms of one word of `words(text)`."""
    if _is_plain(word):
        return (_stemmed(word, language),)  # a shortcut for most words, in a fifth of the time
    return tuple([term for term, _, _ in _analyze(word, language)])


def language_of(text: str) -> str:
    """The language a text is stemmed in, guessed from its first words."""
    pattern = _ASCII_WORD if text.isascii() else _WORD
    return guess([match.group() for match in islice(pattern.finditer(text), GUESS_WORDS)]) or DEFAULT


def tokens(text: str, language: str | None = None) -> list[Token]:
    """The terms of a text with their places in it.

    >>> [text[t.start : t.end] for text in ["see fooBar"] for t in tokens(text)]
    ['see', 'foo', 'Bar', 'fooBar']
    """
    language = language or language_of(text)
    return [
        Token(term, match.start() + start, match.start() + end)
        for match in (_ASCII_WORD if text.isascii() else _WORD).finditer(text)
        for term, start, end in _analyze(match.group(), language)
    ]


def matches(text: str, wanted: AbstractSet[str], language: str | None = None) -> Iterator[Token]:
    """The tokens whose term is wanted, in order. Cached words are skipped without analyzing them.

    >>> [token.start for token in matches("paid, pays, paying", {"pay"})]
    [0, 6, 12]
    """
    language = language or language_of(text)
    for match in (_ASCII_WORD if text.isascii() else _WORD).finditer(text):
        word = match.group()
        made = lexicon.of(word, language)
        if made in wanted:
            yield Token(made, match.start(), match.end())
        elif " " in made and not wanted.isdisjoint(made.split()):
            for term, start, end in _analyze(word, language):
                if term in wanted:
                    yield Token(term, match.start() + start, match.start() + end)


def _analyze(word: str, language: str) -> list[_Piece]:
    """The terms of one word, with their places in it."""
    plain = word.isascii()
    if plain and word.isalnum():
        return _part(word, 0, language)  # a shortcut for a word without punctuation
    if not plain and _UNSPACED_RUN.match(word):
        return _pairs(word)
    if word[-1] in "+#":
        return [(word.lower(), 0, len(word))]
    if "," in word:
        return [(word.replace(",", ""), 0, len(word))]
    parts = (_ASCII_PART if plain else _PART).finditer(word)
    found = [piece for part in parts for piece in _part(part.group(), part.start(), language)]
    if len(found) > 1 and _NAMELIKE.search(word):
        whole = safe(fold(word))
        if all(term != whole for term, _, _ in found):
            found.append((whole, 0, len(word)))
    return [piece for piece in found if piece[0]]


def _part(part: str, start: int, language: str) -> list[_Piece]:
    """A word without punctuation, whole and split where its capitals or digits change."""
    end = start + len(part)
    if _is_plain(part):
        return [(_stemmed(part, language), start, end)]
    seams = _seams(part)
    whole = safe(fold(part)) if seams else _stemmed(part, language)
    found = [(_stemmed(seam.group(), language), start + seam.start(), start + seam.end()) for seam in seams]
    return [*found, (whole, start, end)]


def _seams(part: str) -> list[re.Match[str]]:
    """The pieces of a word in camel case, or of letters and digits."""
    if not (part.isascii() and part.isalnum()):
        return []
    if _HUMP.search(part) and not _plural(part):
        return [*_HUMPS.finditer(part)]
    if len(part) > 2 and _LETTERS_AND_DIGITS.fullmatch(part):
        return [*_LETTERS_OR_DIGITS.finditer(part)]
    return []


def _is_plain(word: str) -> bool:
    """Whether a word has only letters and is not in camel case, as most."""
    return word.isalpha() and (word[1:].islower() or word.isupper())


def _plural(part: str) -> bool:
    """Whether it is the plural of an abbreviation: URLs, PDFs."""
    return part[-1] == "s" and part[:-1].isupper()


def _stemmed(word: str, language: str) -> str:
    """A plain word's term: its stem in `language`, folded. Stop words and words with digits are only folded."""
    if word.isascii() and word.isalnum():
        plain = word.lower()
        return _stem(plain, plain, language) if word.isalpha() else plain[:_LONGEST_TERM]
    plain = unicodedata.normalize("NFC", word).casefold().replace("’", "'")
    if language in _ELIDING and "'" in plain:
        plain = plain.rpartition("'")[2]
    folded = fold(plain)
    if not folded.isalpha() and any(map(str.isdigit, folded)):
        return safe(folded)
    return safe(fold(_stem(plain, folded, language)))


def _stem(plain: str, folded: str, language: str) -> str:
    """The stem of a word in lower case. Stop words are not stemmed."""
    if folded in STOP_WORDS[language]:
        return plain
    if language == "english":
        plain = ENGLISH_FORMS.get(plain, plain)
    return _STEM[language](plain)[:_LONGEST_TERM]


def _pairs(run: str) -> list[_Piece]:
    """Overlapping pairs of characters, or the only character."""
    plain = "".join(unicodedata.normalize("NFKC", run).split())  # NFKC puts a lone voicing mark on a space
    if len(plain) != len(run):  # half-width kana with voicing marks: use the place of the whole run
        return [(plain[i : i + 2], 0, len(run)) for i in range(max(1, len(plain) - 1))]
    return [(plain[i : i + 2], i, min(i + 2, len(run))) for i in range(max(1, len(plain) - 1))]


def safe(term: str) -> str:
    """A term without forbidden characters, and not too long."""
    return (term if term.isalnum() else _UNSAFE.sub("", term))[:_LONGEST_TERM]
