"""BM25 for one space, out of FTS5's bm25() for the whole table.

Every term is stored with its space ("7:invoice"), so a term's postings belong to one space. FTS5 multiplies each
term's saturated frequency by its own idf, `ln((N - n + 0.5) / (n + 0.5))` with N counting the rows of every space;
a factor per term puts this space's idf in its place. FTS5 also compares a row's length with the average of the whole
table; where this space's own is another, its score is turned into what it would be with that.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import log
from typing import Final, NamedTuple, TypeAlias

import apsw

from recollect.ports import WordHits, WordSearch
from recollect.stores import bm25
from recollect.stores.bm25 import BUDGET, CONTEXT, K1, TEXT, TITLE, WIDE_BUDGET, B, Counted, Look, Part
from recollect.stores.named_sql import load
from recollect.stores.sqlite.filters import among_query, is_listed, is_open, where_clause
from recollect.stores.sqlite.rows import as_json
from recollect.types import Filter, Scored

ALIKE: Final = 0.01
"""Where this space's idf and FTS5's own differ by one and the same factor for all parts, within this share of it, FTS5
may add them up itself, which takes a third less time: a space that has a large file to itself, and rare words."""
ALL: Final = -1
"""No limit, as SQLite says it."""
MOST_COUNTS: Final = 10_000
"""Counts that are kept in memory."""
FTS5_LEAST_IDF: Final = 1e-6
"""What FTS5 takes for a term that is in half of all rows or more."""

SQL: TypeAlias = tuple[str, list[object]]
"""A piece of a statement, and its parameters."""

Q = load(__name__, "words.sql")


def register(db: apsw.Connection) -> None:
    """Give a connection what the search needs."""
    db.register_fts5_function("row_count", _row_count)


def _row_count(api: apsw.FTS5ExtensionApi, /, *_: object) -> int:
    return api.row_count


class Counts:
    """What was counted in one file, shared by all its connections, kept until any process writes to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seq = -1
        self._known: dict[tuple[str, int], int] = {}

    def at(self, seq: int) -> dict[tuple[str, int], int]:
        """What is known as of a transaction; who still reads an older state counts for itself."""
        with self._lock:
            if seq > self._seq or len(self._known) > MOST_COUNTS:
                self._seq, self._known = max(seq, self._seq), {}
            return self._known if seq == self._seq else {}


class Averages(NamedTuple):
    """How many terms the word index holds of a memory on average: in one space, and in the whole table."""

    own: float
    whole: float


class Frequencies:
    """How common words are, for one search."""

    def __init__(self, db: apsw.Connection, counts: Counts) -> None:
        self._db = db
        self._known = counts.at(self._number("seq"))

    def indexed_rows(self, expression: str) -> int:
        """Rows of the whole index; FTS5 tells it only on a row that matches, so `expression` must match one."""
        return self._once(("indexed_rows", 0), expression)

    def space_size(self, space: int) -> int:
        return self._once(("space_size", space), space)

    def averages(self, space: int, expression: str) -> Averages:
        """How long a memory is; `expression` must match one."""
        own = self._once(("space_terms", space), space) / max(self.space_size(space), 1)
        return Averages(own, self._once(("indexed_terms", 0)) / self.indexed_rows(expression))

    def matching(self, expression: str, most: int = ALL) -> int:
        """How many rows match, counted no further than `most`."""
        return self.all_matching([expression], most)[0]

    def all_matching(self, expressions: Sequence[str], most: int = ALL) -> list[int]:
        """The same for several, those that are not known yet in one statement."""
        known = self._known
        unknown = [each for each in dict.fromkeys(expressions) if (each, most) not in known]
        if unknown:
            counted = json.loads(self._db.execute(Q["matching"], (as_json(unknown), most)).get)
            known.update(zip(((each, most) for each in unknown), counted, strict=True))
        return [known[each, most] for each in expressions]

    def _once(self, key: tuple[str, int], *parameters: str | int) -> int:
        query, _ = key
        if key not in self._known:
            self._known[key] = self._number(query, *parameters)
        return self._known[key]

    def _number(self, query: str, *parameters: str | int) -> int:
        number: int = self._db.execute(Q[query], parameters).get
        return number


def fts5_idf(size: int, rows: int) -> float:
    """What FTS5's bm25() multiplies with."""
    value = log((size - rows + 0.5) / (rows + 0.5))
    return value if value > 0 else FTS5_LEAST_IDF


def expression(space: int, terms: Sequence[str], *, context: bool) -> str:
    """Adjacent terms of a space as an FTS5 string, in which nothing has a meaning of its own."""
    quoted = '"' + " ".join(f"{space}:{term}" for term in terms).replace('"', '""') + '"'
    return quoted if context else "{title text} : " + quoted


def choose(counts: Frequencies, space: int, search: WordSearch, budget: int) -> tuple[list[Part], bool]:
    """The question's rarest parts within a budget, and whether others that this space holds were left out. Nothing is
    counted beyond the budget: what is so common is left out.
    """
    size = counts.space_size(space)
    wanted = [(expression(space, [term.term], context=search.context), term.weight) for term in search.terms]
    wanted += [(phrase, 1.0) for phrase in _phrases(counts, space, search)]
    rows = counts.all_matching([each for each, _ in wanted], budget + 1)
    chosen, more = bm25.choose((Counted(*part, count) for part, count in zip(wanted, rows, strict=True)), budget)
    exact = (one if one.rows <= budget else one._replace(rows=counts.matching(one.expression)) for one in chosen)
    return [bm25.weighed(one, size) for one in exact], more


