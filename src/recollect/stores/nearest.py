"""What cosines are measured against: a sample of each space. Pure functions for all databases.

The sample is the vectors of the texts with the lowest digests. It depends only on what the space holds, so every store
takes the same one, whatever the order of storing.
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
"""Decimals of a cosine: later ones depend on the order of float32 additions."""
SAMPLE: Final = 256
"""Vectors in a sample: the mean and deviation of their cosines rank as well as those of all vectors (nDCG@10 over six
sets: 0.6736 against 0.6738)."""
SAMPLES_MEMORY: Final = 64 << 20
"""Bytes of samples kept, of the spaces searched last."""
DIGEST_BYTES: Final = 8


def rounded(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Cosines, rounded to the digits that are exact."""
    return np.clip(scores.astype(np.float64), -1.0, 1.0).round(DIGITS)


def cosines(found: Candidates) -> npt.NDArray[np.float64]:
    return rounded(found.scores)


LOOKED_AT: Final = 8
"""Extra rows compared to find a memory's nearest: the memory itself, and some ties."""


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
