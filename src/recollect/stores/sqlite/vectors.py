"""Vectors as rows of the store's file, and the search among them.

The rows are the truth. What `VectorSearch` keeps in memory or beside the file is a cache that catches up from the rows
by sequence number, so several processes can share the file, and a lost cache is rebuilt.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

from recollect.ports import VectorHits
from recollect.stores.bm25 import best
from recollect.stores.named_sql import load
from recollect.stores.nearest import (
    DIGEST_BYTES,
    LOOKED_AT,
    NO_CANDIDATES,
    SAMPLE,
    Candidates,
    SampleCache,
    background,
    others,
    products,
    rounded,
)
from recollect.stores.sql_store import is_unfiltered
from recollect.stores.sqlite import graph
from recollect.stores.sqlite.rows import as_json, passing_rows, rows_query, where_clause
from recollect.stores.sqlite.usearch import Effort
from recollect.stores.sqlite.vector_views import LIMITS, Key, Limits, View, Views, matrix
from recollect.types import Background, Filter, Scored

if TYPE_CHECKING:
    from recollect.stores.nearest import Rows
    from recollect.types import Vector, Vectors

Q = load(__name__, "vectors.sql")

_SLACKS = (2, 8)  # candidates per hit wanted: a few superseded ones must not leave the answer short, nor most of them
_FEWEST = 64  # candidates at least, because the graph orders them by rounded vectors
_EFFORT = 4  # a graph asked for 2 n finds 0.97 of the nearest n; asked for 4 n, 0.99
_FILTERS_KEPT = 32
_ANY = b"\xff" * (DIGEST_BYTES + 1)  # no digest is higher
_SCANNED_AT_ONCE = 4096


class VectorRow(NamedTuple):
    """The vector of a row, and the digest of the text that it was made of."""

    row: int
    digest: bytes
    vector: Vector


def put(db: apsw.Connection, space: int, generation: int, seq: int, vectors: Sequence[VectorRow]) -> None:
    """Store the vectors of these rows; earlier ones are replaced."""
    db.executemany(
        Q["put_vector"],
        ((row, space, generation, seq, np.asarray(vector, "<f4").tobytes(), digest) for row, digest, vector in vectors),
    )


def remove(db: apsw.Connection, space: int, seq: int, rows: Sequence[int]) -> None:
    """Delete the vectors of these rows, of every generation."""
    numbers = as_json(rows)
    db.execute(Q["delete_vectors"], (numbers,))
    db.execute(Q["log_removed"], (space, seq, numbers))


class VectorSearch:
    """Finds the nearest vectors of a space. Safe to call from several threads, each with its own connection.

    Every answer holds for the caller's snapshot: the caches may know of later changes, so what they find is looked up
    there, and superseded, expired and filtered memories drop out. When that leaves too few, the rows that pass are
    listed first and only they are ranked.
    """

    def __init__(self, folder: Path, limits: Limits = LIMITS) -> None:
        """`folder` is where the index files go; it is made when the first is written."""
        self._views = Views(folder, limits)
        self._allowed = _AllowedRows()
        self._samples: SampleCache[_Sample] = SampleCache()

    def search(
        self,
        db: apsw.Connection,
        space: int,
        generation: int,
        vector: Vector,
        where: Filter,
        limit: int,
        ef_search: int | None = None,
    ) -> VectorHits:
        """The nearest memories that pass the filter, by cosine, best first, ties by id.

        `ef_search` is how many candidates a graph keeps, if there is one, in place of the measured number.
        """
        question = np.ascontiguousarray(vector, np.float32)
        where = where if where.now else replace(where, now=datetime.now(UTC))
        view = self._views.caught_up(db, space, generation, len(question))
        if view is None:
            found = _scanned(db, space, generation, question, where, limit)
            hits = _visible(db, space, where, found, limit)
        elif view.total:
            hits = self._nearest(db, space, view, question, where, limit, ef_search)
        else:
            return VectorHits([])
        return hits._replace(background=self.background(db, space, generation, question))

    def background(self, db: apsw.Connection, space: int, generation: int, vector: Vector) -> Background | None:
        """How a vector compares with those of the space at large; None while it has none."""
        sample = self._sample(db, (space, generation), len(vector))
        return background(sample.vectors, vector, sample.memories)

    def _sample(self, db: apsw.Connection, key: Key, dimensions: int) -> _Sample:
        """The vectors that stand for a space, as the connection's snapshot sees it, or later."""
        seq: int = db.execute(Q["clock"]).get
        known = self._samples.get(key)
        if known is not None and known.seq >= seq:
            return known
        memories: int = db.execute(Q["space_size"], (key[0],)).get
        if known is not None and not _has_changed(db, key, known):
            sample = replace(known, seq=seq, memories=memories)
        else:
            sample = _taken(db, key, dimensions, seq, memories)
        self._samples.keep(key, sample)
        return sample

    def _nearest(
        self,
        db: apsw.Connection,
        space: int,
        view: View,
        question: Vector,
        where: Filter,
        limit: int,
        ef_search: int | None,
    ) -> VectorHits:
        effort = Effort(_EFFORT * limit, ef_search)
        for slack in _SLACKS if is_unfiltered(where) else ():
            found = view.nearest(question, max(slack * limit, _FEWEST), effort)
            visible = _visible(db, space, where, found, limit)
            if len(visible.hits) == limit or len(found.rows) == view.total:
                return visible
        count = max(_SLACKS[0] * limit, _FEWEST)
        for allowed in self._allowed.attempts(db, space, where):
            found = view.nearest_among(question, count, effort, allowed)
            visible = _visible(db, space, where, found, limit)
            if len(visible.hits) in (limit, len(found.rows)):
                break
        return visible

    def nearest_to(
        self, db: apsw.Connection, space: int, generation: int, ids: Sequence[str], limit: int
    ) -> dict[str, list[Scored]]:
        """For each of these memories the others that are nearest to it, superseded and expired ones included, and those
        to which it is nearer than their own nearest.
        """
        own = self.fetch(db, space, generation, ids)
        if not own:
            return {}
        vectors = np.stack(list(own.values()))
        view = self._views.caught_up(db, space, generation, vectors.shape[1])
        if view is None:
            return {}
        found = view.neighbours_of_each(vectors, limit + LOOKED_AT, lambda rows: graph.reach(db, space, rows, limit))
        rows = np.unique(np.concatenate([part.rows for neighbours in found for part in neighbours])).tolist()
        names = dict(db.execute(Q["ids_by_row"], (as_json(rows), space)))
        return {id: others(id, neighbours, names, limit) for id, neighbours in zip(own, found, strict=True)}

    def fetch(self, db: apsw.Connection, space: int, generation: int, ids: Sequence[str]) -> dict[str, Vector]:
        found = db.execute(Q["vectors_by_id"], (as_json(ids), space, generation))
        return {id: np.frombuffer(blob, "<f4") for id, blob in found}

    def awaits_index(self, db: apsw.Connection, space: int, generation: int, dimensions: int) -> bool:
        """Whether a space needs an index that is not there yet. If so, it is built in the background."""
        return self._views.awaits_base(db, space, generation, dimensions)

    def settle(self) -> None:
        self._views.settle()

    def close(self) -> None:
        """Abandon a running build. Another process, or the next, repeats it."""
        self._views.close()


