"""BM25 for one space, computed from postings.

Every term is stored with its space ("7:invoice"), so its postings and document frequency belong to one space. A row's
length is compared with the average of its space. A search `within` namespaces counts and reads only their rows.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import apsw
import numpy as np

from recollect.ports import WordHits, WordSearch
from recollect.stores import bm25
from recollect.stores.bm25 import BUDGET, K1, WIDE_BUDGET, B, Counted, Look, Part
from recollect.stores.named_sql import load
from recollect.stores.sql_store import is_unfiltered
from recollect.stores.sqlite import postings
from recollect.stores.sqlite.postings import LENGTH_BITS, LONGEST, NO_POSTINGS, Postings, first_of_each, is_token
from recollect.stores.sqlite.rows import SQL, among_query, as_json, is_listed, passing_rows, where_clause
from recollect.types import Filter, Scored

if TYPE_CHECKING:
    import numpy.typing as npt

    from recollect.stores.nearest import Rows

ALL: Final = -1
"""SQLite's "no limit"."""
MOST_COUNTS: Final = 10_000
"""Counts kept in memory."""

Q = load(__name__, "words.sql")
_FIRST, _WORTH = itemgetter(0), attrgetter("worth")


class Counts:
    """Counts of one file, shared by its connections, and kept until any process writes to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seq = -1
        self._known: dict[tuple[str, int], int] = {}

    def at(self, seq: int) -> dict[tuple[str, int], int]:
        """The counts as of a transaction. Readers of an older snapshot get an empty dict."""
        with self._lock:
            if seq > self._seq or len(self._known) > MOST_COUNTS:
                self._seq, self._known = max(seq, self._seq), {}
            return self._known if seq == self._seq else {}


class Frequencies:
    """How common words are in a space, or within some of its namespaces, for one search."""

    def __init__(self, db: apsw.Connection, space: int, counts: Counts, within: Sequence[str] = ()) -> None:
        self._db = db
        self._known = counts.at(db.execute(Q["seq"]).get)
        self.within: SQL | None = (Q["rows_within"], [space, as_json(within)]) if within else None
        self._where = f"{space} {as_json(within)} " if within else ""
        if within:
            self.size = self._once("size_within", space, as_json(within))
            terms = self._once("terms_within", space, as_json(within))
        else:
            self.size = self._once("space_size", space)
            terms = self._once("space_terms", space)
        self.average_length = terms / max(self.size, 1)
        """Terms per memory."""

    def matching(self, expression: str, most: int = ALL) -> int:
        """How many rows match, counted up to `most`."""
        return self.all_matching([expression], most)[0]

    def all_matching(self, expressions: Sequence[str], most: int = ALL) -> list[int]:
        """The same for several; one statement counts those that are not known yet."""
        known, where = self._known, self._where
        unknown = [each for each in dict.fromkeys(expressions) if (where + each, most) not in known]
        if unknown:
            among, values = postings.among(self.within)
            statement = Q["matching"].format(among=among)
            counted = json.loads(self._db.execute(statement, (*values, most, as_json(unknown))).get)
            for each, rows in zip(unknown, counted, strict=True):
                known[where + each, most] = rows
        return [known[where + each, most] for each in expressions]

    def _once(self, query: str, *parameters: str | int) -> int:
        key = (f"{query} {self._where}", int(parameters[0]))
        if key not in self._known:
            self._known[key] = self._db.execute(Q[query], parameters).get
        return self._known[key]


def expression(space: int, terms: Sequence[str], *, context: bool) -> str:
    """Adjacent terms of a space as a quoted FTS5 string."""
    adjacent = f"{space}:" + f" {space}:".join(terms)
    quoted = '"' + adjacent.replace('"', '""') + '"'
    return quoted if context else "{title text} : " + quoted


def choose(counts: Frequencies, space: int, search: WordSearch, budget: int) -> tuple[list[Part], bool]:
    """The question's rarest parts within a budget, and whether others that this space holds were left out."""
    expressions: list[str] = []
    weights: list[float] = []
    for term in search.terms:
        expressions.append(expression(space, [term.term], context=search.context))
        weights.append(term.weight)
    for phrase in _phrases(counts, space, search):
        expressions.append(phrase)
        weights.append(1.0)
    rows = counts.all_matching(expressions, budget + 1)
    chosen, more = bm25.choose(map(Counted, expressions, weights, rows), budget)
    parts: list[Part] = []
    for one in chosen:
        counted = one if one.rows <= budget else one._replace(rows=counts.matching(one.expression))
        parts.append(bm25.weighed(counted, counts.size))
    return parts, more


def _phrases(counts: Frequencies, space: int, search: WordSearch) -> Iterator[str]:
    """The phrases whose rarest term is rare enough to look up."""
    for phrase in search.phrases:
        singles = (expression(space, [term], context=search.context) for term in phrase)
        if any(counts.matching(single, bm25.PHRASE_BUDGET + 1) <= bm25.PHRASE_BUDGET for single in singles):
            yield expression(space, phrase, context=search.context)


def search(db: apsw.Connection, space: int, search: WordSearch, where: Filter, limit: int, known: Counts) -> WordHits:
    """The memories with the best BM25, ties by id."""
    counts = Frequencies(db, space, known, search.within)
    passing = None if is_unfiltered(where) else _Passing.of(db, space, where, counts.size)

    def best(parts: Sequence[Part]) -> list[Scored]:
        among = passing.rows if passing and passing.few and passing.narrow else counts.within
        rated = _Rated.of(parts, _postings(db, space, search, parts, among), counts.average_length)
        return _best(partial(_look, db, where_clause(space, where), rated), limit, passing)

    parts, more = choose(counts, space, search, BUDGET)
    hits = best(parts)
    if more and bm25.is_too_little(hits, limit, filtered=passing is not None):
        parts, _ = choose(counts, space, search, WIDE_BUDGET)
        hits = best(parts)
    found = WordHits(hits, bm25.background(parts, counts.size))
    return found._replace(holders=_holders(db, space, search, hits, counts.within)) if hits else found


