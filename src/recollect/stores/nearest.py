"""What the nearest vectors of a space are worth, whichever database holds them: pure functions for all stores.

A score is measured against a sample of its space: the vectors of the texts with the lowest digests. Which those are
depends on what the space holds and on nothing else, so that every store takes the same sample, in whatever order the
memories came, and again after a restart.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import numpy as np

from recollect.stores.exact import Candidates, Neighbours, products
from recollect.types import Background, Scored

if TYPE_CHECKING:
    import numpy.typing as npt

    from recollect.types import Vector, Vectors

DIGITS: Final = 6
"""Of a cosine: what follows depends on the order in which float32 products are added up."""
SAMPLE: Final = 256
"""Vectors that stand for a whole space: the mean and deviation of their cosines are as good for ranking as those of all
(nDCG@10 over six sets: 0.6736 against 0.6738)."""
SAMPLES_MEMORY: Final = 64 << 20
"""Bytes of samples that are kept, those of the spaces asked last."""
DIGEST_BYTES: Final = 8


def rounded(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Cosines, as far as they are exact."""
    return np.clip(scores.astype(np.float64), -1.0, 1.0).round(DIGITS)


def cosines(found: Candidates) -> npt.NDArray[np.float64]:
    """The scores of candidates, as far as they are exact."""
    return rounded(found.scores)


LOOKED_AT: Final = 8
"""Rows that are compared closely to find the nearest of a memory: itself, its nearest, and some that tie with them."""


def others(id: str, found: Neighbours, names: Mapping[int, str], limit: int) -> list[Scored]:
    """The best candidates but the memory itself, best first, with those that tie with the last; and then those that
    take it. `names` are the ids of rows.
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
    """What decides whether a vector is in its space's sample. Made of what the vector is made of, and of nothing that
    depends on when or in what order memories were stored. Postgres has a function of the same name.
    """
    return sha256(f"{title}\n{text}".encode()).digest()[:DIGEST_BYTES]


def background(sample: Vectors, vector: Vector, memories: int) -> Background | None:
    """How a question's vector compares with those of a space that holds so many memories; None if none has a vector.
    A sample that is not full holds every vector there is.
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
