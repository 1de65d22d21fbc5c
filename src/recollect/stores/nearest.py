"""What the nearest vectors of a space are worth, whichever database holds them: pure functions for all stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from recollect.indexes.exact import SAMPLE, Candidates, products
from recollect.types import Background, Scored

if TYPE_CHECKING:
    import numpy.typing as npt

    from recollect.indexes.exact import Rows
    from recollect.types import Vector, Vectors

DIGITS = 6
"""Of a cosine: what follows depends on the order in which float32 products are added up."""


def cosines(found: Candidates) -> npt.NDArray[np.float64]:
    """The scores of candidates, as far as they are exact."""
    return np.clip(found.scores.astype(np.float64), -1.0, 1.0).round(DIGITS)


def others(id: str, found: Candidates, names: Mapping[int, str], limit: int) -> list[Scored]:
    """The best candidates but the memory itself, best first, ties by id. `names` are the ids of rows."""
    hits = (
        Scored(names[row], score)
        for row, score in zip(found.rows.tolist(), cosines(found).tolist(), strict=True)
        if row in names and names[row] != id
    )
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]


def spread(count: int) -> Rows:
    """Which of `count` vectors stand for all of them: so many that it makes no difference, evenly spread."""
    return np.linspace(0, count - 1, min(SAMPLE, count), dtype=np.int64)


def background(sample: Vectors, vector: Vector, count: int) -> Background:
    """How a question's vector compares with the `count` vectors that the sample stands for."""
    scores = products(sample, vector)
    return Background(float(scores.mean()), float(scores.std()), count)