def _postings(
    db: apsw.Connection, space: int, search: WordSearch, parts: Sequence[Part], among: SQL | None
) -> list[Postings]:
    """The postings of each part, optionally among the rows that a query lists."""
    if among is not None:
        return postings.read_among(db, [part.expression for part in parts], among)
    tokens: dict[str, str] = {}
    for term in search.terms:
        if is_token(term.term):
            tokens[expression(space, [term.term], context=search.context)] = f"{space}:{term.term}"
    asked: dict[str, str | None] = {}
    most = 0
    for part in parts:
        asked[part.expression] = tokens.get(part.expression)
        most = max(most, part.rows)
    found = dict(zip(asked, postings.read(db, asked, most_rows=most, context=search.context), strict=True))
    return [found[part.expression] for part in parts]


class _Rated(NamedTuple):
    """Rows and their scores."""

    rows: Rows
    scores: npt.NDArray[np.float64]

    @classmethod
    def of(cls, parts: Sequence[Part], found: Sequence[Postings], average: float) -> _Rated:
        """The rows that hold any of the parts, in ascending order."""
        if not parts:
            return cls(NO_POSTINGS.keys, NO_POSTINGS.counts)
        keys_of_each, counts_of_each = zip(*found, strict=True)
        keys, counts = np.concatenate(keys_of_each), np.concatenate(counts_of_each)
        worths = np.repeat([*map(_WORTH, parts)], [*map(len, keys_of_each)])
        norms = K1 * (1 - B) + K1 * B / average * (keys & LONGEST)
        scores = worths * (K1 + 1) * counts / (counts + norms)
        order = np.argsort(keys, kind="stable")  # fast, because each part's keys ascend
        keys = keys[order]
        begins = first_of_each(keys)
        return cls(keys[begins] >> LENGTH_BITS, np.add.reduceat(scores[order], begins))

    def among(self, rows: Rows) -> _Rated:
        kept = np.isin(self.rows, rows)
        return _Rated(self.rows[kept], self.scores[kept])

    def best(self, most: int) -> _Rated:
        kept = slice(None) if most == ALL or most >= len(self.rows) else np.argpartition(-self.scores, most)[:most]
        rows, scores = self.rows[kept], self.scores[kept]
        order = np.argsort(-scores, kind="stable")
        return _Rated(rows[order], scores[order])


def _look(db: apsw.Connection, condition: SQL, rated: _Rated, most: int, allowed: SQL | None) -> Look:
    """The best rows that pass the filter, optionally among those that a query allows, which may be more than pass."""
    if allowed is not None:
        listed = db.execute(Q["allowed"].format(rows=allowed[0]), allowed[1]).get
        rated = rated.among(np.fromstring(listed or "0", np.int64, sep=","))
    best = rated.best(most)
    rows, scores = best.rows.tolist(), best.scores.tolist()
    ids = {row: id for row, id, _ in passing_rows(db, condition, rows)}
    hits = [Scored(ids[row], score) for row, score in zip(rows, scores, strict=True) if row in ids]
    return Look(hits, len(rows), scores[-1] if scores else 0.0)


class _Passing(NamedTuple):
    """A query for rows that include all that pass a filter; whether they are few, a small share of all, and listed by
    an index.
    """

    rows: SQL
    few: bool
    narrow: bool
    listed: bool

    @classmethod
    def of(cls, db: apsw.Connection, space: int, where: Filter, size: int) -> _Passing:
        listed = is_listed(where)
        most = bm25.most_listed(size, listed=listed)
        rows, values = among_query(space, where)
        counted: int = db.execute(Q["count_allowed"].format(rows=rows), [*values, most + 1]).get
        return cls((rows, values), counted <= most, bm25.NARROW * counted < size, listed)


def _best(score: Callable[[int, SQL | None], Look], limit: int, passing: _Passing | None) -> list[Scored]:
    """The best rows that pass the filter. If few pass, only they are scored. Otherwise a first look may find enough; if
    not, all rows are checked, or those that pass if listing them is faster.
    """
    if passing and passing.few:
        return bm25.best(score(ALL, passing.rows).hits, limit)
    most = bm25.first_look(limit, filtered=passing is not None)
    look = score(most, None)
    if not bm25.is_enough(look, most, limit):
        quicker = passing and (passing.listed or bm25.is_narrow(look))
        look = score(ALL, passing.rows if passing and quicker else None)
    return bm25.best(look.hits, limit)


def _holders(
    db: apsw.Connection, space: int, search: WordSearch, hits: Sequence[Scored], within: SQL | None
) -> dict[str, frozenset[str]]:
    """Which hits hold, in their own words, each term that names one thing and each phrase."""
    ids = [*map(_FIRST, hits)]
    found: dict[str, frozenset[str]] = {}
    for phrase in search.phrases:
        asked = expression(space, phrase, context=False)
        rows = db.execute(Q["holders_among"], (space, as_json(ids), asked))
        found[" ".join(phrase)] = frozenset(map(_FIRST, rows))
    among, values = postings.among(within)
    statement = Q["holders"].format(among=among)
    for term in search.terms:
        if not term.names:
            continue
        asked = expression(space, [term.term], context=False)
        holders = frozenset(map(_FIRST, db.execute(statement, (asked, *values, bm25.MOST_HOLDERS + 1))))
        if len(holders) <= bm25.MOST_HOLDERS:
            found[term.term] = holders.intersection(ids)
    return found
