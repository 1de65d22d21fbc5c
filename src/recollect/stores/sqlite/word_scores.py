"""BM25 for one space, out of FTS5's bm25() for the whole table.

Every term is stored with its space ("7:invoice"), so a term's postings belong to one space. FTS5 multiplies each
term's saturated frequency by its own idf, `ln((N - n + 0.5) / (n + 0.5))` with N counting the rows of every space;
a factor per term puts this space's idf in its place. What stays table-wide is the average length of a row.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import fsum, log, sqrt
from typing import Final
from weakref import WeakKeyDictionary, proxy

import apsw

from recollect.ports import WordHits, WordSearch
from recollect.stores.sqlite.filters import is_open, rows_query, where_clause
from recollect.stores.sqlite.queries import load
from recollect.types import Background, Filter, Scored

K1: Final = 1.2
"""How soon repetition stops counting; FTS5's own constant."""
TITLE: Final = 1.0
TEXT: Final = 1.0
CONTEXT: Final = 0.2
"""What one occurrence counts in each column."""
BUDGET: Final = 5_000
"""Rows that one search scores, term by term: the commonest terms beyond it are dropped."""
WIDE_BUDGET: Final = 100_000
"""The same for a second look, after a filter has hidden what the first one found."""
PHRASE_BUDGET: Final = 20_000
"""A phrase is looked up when its rarest term is in no more rows than this."""
ALL: Final = -1
"""No limit, as SQLite says it."""
MOST_PARTS: Final = 200
"""SQLite joins at most 500 SELECTs in one statement."""
MOST_HOLDERS: Final = 1_000
"""Memories that are looked at to see which hits hold a name or a phrase; what more hold is no name."""
MOST_COUNTS: Final = 10_000
"""Counts that a connection keeps in memory."""
FTS5_LEAST_IDF: Final = 1e-6
"""What FTS5 takes for a term that is in half of all rows or more."""

Q = load("words.sql")
_frequencies: WeakKeyDictionary[apsw.Connection, Frequencies] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Part:
    """A term or phrase of the question: as FTS5 reads it, how many rows match it, and what it is worth."""

    expression: str
    rows: int
    worth: float
    """This space's idf times the term's own weight: what one occurrence in a memory of average length scores."""


def register(db: apsw.Connection) -> None:
    """Give a connection what the search needs."""
    db.register_fts5_function("row_count", _row_count)
    _frequencies[db] = Frequencies(db)


def _row_count(api: apsw.FTS5ExtensionApi, /, *_: object) -> int:
    return api.row_count


class Frequencies:
    """What one connection has counted, kept until any process writes to the file."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = proxy(db)  # the connection must be free to go: it is the key of `_frequencies`
        self._seq = -1
        self._rows: int | None = None
        self._sizes: dict[int, int] = {}
        self._counts: OrderedDict[tuple[str, int], int] = OrderedDict()

    def catch_up(self) -> None:
        """Forget what was counted before the last write. Call it once per search."""
        seq = self._number("seq")
        if seq != self._seq:
            self._seq, self._rows = seq, None
            self._sizes.clear()
            self._counts.clear()

    def indexed_rows(self, expression: str) -> int:
        """Rows of the whole index; FTS5 tells it only on a row that matches, so `expression` must match one."""
        if self._rows is None:
            self._rows = self._number("indexed_rows", expression)
        return self._rows

    def space_size(self, space: int) -> int:
        if space not in self._sizes:
            self._sizes[space] = self._number("space_size", space)
        return self._sizes[space]

    def matching(self, expression: str, most: int = ALL) -> int:
        """How many rows match, counted no further than `most`."""
        key = (expression, most)
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = self._number("matching", expression, most)
            if len(self._counts) > MOST_COUNTS:
                self._counts.popitem(last=False)
        else:
            self._counts.move_to_end(key)
        return count

    def _number(self, query: str, *parameters: str | int) -> int:
        number: int = self._db.execute(Q[query], parameters).get
        return number


def idf(size: int, rows: int) -> float:
    """How much a term counts that is in `rows` of `size` memories; never negative."""
    return log(1 + (size - rows + 0.5) / (rows + 0.5))


def fts5_idf(size: int, rows: int) -> float:
    """What FTS5's bm25() multiplies with."""
    value = log((size - rows + 0.5) / (rows + 0.5))
    return value if value > 0 else FTS5_LEAST_IDF


def expression(space: int, terms: Sequence[str], *, context: bool) -> str:
    """Adjacent terms of a space as an FTS5 string, in which nothing has a meaning of its own."""
    quoted = '"' + " ".join(f"{space}:{term}" for term in terms).replace('"', '""') + '"'
    return quoted if context else "{title text} : " + quoted


