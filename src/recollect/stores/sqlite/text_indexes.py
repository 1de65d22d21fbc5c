"""Text indexes that match and score like Postgres' text search, with its `simple` or `english` words.

A file gets such an index when a recipe first needs it. FTS5 finds candidates; an auxiliary function computes from the
positions of the question's words whether one matches, and its score.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw

from recollect.errors import InvalidRequest
from recollect.ports import WordHits, WordSearch
from recollect.stores.named_sql import load
from recollect.stores.sqlite.rows import where_clause
from recollect.text.configurations import (
    And,
    Configuration,
    Lexeme,
    Not,
    Or,
    Phrase,
    Question,
    lexemes,
    plain,
    websearch,
    words_of,
)
from recollect.text.tsrank import Score, matches, stored_positions, ts_rank, ts_rank_cd
from recollect.types import Filter, Scored

READY: Final = "ready"
STOP_WORD: Final = "."
"""Keeps a stop word's position; no question contains it."""

Q = load(__name__, "words.sql")
_READINGS: Final[dict[str, Callable[[Configuration, str], Question | None]]] = {"plain": plain, "websearch": websearch}
_SCORES: Final[dict[str, Score]] = {"ts_rank": ts_rank, "ts_rank_cd": ts_rank_cd}
_CONFIGURATIONS: Final[dict[str, Configuration]] = {"words_simple": "simple", "words_english": "english"}
NAMES: Final[dict[str, str]] = {configuration: name for name, configuration in _CONFIGURATIONS.items()}
"""The index of each configuration."""
WAITED_FOR: Final = 20_000
"""A search waits for an index that lacks at most this many memories; else it raises IndexBuilding."""


def register(db: apsw.Connection) -> None:
    """Register the functions that these searches use on a connection."""
    db.register_fts5_function("text_rank", _text_rank)
    db.create_scalar_function("title_contains", _title_contains, 2, deterministic=True)


def missing_index(db: apsw.Connection, search: WordSearch) -> str | None:
    """The index that a search needs and that is missing or incomplete: build it first."""
    name = f"words_{search.words}"
    if name not in _CONFIGURATIONS:
        known = ", ".join(_CONFIGURATIONS.values())
        raise InvalidRequest(f"a SQLite store has no {search.words!r} words: use one of {known}")
    return None if _carried(db).get(name) == READY else name


def is_ready(configuration: str, db: apsw.Connection) -> bool:
    """Whether the index of a configuration is complete."""
    return _carried(db).get(NAMES[configuration]) == READY


def step(configuration: str) -> str:
    """What `migrate` does for a configuration."""
    return f"index all texts under the configuration {configuration}"


def how_far(name: str, db: apsw.Connection) -> str:
    """The progress of an index, in words, if it lacks too much to wait for; otherwise an empty string."""
    reached, last = _carried(db).get(name, 0), db.execute(Q["last_row"]).get
    if reached == READY or last - int(reached) <= WAITED_FOR:
        return ""
    done = f"about {int(reached):,} of {last:,} memories are in it"
    return f"the index of {_CONFIGURATIONS[name]!r} words is being built: {done}"


def build_index(db: apsw.Connection, name: str, batch: int = 2_000) -> bool:
    """Index the next memories, creating the index the first time; True when all are in.

    Call it in one write transaction after another, so that other writers get a turn. Memories that they write enter the
    index directly.
    """
    reached = _carried(db).get(name, 0)
    if reached == READY:
        return True
    if reached == 0:
        db.execute(Q["create_text_index"].format(name=name))
    texts: list[Any] = db.execute(Q["next_texts"], (reached, batch)).fetchall()
    db.executemany(
        Q["put_text"].format(name=name),
        [(row, _placed(_CONFIGURATIONS[name], space, text)) for row, space, text in texts],
    )
    complete = len(texts) < batch
    db.execute(Q["set_text_index"], (name, READY if complete else texts[-1][0]))
    return complete


