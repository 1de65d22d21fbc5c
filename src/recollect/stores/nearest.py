"""Exact comparison of vectors, and what their cosines are measured against: a sample of each space. For all databases.

The sample is the vectors of the texts with the lowest digests. It depends only on what the space holds, so every store
takes the same one, whatever the order of storing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from recollect.types import Background, Scored

if TYPE_CHECKING:
    import numpy.typing as npt

    from recollect.types import Vector, Vectors

    Rows: TypeAlias = npt.NDArray[np.int64]
    Scores: TypeAlias = npt.NDArray[np.float32]
    Mask: TypeAlias = npt.NDArray[np.bool_]
    Reach: TypeAlias = Callable[[Rows], Scores]
    """The cosine that a vector needs to be near enough for each of some rows; infinite for none."""

_GATHERED = 1024  # vectors copied at a time: such a copy stays in the processor's cache, twice as fast as a large one
_FIRST_CAPACITY = 256
_SAMPLED = 16
_COMPARED = 20_000
"""Rows compared at a time with many vectors: 30 MB of vectors, and 40 MB of products with 500."""

DIGITS: Final = 6
"""Decimals of a cosine: later ones depend on the order of float32 additions."""
SAMPLE: Final = 256
"""Vectors in a sample: the mean and deviation of their cosines rank as well as those of all vectors (nDCG@10 over six
sets: 0.6736 against 0.6738)."""
SAMPLES_MEMORY: Final = 64 << 20
"""Bytes of samples kept, of the spaces searched last."""
DIGEST_BYTES: Final = 8
LOOKED_AT: Final = 8
"""Extra rows compared to find a memory's nearest: the memory itself, and some ties."""


class Candidates(NamedTuple):
    """Rows and their cosines, in no order."""

    rows: Rows
    scores: Scores

    def best(self, count: int) -> Candidates:
        if len(self.rows) <= count:
            return self
        kept = np.argpartition(self.scores, -count)[-count:]
        return Candidates(self.rows[kept], self.scores[kept])

    def without(self, rows: Rows) -> Candidates:
        """Those that are not in `rows`, which is sorted."""
        kept = ~members(self.rows, rows)
        return Candidates(self.rows[kept], self.scores[kept])

    def real(self) -> Candidates:
        """Without those whose score is minus infinity."""
        kept = self.scores > -np.inf
        return self if kept.all() else Candidates(self.rows[kept], self.scores[kept])

    def joined(self, other: Candidates) -> Candidates:
        return Candidates(np.concatenate((self.rows, other.rows)), np.concatenate((self.scores, other.scores)))


NO_ROWS: Rows = np.empty(0, np.int64)
NO_CANDIDATES = Candidates(NO_ROWS, np.empty(0, np.float32))


class Neighbours(NamedTuple):
    """The rows nearest to a vector, and the rows that it is near enough for (`takers`)."""

    best: Candidates
    takers: Candidates

    def joined(self, other: Neighbours, count: int) -> Neighbours:
        return Neighbours(self.best.joined(other.best).best(count), self.takers.joined(other.takers))


NO_NEIGHBOURS = Neighbours(NO_CANDIDATES, NO_CANDIDATES)


def members(rows: Rows, of: Rows) -> Mask:
    """Which of `rows` are in `of`, which is sorted."""
    if not len(of):
        return np.zeros(len(rows), np.bool_)
    found: Mask = of[np.minimum(np.searchsorted(of, rows), len(of) - 1)] == rows
    return found


products = np.vecdot
"""The products of one vector with many. Not `@`: that wakes a thread per core for a millisecond's work, and several
searches at once then wait for each other's threads (8 ms instead of 0.2 for 5,000 vectors on two busy cores)."""


def dots(vectors: Vectors, vector: Vector, slots: Rows) -> Scores:
    """The products of `vector` with the vectors at `slots`."""
    scores = np.empty(len(slots), np.float32)
    gathered = np.empty((min(_GATHERED, len(slots)), vectors.shape[1]), np.float32)
    for start in range(0, len(slots), _GATHERED):
        part = slots[start : start + _GATHERED]
        # "clip" lets numpy write straight into the buffer; slots are always within bounds
        np.take(vectors, part, axis=0, out=gathered[: len(part)], mode="clip")
        products(gathered[: len(part)], vector, out=scores[start : start + len(part)])
    return scores


def neighbours_of_each(rows: Rows, stored: Vectors, vectors: Vectors, count: int, least: Scores) -> list[Neighbours]:
    """The neighbours of each of many vectors. For background work: the products may use all cores."""
    found = [NO_NEIGHBOURS] * len(vectors)
    for start in range(0, len(rows), _COMPARED):
        part = slice(start, start + _COMPARED)
        some = neighbours(rows[part], vectors @ stored[part].T, count, least[part])
        found = [one.joined(other, count) for one, other in zip(found, some, strict=True)] if start else some
    return found


def neighbours(rows: Rows, scores: Scores, count: int, least: Scores) -> list[Neighbours]:
    """The same from the scores of many vectors, one line each. `rows` and `least` have one line for all, or one each. A
    score of minus infinity marks no row.

    The best of every sixteenth score bound the best of all from below, so lower scores need not be sorted.
    """
    width = scores.shape[1]
    some = scores[:, ::_SAMPLED] if width > 2 * _SAMPLED * count else scores
    floor = np.partition(some, max(some.shape[1] - count, 0), axis=1)[:, max(some.shape[1] - count, 0), None]
    line, column = np.divmod(np.flatnonzero(scores >= np.minimum(floor, least)), width)
    ends = np.searchsorted(line, np.arange(len(scores) + 1)).tolist()
    named, own = (rows[column] if rows.ndim == 1 else rows[line, column]), scores[line, column]
    takes = own >= (least[column] if least.ndim == 1 else least[line, column])
    found = []
    for start, end in pairwise(ends):
        near, taking = Candidates(named[start:end], own[start:end]), takes[start:end]
        found.append(Neighbours(near.best(count).real(), Candidates(near.rows[taking], near.scores[taking])))
    return found


