"""Samples of each space's vectors, cached and updated at each search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import apsw

from recollect.stores.named_sql import load
from recollect.stores.nearest import DIGEST_BYTES, SAMPLE, SampleCache, background
from recollect.stores.sqlite.rows import as_json
from recollect.stores.sqlite.vector_views import Key, matrix
from recollect.types import Background

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

Q = load(__name__, "vectors.sql")

_ANY: Final = b"\xff" * (DIGEST_BYTES + 1)
"""No digest is higher."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The vectors with the lowest digests as of transaction `seq`, when the space held `memories`. `rows` is JSON;
    `highest` is the highest of their digests.
    """

    seq: int
    memories: int
    rows: str
    highest: bytes
    vectors: Vectors


class Samples:
    """The samples of the spaces that were asked last."""

    def __init__(self) -> None:
        self._cache: SampleCache[Sample] = SampleCache()

    def background(self, db: apsw.Connection, key: Key, vector: Vector) -> Background | None:
        """How a vector compares with the space at large."""
        sample = self._current(db, key, len(vector))
        return background(sample.vectors, vector, sample.memories)

    def _current(self, db: apsw.Connection, key: Key, dimensions: int) -> Sample:
        """As the connection's snapshot sees it, or later."""
        seq: int = db.execute(Q["clock"]).get
        known = self._cache.get(key)
        if known is not None and known.seq >= seq:
            return known
        memories: int = db.execute(Q["space_size"], (key[0],)).get
        if known is not None and not _has_changed(db, key, known):
            sample = replace(known, seq=seq, memories=memories)
        else:
            sample = _taken(db, key, dimensions, seq, memories)
        self._cache.keep(key, sample)
        return sample


def _has_changed(db: apsw.Connection, key: Key, known: Sample) -> bool:
    return bool(db.execute(Q["sample_has_changed"], (*key, known.seq, known.highest, known.rows)).get)


def _taken(db: apsw.Connection, key: Key, dimensions: int, seq: int, memories: int) -> Sample:
    found = list(db.execute(Q["sample_of_many"], (*key, SAMPLE)))
    if len(found) < SAMPLE:
        found = list(db.execute(Q["sample"], (*key, SAMPLE)))
    highest = found[-1][1] if len(found) == SAMPLE else _ANY
    vectors = matrix((blob for _, _, blob in found), dimensions)
    return Sample(seq, memories, as_json([row for row, _, _ in found]), highest, vectors)