def put(db: apsw.Connection, space: int, texts: Sequence[tuple[int, str]]) -> None:
    """Add (row, text) to every text index of the file."""
    for name in _carried(db):
        db.executemany(
            Q["put_text"].format(name=name), ((row, _placed(_CONFIGURATIONS[name], space, text)) for row, text in texts)
        )


def remove(db: apsw.Connection, rows: Sequence[int]) -> None:
    """Remove rows from every text index of the file."""
    for name in _carried(db):
        db.execute(Q["remove_texts"].format(name=name), (json.dumps(rows),))


def search(db: apsw.Connection, space: int, search: WordSearch, where: Filter, limit: int) -> WordHits:
    """The memories that hold every word of the question, or whose title contains it if titles have a boost."""
    name = f"words_{search.words}"
    condition, values = where_clause(space, where)
    statements: list[str] = []
    parameters: list[object] = []
    question = _READINGS[search.match](_CONFIGURATIONS[name], search.text)
    if question is not None:
        statements.append(Q["text_matches"].format(name=name, where=condition))
        parameters += [search.words, search.match, search.score, search.text, expression(space, question), *values]
    if search.title_boost and search.text.strip():
        statements.append(Q["title_matches"].format(where=condition))
        parameters += [search.title_boost, *values, search.text]
    if not statements:
        return WordHits([])
    sql = Q["best_matches"].format(matches=" UNION ALL ".join(statements))
    return WordHits([Scored(id, score) for id, score in db.execute(sql, (*parameters, limit))])


def expression(space: int, question: Question) -> str:
    """The FTS5 query for candidates: at least every row that matches. The question's words come last, each as a phrase,
    so that the function can read their positions.
    """
    words = [_quoted(space, word) for word in words_of(question)]
    if isinstance(question, Lexeme) or (isinstance(question, And) and all(isinstance(q, Lexeme) for q in question.all)):
        return " AND ".join(words)
    return f"({_candidates(space, question)}) AND ({' OR '.join([_quoted(space), *words])})"


def _candidates(space: int, question: Question) -> str:
    match question:
        case Lexeme(word):
            return _quoted(space, word)
        case Phrase(words):
            return " AND ".join(_quoted(space, word) for word, _ in words)
        case Not():
            return _quoted(space)
        case And(parts):
            return " AND ".join(f"({_candidates(space, part)})" for part in parts)
        case Or(parts):
            return " OR ".join(f"({_candidates(space, part)})" for part in parts)


def _quoted(space: int, word: str = "") -> str:
    """A word of a space in FTS5 syntax; without a word, the mark that ends every text of the space."""
    return '"' + f"{space}:{word}".replace('"', '""') + '"'


def _placed(configuration: Configuration, space: int, text: str) -> str:
    """A text's words in their positions, and at the end the mark of its space."""
    words = [STOP_WORD if word is None else f"{space}:{word}" for word in lexemes(configuration, text)]
    return " ".join([*words, f"{space}:"])


def _carried(db: apsw.Connection) -> dict[str, int | str]:
    return dict(db.execute(Q["text_indexes"]))


def _text_rank(api: apsw.FTS5ExtensionApi, /, *arguments: Any) -> float | None:
    """The score of the current row, or None if it does not match."""
    if api.aux_data is None:  # the first row of a search
        configuration, match, score, text = arguments
        question = _READINGS[match](configuration, text)
        api.aux_data = (question, words_of(question) if question else [], _SCORES[score])
    question, words, rank = api.aux_data
    first = api.phrase_count - len(words)
    positions = {
        word: stored_positions(offset + 1 for offset in api.phrase_column_offsets(first + index, 0))
        for index, word in enumerate(words)
    }
    return rank(question, positions) if matches(question, positions) else None


def _title_contains(*arguments: Any) -> bool:
    title, text = arguments
    return text.lower() in title.lower()
