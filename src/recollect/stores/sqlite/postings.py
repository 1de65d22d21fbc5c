"""FTS5's postings as arrays, with all that BM25 needs of a row.

A row's key in FTS5 holds its number and its length. FTS5's own bm25() looks up each length in another table, row by
row, which takes longer than everything else.
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
from recollect.stores.sqlite.rows import SQL, as_json

if TYPE_CHECKING:
    import numpy.typing as npt

    from recollect.stores.nearest import Rows

LENGTH_BITS: Final = 16
LONGEST: Final = (1 << LENGTH_BITS) - 1
"""Longer rows count as this long: in a text that long a term is worth almost nothing."""

PLACES_PER_ROW: Final = 20
"""Occurrences of a term that are read, per matching row. If long texts repeat it more often, its rows are read one by
one, which is slower but bounds memory."""

_IN_CONTEXT: Final = 1
_WEIGHTS: Final = (TITLE, TEXT, CONTEXT)  # in the order of the index's columns
_SPLIT_OR_FOLDED = re.compile(r'[\x00-\x20"()\x7fA-Z]')

Q = load(__name__, "words.sql")


class Postings(NamedTuple):
    """The keys of the rows that hold a term, ascending, and its weighted occurrences in each."""

    keys: Rows
    counts: npt.NDArray[np.float64]


NO_POSTINGS: Final = Postings(np.empty(0, np.int64), np.empty(0))


def register(db: apsw.Connection) -> None:
    """Register what reading postings needs on a connection."""
    db.execute(Q["make_places"])
    db.register_fts5_function("occurrences", _occurrences)


def key(row: int, length: int) -> int:
    """The key of a row in the index; words.sql computes the same."""
    return row << LENGTH_BITS | min(length, LONGEST)


def is_token(term: str) -> bool:
    """Whether the tokenizer neither splits nor folds a term."""
    return not _SPLIT_OR_FOLDED.search(term)


def read(db: apsw.Connection, asked: Mapping[str, str | None], *, most_rows: int, context: bool) -> list[Postings]:
    """The postings of FTS5 expressions, each given with its token, or None if it is not a single token. None of them
    matches more than `most_rows` rows. `context` says whether occurrences in the context count.
    """
    tokens = [*filter(None, asked.values())]
    most = PLACES_PER_ROW * most_rows
    texts = dict(zip(tokens, json.loads(db.execute(Q["term_places"], (as_json(tokens), most)).get), strict=True))
    found: list[Postings] = []
    for expression, token in asked.items():
        places = None if token is None else np.fromstring(texts[token] or "", np.int64, sep=",")
        if places is None or len(places) == most:
            found += read_among(db, [expression])
        else:
            found.append(_counted(places, context=context))
    return found


def among(rows: SQL | None) -> SQL:
    """The condition that restricts the index to the rows of a query; empty without a query."""
    if rows is None:
        return "", []
    query, values = rows
    return Q["among"].format(rows=query), values


def read_among(db: apsw.Connection, expressions: Sequence[str], rows: SQL | None = None) -> list[Postings]:
    """The same, optionally among the rows of a query. Row by row in Python, so only for few rows."""
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
    """Postings from occurrences, each encoded as twice the key, plus one in the context."""
    if not context:
        places = places[places & 1 != _IN_CONTEXT]
    if not len(places):
        return NO_POSTINGS
    keys = places >> 1
    begins = first_of_each(keys)
    return Postings(keys[begins], np.add.reduceat(np.where(places & 1 == _IN_CONTEXT, CONTEXT, TEXT), begins))


def _occurrences(api: apsw.FTS5ExtensionApi, /, *_: object) -> float:
    """The weighted occurrences of the query's only phrase in the current row."""
    return sum(weight * len(api.phrase_column_offsets(0, column)) for column, weight in enumerate(_WEIGHTS))
