"""Where terms stand in the word index: FTS5's postings as arrays, with all that BM25 asks of a row.

A row enters FTS5 under a key that holds its length beside its number. FTS5's own bm25() looks each row's length up in
another table, one row at a time, which takes it longer than all the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import apsw
import numpy as np

from recollect.stores.bm25 import CONTEXT, TEXT, TITLE
from recollect.stores.named_sql import load
from recollect.stores.sqlite.filters import SQL
from recollect.stores.sqlite.rows import as_json

if TYPE_CHECKING:
    import numpy.typing as npt

    from recollect.stores.exact import Rows

LENGTH_BITS: Final = 16
LONGEST: Final = (1 << LENGTH_BITS) - 1
"""What is longer counts as this long: with a hundred times the usual length a term is worth next to nothing anyway."""

PLACES_PER_ROW: Final = 20
"""Occurrences of a term that are read, for each row that may hold it. Where long texts repeat a term more often, its
rows are asked one by one, which takes longer, but no more memory than they are worth."""

_IN_CONTEXT: Final = 1
_WEIGHTS: Final = (TITLE, TEXT, CONTEXT)  # in the order of the index's columns
_SPLIT_OR_FOLDED = re.compile(r'[\x00-\x20"()\x7fA-Z]')

Q = load(__name__, "words.sql")


class Postings(NamedTuple):
    """The keys of the rows that hold a term, ascending, and how often each does, by what that counts in each field."""

    keys: Rows
    counts: npt.NDArray[np.float64]


NO_POSTINGS: Final = Postings(np.empty(0, np.int64), np.empty(0))


def register(db: apsw.Connection) -> None:
    """Give a connection what reading postings needs."""
    db.execute(Q["make_places"])
    db.register_fts5_function("occurrences", _occurrences)


def key(row: int, length: int) -> int:
    """Under which key a row of some length enters the index; words.sql says the same."""
    return row << LENGTH_BITS | min(length, LONGEST)


def is_token(term: str) -> bool:
    """Whether the index holds a term as it stands: its tokenizer neither splits nor folds it."""
    return not _SPLIT_OR_FOLDED.search(term)


def read(db: apsw.Connection, asked: Mapping[str, str | None], *, most_rows: int, context: bool) -> list[Postings]:
    """The postings of FTS5 expressions. Each comes with the token that it stands for, or None if it is more than that.
    None matches more than so many rows; `context` says whether a token counts there, too.
    """
    tokens = [token for token in asked.values() if token is not None]
    most = PLACES_PER_ROW * most_rows
    texts = json.loads(db.execute(Q["term_places"], (as_json(tokens), most)).get)
    places = {token: np.fromstring(text or "", np.int64, sep=",") for token, text in zip(tokens, texts, strict=True)}
    return [
        read_among(db, [expression])[0]
        if token is None or len(places[token]) == most
        else _counted(places[token], context=context)
        for expression, token in asked.items()
    ]


def among(rows: SQL | None) -> SQL:
    """The condition that a row of the index is one that a query lists; none, where no query is given."""
    if rows is None:
        return "", []
    query, values = rows
    return Q["among"].format(rows=query), values


def read_among(db: apsw.Connection, expressions: Sequence[str], rows: SQL | None = None) -> list[Postings]:
    """The same among those rows that a query lists, or all: row by row, in Python, and so for few rows."""
    condition, values = among(rows)
    statement = Q["matches"].format(among=condition)
    found: list[list[tuple[int, float]]] = [[] for _ in expressions]
    for number, key, times in json.loads(db.execute(statement, [as_json(expressions), *values]).get):
        found[number].append((key, times))
    return [
        Postings(np.array([key for key, _ in one], np.int64), np.array([times for _, times in one], np.float64))
        for one in found
    ]


def first_of_each(values: Rows) -> Rows:
    """Where each run of equal values begins."""
    begins = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def _counted(places: Rows, *, context: bool) -> Postings:
    """Out of one number for each occurrence: twice the key, and one more in the context."""
    if not context:
        places = places[places & 1 != _IN_CONTEXT]
    if not len(places):
        return NO_POSTINGS
    keys = places >> 1
    begins = first_of_each(keys)
    return Postings(keys[begins], np.add.reduceat(np.where(places & 1 == _IN_CONTEXT, CONTEXT, TEXT), begins))


def _occurrences(api: apsw.FTS5ExtensionApi, /, *_: object) -> float:
    """How often the current row holds the one phrase that is asked for."""
    return sum(weight * len(api.phrase_column_offsets(0, column)) for column, weight in enumerate(_WEIGHTS))
