"""Postgres' text-search configurations `simple` and `english`, and its two kinds of query, in Python.

Both split a text as Postgres' default parser does: words, hyphenated compounds whole and in parts, numbers with their
sign; versions, hosts, addresses and paths in one piece. `simple` lowercases; `english` also stems words and drops stop
words, which keep their positions. The stems are those of the installed Snowball, which may be newer than Postgres'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import Stemmer  # type: ignore[import-not-found]  # PyStemmer ships neither types nor Python files

Configuration: TypeAlias = Literal["simple", "english"]


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One word must be there."""

    word: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words must be there at these distances from the first one."""

    words: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The other must not be there."""

    other: Question


@dataclass(frozen=True, slots=True)
class And:
    """All must be there."""

    all: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One must be there."""

    any: tuple[Question, ...]


Question: TypeAlias = Lexeme | Phrase | Not | And | Or

# Every repetition is bounded or possessive, so that a hostile text takes linear time at most.
_TOKEN: Final = re.compile(
    r"""
      (?P<skip> </?[a-z][a-z0-9-]{0,31}(?:\s[^<>]{0,999})?/?>
              | &(?:[a-z]{1,31}|\#\d{1,7}|\#x[0-9a-f]{1,6}); | [a-z]{1,15}:// )
    | (?P<email> [a-z0-9][a-z0-9_.-]{0,63}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})++ )
    | (?P<url> (?P<host> [a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){0,7}\.[a-z]{2,63}(?::\d++)?)
               (?P<path> /PATH*+) )
    | (?P<name> ~?(?:/FILE)++ | [a-z0-9]FILE?(?:/FILE)++
              | [a-z][a-z0-9_-]{0,63}(?:\.[a-z0-9_]{1,63}){0,15}\.(?:[a-z]{2,}(?=_)|[a-z0-9_]+) )
    | (?P<number> \d++(?:\.\d++){2,} | [+-]?\d++(?:\.\d++)?e[+-]?\d++(?!WORD) | [+-]?\d++(?:\.\d++|(?!WORD)) )
    | (?P<compound> (?=\d*+LETTER) WORD++ (?:-(?=\d*+LETTER) WORD++)++ )-?
    | (?P<word> WORD++ )
    """.replace("PATH", r"""[^\s"'<>()?]""")
    .replace("FILE", r"[a-z0-9_.-]{0,63}[a-z0-9_]")
    .replace("WORD", r"[^\W_²³¹¼½¾]")
    .replace("LETTER", r"[^\W\d_²³¹¼½¾]"),
    re.VERBOSE,
)

_STOP_WORDS: Final = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it
    its itself they them their theirs themselves what which who whom this that these those am is are was were be been
    being have has had having do does did doing a an the and but if or because as until while of at by for with about
    against between into through during before after above below to from up down in out on off over under again further
    then once here there when where why how all any both each few more most other some such no nor not only own same so
    than too very s t can will just don should now
"""
_DIGIT: Final = re.compile(r"\d")
_OPERAND: Final = re.compile(r"""(?P<signs>[\s!&|()-]*)(?:"(?P<quoted>[^"]*)"?|(?P<word>[^\s!&|()"-][^\s!&|():"]*))""")
_OR: Final = re.compile(r"[\s!&|()]*or(?=[^\w-]\s*\S)", re.IGNORECASE)
_STOPPED: Final = frozenset(_STOP_WORDS.split())
_stem = Stemmer.Stemmer("english").stemWord


def lexemes(configuration: Configuration, text: str) -> list[str | None]:
    """The word at each position of a text; None is a stop word."""
    if configuration == "simple":
        return [token for token, _ in _tokens(text)]
    return [_english(token) if is_word else token for token, is_word in _tokens(text)]


def plain(configuration: Configuration, text: str) -> Question | None:
    """A question for every word of the text; None if it has no words."""
    words = [Lexeme(word) for word in lexemes(configuration, text) if word is not None]
    return _all(words)


def websearch(configuration: Configuration, text: str) -> Question | None:
    """A question in search-box syntax: every word, "a phrase", `or` between two, `-` before what must be absent."""
    choices: list[list[Question]] = [[]]
    for operand in _typed(text):
        if operand is None:
            choices.append([])
        else:
            typed, negated = operand
            choices[-1] += _operand(configuration, typed, negated=negated)
    wanted = [question for question in map(_all, choices) if question is not None]
    return Or(tuple(wanted)) if len(wanted) > 1 else next(iter(wanted), None)


def words_of(question: Question) -> list[str]:
    """Every word of a question, negated or not, each once, in Postgres' order."""
    return sorted(set(_words(question)), key=lambda word: word.encode())


def _words(question: Question) -> Iterator[str]:
    match question:
        case Lexeme(word):
            yield word
        case Phrase(words):
            yield from (word for word, _ in words)
        case Not(other):
            yield from _words(other)
        case And(parts) | Or(parts):
            for part in parts:
                yield from _words(part)


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """The tokens of a text, lowercased, and whether each is a plain word rather than a name or a number."""
    for token in _TOKEN.finditer(text.lower()):
        kind = token.lastgroup
        whole = token[0]
        if kind == "url":
            yield from ((part, False) for part in (whole, token["host"], token["path"]))
        elif kind == "compound":
            whole = token["compound"]
            yield from ((part, not _DIGIT.search(part)) for part in (whole, *whole.split("-")))
        elif kind != "skip":
            yield whole, kind == "word" and not _DIGIT.search(whole)


def _english(word: str) -> str | None:
    return None if word in _STOPPED else _stem(word)


def _all(parts: Sequence[Question]) -> Question | None:
    return And(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)


def _typed(text: str) -> Iterator[tuple[str, bool] | None]:
    """The operands of a query, and whether each must be absent; None is an `or` between two operands."""
    at = 0
    while operand := _OPERAND.match(text, at):
        at = operand.end()
        yield operand["quoted"] or operand["word"] or "", operand["signs"].count("-") % 2 == 1
        if either := _OR.match(text, at):
            at = either.end()
            yield None


def _operand(configuration: Configuration, text: str, *, negated: bool) -> list[Question]:
    """One operand as a question: a word or a phrase; empty if it has only stop words."""
    placed = [(word, place) for place, word in enumerate(lexemes(configuration, text)) if word is not None]
    if not placed:
        return []
    first = placed[0][1]
    wanted = Phrase(tuple((word, place - first) for word, place in placed)) if placed[1:] else Lexeme(placed[0][0])
    return [Not(wanted)] if negated else [wanted]