def _phrases(counts: Frequencies, space: int, search: WordSearch) -> Iterator[str]:
    """The phrases that are worth looking up."""
    for phrase in search.phrases:
        singles = (expression(space, [term], context=search.context) for term in phrase)
        if any(counts.matching(single, bm25.PHRASE_BUDGET + 1) <= bm25.PHRASE_BUDGET for single in singles):
            yield expression(space, phrase, context=search.context)


def search(db: apsw.Connection, space: int, search: WordSearch, where: Filter, limit: int, known: Counts) -> WordHits:
    """The memories with the best BM25, ties by id."""
    counts = Frequencies(db, known)
    condition = where_clause(space, where)
    passing = None if is_open(where) else _Passing.of(db, space, where, counts.space_size(space))
    parts, more = choose(counts, space, search, BUDGET)
    hits = _best(partial(_score, db, space, counts, parts, condition), limit, passing)
    if more and bm25.is_too_little(hits, limit, filtered=passing is not None):
        parts, _ = choose(counts, space, search, WIDE_BUDGET)
        hits = _best(partial(_score, db, space, counts, parts, condition), limit, passing)
    found = WordHits(hits, bm25.background(parts, counts.space_size(space)))
    return found._replace(holders=_holders(db, space, search, hits)) if hits else found


def _score(
    db: apsw.Connection,
    space: int,
    counts: Frequencies,
    parts: Sequence[Part],
    condition: SQL,
    limit: int,
    allowed: SQL | None = None,
) -> Look:
    """The best `limit` rows, or the best of those that a query allows, that match a part; then the filter, which is
    the last word: what is allowed may be more than what passes.
    """
    if not parts:
        return Look([], 0, 0.0)
    scored, parameters = _scored(space, counts, parts, allowed)
    statement = Q["score_rows"].format(
        allowed=Q["allowed"].format(rows=allowed[0]) if allowed else "", scored=scored, where=condition[0]
    )
    seen, last, hits = db.execute(statement, [*parameters, limit, *condition[1]]).get
    return Look([Scored(id, points) for id, points in json.loads(hits)], seen, last or 0.0)


def _scored(space: int, counts: Frequencies, parts: Sequence[Part], allowed: SQL | None) -> SQL:
    """Rows and their scores, with the parameters of what is allowed in front."""
    total = counts.indexed_rows(parts[0].expression)
    averages = counts.averages(space, parts[0].expression)
    idfs = [fts5_idf(total, part.rows) for part in parts]
    factors = [part.worth / idf for part, idf in zip(parts, idfs, strict=True)]
    typical = averages.own == averages.whole
    among = Q["among"] if allowed else ""
    parameters = list(allowed[1]) if allowed else []
    if typical and max(factors) - min(factors) <= ALIKE * min(factors):
        merged = " OR ".join(part.expression for part in parts)
        parameters += [TITLE, TEXT, CONTEXT, sum(factors) / len(factors), merged]
        return Q["score_together"].format(among=among), parameters
    for part, idf, factor in zip(parts, idfs, factors, strict=True):
        if typical:
            parameters += [TITLE, TEXT, CONTEXT, factor, part.expression]
        else:
            parameters += [part.worth * (K1 + 1), K1 + 1, TITLE, TEXT, CONTEXT, 1 / idf]
            parameters += [*_norm(averages.whole), *_norm(averages.own), part.expression]
    each = Q["score_part" if typical else "score_part_anew"].format(among=among)
    return Q["score_apart"].format(parts=" UNION ALL ".join([each] * len(parts))), parameters


def _norm(average: float) -> tuple[float, float]:
    """What a row's length does to its scores: a number, and another for each of its terms."""
    return K1 * (1 - B), K1 * B / average


class _Passing(NamedTuple):
    """Rows among which all are that pass a filter, as a query; whether they are few; whether an index lists them."""

    rows: SQL
    few: bool
    listed: bool

    @classmethod
    def of(cls, db: apsw.Connection, space: int, where: Filter, size: int) -> _Passing:
        """For a space of some size."""
        listed = is_listed(where)
        most = bm25.most_listed(size, listed=listed)
        rows, values = among_query(space, where)
        counted: int = db.execute(Q["count_allowed"].format(rows=rows), [*values, most + 1]).get
        return cls((rows, values), counted <= most, listed)


def _best(score: Callable[[int, SQL | None], Look], limit: int, passing: _Passing | None) -> list[Scored]:
    """The best that pass the filter. Where few do, their rows are the way in. Otherwise a first look may find enough;
    if not, all rows are looked at, or those that pass where they are quicker to list.
    """
    if passing and passing.few:
        return bm25.best(score(ALL, passing.rows).hits, limit)
    most = bm25.first_look(limit, filtered=passing is not None)
    look = score(most, None)
    if not bm25.is_enough(look, most, limit):
        quicker = passing and (passing.listed or bm25.is_narrow(look))
        look = score(ALL, passing.rows if passing and quicker else None)
    return bm25.best(look.hits, limit)


def _holders(db: apsw.Connection, space: int, search: WordSearch, hits: Sequence[Scored]) -> dict[str, frozenset[str]]:
    """Which hits hold, in their own words, each term that names one thing and each phrase."""
    ids = [hit.id for hit in hits]
    found: dict[str, frozenset[str]] = {}
    for phrase in search.phrases:
        asked = expression(space, phrase, context=False)
        rows = db.execute(Q["holders_among"], (space, as_json(ids), asked))
        found[" ".join(phrase)] = frozenset(id for (id,) in rows)
    for term in (term.term for term in search.terms if term.names):
        asked = expression(space, [term], context=False)
        holders = [id for (id,) in db.execute(Q["holders"], (asked, bm25.MOST_HOLDERS + 1))]
        if len(holders) <= bm25.MOST_HOLDERS:
            found[term] = frozenset(holders).intersection(ids)
    return found