@dataclass(frozen=True, slots=True)
class Block:
    """Rows and their vectors in memory, immutable.

    A change makes a new block. It writes into the same arrays, but only beyond what older blocks read, so searches of
    an older block are not disturbed. Only the newest block may be changed.
    """

    count: int
    rows: Rows
    vectors: Vectors
    live: Mask

    @classmethod
    def empty(cls, dimensions: int) -> Block:
        return cls(0, np.empty(0, np.int64), np.empty((0, dimensions), np.float32), np.empty(0, np.bool_))

    def __len__(self) -> int:
        return int(np.count_nonzero(self.live))

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.vectors.nbytes + self.rows.nbytes + self.live.nbytes

    def changed(self, gone: Rows, rows: Rows, vectors: Vectors) -> Block:
        """Without the rows `gone` (sorted), and then with these."""
        live = self.live & ~members(self.rows[: self.count], gone)
        total = self.count + len(rows)
        block = self.with_room(total)
        block.rows[self.count : total] = rows
        block.vectors[self.count : total] = vectors
        return Block(total, block.rows, block.vectors, np.concatenate((live, np.ones(len(rows), np.bool_))))

    def nearest(self, vector: Vector, count: int, allowed: Rows | None = None) -> Candidates:
        """The best of all rows, or of those in `allowed`, which is sorted."""
        if not self.count:
            return NO_CANDIDATES
        rows, vectors = self.rows[: self.count], self.vectors[: self.count]
        slots = np.flatnonzero(self.live if allowed is None else self.live & members(rows, allowed))
        # Comparing everything at once is faster than picking out the vectors, unless they are few.
        scores = dots(vectors, vector, slots) if 3 * len(slots) < self.count else products(vectors, vector)[slots]
        return Candidates(rows[slots], scores).best(count)

    def neighbours_of_each(self, vectors: Vectors, count: int, reach: Reach) -> list[Neighbours]:
        slots = np.flatnonzero(self.live)
        found = [NO_NEIGHBOURS] * len(vectors)
        for start in range(0, len(slots), _COMPARED):  # a part at a time: it may be a copy
            part = slots[start : start + _COMPARED]
            whole = slice(part[0], part[-1] + 1) if part[-1] - part[0] + 1 == len(part) else part
            rows = self.rows[whole]
            some = neighbours_of_each(rows, self.vectors[whole], vectors, count, reach(rows))
            found = [one.joined(other, count) for one, other in zip(found, some, strict=True)] if start else some
        return found

    def with_room(self, total: int) -> Block:
        """The same rows, with capacity for `total`."""
        if total <= len(self.rows):
            return self
        capacity = max(_FIRST_CAPACITY, total, 2 * self.count)
        rows = np.empty(capacity, np.int64)
        vectors = np.empty((capacity, self.vectors.shape[1]), np.float32)
        rows[: self.count] = self.rows[: self.count]
        vectors[: self.count] = self.vectors[: self.count]
        return Block(self.count, rows, vectors, self.live)


def rounded(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Cosines, rounded to the digits that are exact."""
    return np.clip(scores.astype(np.float64), -1.0, 1.0).round(DIGITS)


def cosines(found: Candidates) -> npt.NDArray[np.float64]:
    return rounded(found.scores)


def others(id: str, found: Neighbours, names: Mapping[int, str], limit: int) -> list[Scored]:
    """The best candidates other than the memory itself, with ties of the last, best first; then the rows that the
    memory is near enough for. `names` are the ids of rows.
    """
    best = _named(found.best, names, id)
    near = [hit for hit in best if hit.score >= best[:limit][-1].score]
    known = {hit.id for hit in near}
    return near + [hit for hit in _named(found.takers, names, id) if hit.id not in known]


def _named(found: Candidates, names: Mapping[int, str], id: str) -> list[Scored]:
    pairs = zip(found.rows.tolist(), cosines(found).tolist(), strict=True)
    hits = (Scored(names[row], score) for row, score in pairs if row in names and names[row] != id)
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def text_digest(title: str, text: str) -> bytes:
    """The digest that decides whether a vector is in its space's sample. It depends only on the embedded text. Postgres
    has a function of the same name.
    """
    return sha256(f"{title}\n{text}".encode()).digest()[:DIGEST_BYTES]


def background(sample: Vectors, vector: Vector, memories: int) -> Background | None:
    """How a question's vector compares with a space of this many memories; None if none has a vector. A sample that is
    not full holds every vector.
    """
    if not len(sample):
        return None
    scores = rounded(products(sample, vector)).tolist()
    return Background.of(scores, len(sample) if len(sample) < SAMPLE else memories)


class Sampled(Protocol):
    @property
    def vectors(self) -> Vectors: ...


S = TypeVar("S", bound=Sampled)


class SampleCache(Generic[S]):
    """The samples of the spaces that were asked last, by space and generation. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: OrderedDict[tuple[int, int], S] = OrderedDict()

    def get(self, key: tuple[int, int]) -> S | None:
        return self._samples.get(key)

    def keep(self, key: tuple[int, int], sample: S) -> None:
        with self._lock:
            self._samples[key] = sample
            self._samples.move_to_end(key)
            held = sum(one.vectors.nbytes for one in self._samples.values())
            while held > SAMPLES_MEMORY and len(self._samples) > 1:
                _, dropped = self._samples.popitem(last=False)
                held -= dropped.vectors.nbytes