@dataclass(frozen=True, slots=True)
class _Sample:
    """The vectors with the lowest digests as of transaction `seq`, when the space held `memories`. `rows` is JSON;
    `highest` is the highest of their digests.
    """

    seq: int
    memories: int
    rows: str
    highest: bytes
    vectors: Vectors


def _has_changed(db: apsw.Connection, key: Key, known: _Sample) -> bool:
    return bool(db.execute(Q["sample_has_changed"], (*key, known.seq, known.highest, known.rows)).get)


def _taken(db: apsw.Connection, key: Key, dimensions: int, seq: int, memories: int) -> _Sample:
    found = list(db.execute(Q["sample_of_many"], (*key, SAMPLE)))
    if len(found) < SAMPLE:
        found = list(db.execute(Q["sample"], (*key, SAMPLE)))
    highest = found[-1][1] if len(found) == SAMPLE else _ANY
    vectors = matrix((blob for _, _, blob in found), dimensions)
    return _Sample(seq, memories, as_json([row for row, _, _ in found]), highest, vectors)


class _Allowed(NamedTuple):
    seq: int
    now: datetime
    rows: Rows


class _AllowedRows:
    """Which rows pass a filter, remembered until the next write. What expires meanwhile stays on the list, so whoever
    uses it must look the rows up, and ask for a fresh list when too many have gone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: OrderedDict[tuple[int, Filter], _Allowed] = OrderedDict()

    def attempts(self, db: apsw.Connection, space: int, where: Filter) -> Iterator[Rows]:
        """The remembered list, if there is one, and then a fresh one; each sorted."""
        key = (space, replace(where, now=None))
        now = where.now or datetime.now(UTC)
        seq: int = db.execute(Q["clock"]).get
        known = self._lists.get(key)
        if known and known.seq == seq and known.now <= now:
            yield known.rows
        sql, values = rows_query(space, where)
        rows = np.sort(np.array([row for (row,) in db.execute(sql, values)], np.int64))
        with self._lock:
            self._lists[key] = _Allowed(seq, now, rows)
            self._lists.move_to_end(key)
            if len(self._lists) > _FILTERS_KEPT:
                self._lists.popitem(last=False)
        yield rows


def _visible(db: apsw.Connection, space: int, where: Filter, found: Candidates, limit: int) -> VectorHits:
    """The best candidates that pass the filter in this snapshot, best first, ties by id."""
    condition = where_clause(space, where)
    scores = rounded(found.scores)
    order = np.argsort(-scores)
    hits: list[Scored] = []
    threaded: set[str] = set()
    # Most often all of the first pass; looking up the others as well would take as long as finding them. Of those that
    # tie with the last of the first, all are looked up, because ids decide.
    first = int(np.count_nonzero(scores >= scores[order[: limit + limit // 4][-1]])) if len(order) else 0
    for part in (order[:first], order[first:]):
        if len(hits) >= limit:
            break
        rows = found.rows[part].tolist()
        ids: dict[int, str] = {}
        for row, id, in_thread in passing_rows(db, condition, rows):
            ids[row] = id
            if in_thread:
                threaded.add(id)
        hits += [Scored(ids[row], score) for row, score in zip(rows, scores[part].tolist(), strict=True) if row in ids]
    return VectorHits(best(hits, limit), threaded=frozenset(threaded))


def _scanned(db: apsw.Connection, space: int, generation: int, vector: Vector, where: Filter, limit: int) -> Candidates:
    """The nearest of a space that is too large to hold, read from the store."""
    condition, values = where_clause(space, where)
    nearest = NO_CANDIDATES
    reading = db.execute(Q["scan"].format(where=condition), [space, generation, *values])
    while part := list(islice(reading, _SCANNED_AT_ONCE)):
        rows = np.array([row for row, _ in part], np.int64)
        scores = products(matrix((blob for _, blob in part), len(vector)), vector)
        nearest = nearest.joined(Candidates(rows, scores)).best(limit)
    return nearest