def choose(counts: Frequencies, space: int, search: WordSearch, budget: int) -> tuple[list[Part], bool]:
    """The question's rarest parts whose rows together stay within the budget, in any case the rarest one; and whether
    parts that this space holds were left out. Nothing is counted beyond the budget: what is so common is left out.
    """
    size = counts.space_size(space)
    wanted = [(expression(space, [term.term], context=search.context), term.weight) for term in search.terms]
    wanted += [(phrase, 1.0) for phrase in _phrases(counts, space, search)]
    found = [(counts.matching(each, budget + 1), each, weight) for each, weight in wanted]
    found = sorted((part for part in found if part[0]), key=lambda part: part[0])
    chosen: list[Part] = []
    spent = 0
    for rows, each, weight in found[:MOST_PARTS]:
        spent += rows
        if chosen and spent > budget:
            break
        exact = rows if rows <= budget else counts.matching(each)
        chosen.append(Part(each, exact, idf(size, exact) * weight))
    return chosen, len(chosen) < len(found)


def _phrases(counts: Frequencies, space: int, search: WordSearch) -> Iterator[str]:
    """The phrases that are worth looking up."""
    for phrase in search.phrases:
        singles = (expression(space, [term], context=search.context) for term in phrase)
        if any(counts.matching(single, PHRASE_BUDGET + 1) <= PHRASE_BUDGET for single in singles):
            yield expression(space, phrase, context=search.context)


def background(parts: Sequence[Part], size: int) -> Background:
    """How the parts score the whole space, from how many memories hold each: as if each part stood in a memory, once
    and at average length, or did not, whatever the others do. Scoring every memory would tell it better, and take
    longer than the search itself.
    """
    shares = [(min(part.rows / max(size, 1), 1.0), part.worth) for part in parts]
    mean = fsum(share * worth for share, worth in shares)
    variance = fsum(share * (1 - share) * worth**2 for share, worth in shares)
    return Background(mean, sqrt(variance), size)


def search(db: apsw.Connection, space: int, search: WordSearch, where: Filter, limit: int) -> WordHits:
    """The memories with the best BM25, ties by id."""
    counts = _frequencies[db]
    counts.catch_up()
    visible = partial(_visible, db, *where_clause(space, where))
    parts, more = choose(counts, space, search, BUDGET)
    hits = _best(_score(db, counts, parts), visible, limit)
    if len(hits) < limit and more and not is_open(where):
        parts, _ = choose(counts, space, search, WIDE_BUDGET)
        hits = _best(_score(db, counts, parts, rows_query(space, where)), visible, limit)
    found = WordHits(hits, background(parts, counts.space_size(space)))
    return found._replace(holders=_holders(db, space, search, hits)) if hits else found


def _score(
    db: apsw.Connection, counts: Frequencies, parts: Sequence[Part], allowed: tuple[str, list[object]] | None = None
) -> Iterator[tuple[int, float]]:
    """Every row, or every row that a query allows, that matches a part, with its score, best first."""
    if not parts:
        return iter(())
    rows, parameters = allowed or ("", [])
    total = counts.indexed_rows(parts[0].expression)
    for part in parts:
        parameters += [TITLE, TEXT, CONTEXT, part.worth / fts5_idf(total, part.rows), part.expression]
    each = Q["score_allowed_part"] if allowed else Q["score_part"]
    scored = Q["score_rows"].format(parts=" UNION ALL ".join([each] * len(parts)))
    return db.execute(Q["allowed"].format(rows=rows) + scored if allowed else scored, parameters)


def _best(
    scored: Iterator[tuple[int, float]], visible: Callable[[Sequence[int]], dict[int, str]], limit: int
) -> list[Scored]:
    """The best rows that pass the filter. Filtering in order looks at no more rows than it must."""
    found: list[Scored] = []
    take = limit + 20  # most often nothing is filtered out, and few scores are equal
    while chunk := list(islice(scored, take)):
        ids = visible([row for row, _ in chunk])
        found += [Scored(ids[row], points) for row, points in chunk if row in ids]
        if len(found) >= limit and chunk[-1][1] < found[limit - 1].score:
            break
        take *= 2
    found.sort(key=lambda hit: (-hit.score, hit.id))
    return found[:limit]


def _visible(db: apsw.Connection, condition: str, values: Sequence[object], rows: Sequence[int]) -> dict[int, str]:
    """The ids of those rows that pass the filter."""
    return dict(db.execute(Q["visible"].format(where=condition), (json.dumps(rows), *values)))


def _holders(db: apsw.Connection, space: int, search: WordSearch, hits: Sequence[Scored]) -> dict[str, frozenset[str]]:
    """Which hits hold, in their own words, each term that names one thing and each phrase."""
    named = [(term.term,) for term in search.terms if term.names] + list(search.phrases)
    wanted = {hit.id for hit in hits}
    found: dict[str, frozenset[str]] = {}
    for terms in named:
        rows = db.execute(Q["holders"], (expression(space, terms, context=False), MOST_HOLDERS))
        found[" ".join(terms)] = frozenset(wanted.intersection(id for (id,) in rows))
    return found
