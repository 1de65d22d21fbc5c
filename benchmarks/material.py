"""What the benchmarks remember and ask, and how they count time.

The texts are real: documents of judged sets, spliced in pairs until there are enough. The vectors are mixtures of
the packaged model's, so that they lie where real ones do.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect import Draft, Filter
from recollect.evaluation.datasets import Dataset, load
from recollect.evaluation.metrics import percentile
from recollect.ports import Embedder, VectorIndex

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

SETS = Path(__file__).parents[2] / "shared" / "data"
SPACE = "bench"
WARM_UP = 20
"""Questions that are asked first and not counted."""
EMBEDDED = 2_000
"""Documents that the model embeds; every vector is mixed from theirs."""
EMBEDDED_CHARACTERS = 400
CANDIDATES = 100
"""What each lane of `balanced` is asked for, and so each bare leg."""
NEAREST = 10
WIDTHS = {"no filter": 1, "100 %": 1, "10 %": 10, "1 %": 100, "0.1 %": 1_000}
"""Filters by tag, named by what they let through: every n-th memory carries the tag."""


class Question(NamedTuple):
    text: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class Material:
    """What is remembered and asked."""

    texts: Sequence[str]
    vectors: Vectors
    questions: Sequence[Question]

    def drafts(self) -> Iterator[Draft]:
        for number, (text, vector) in enumerate(zip(self.texts, self.vectors, strict=True)):
            tags = tuple(tag for width, nth in WIDTHS.items() if number % nth == 0 for tag in tags_of(width))
            yield Draft(text, id=name_of(number), tags=tags, vector=vector)


def tags_of(width: str) -> tuple[str, ...]:
    return () if width == "no filter" else (width,)


def name_of(number: int) -> str:
    return f"{number:08d}"


def read_sets(folder: Path) -> list[Dataset]:
    sets = [load(path.parent) for path in sorted(folder.glob("*/corpus.jsonl"))]
    if not sets:
        sys.exit(f"{folder} holds no judged sets to take texts from: name a folder that does with --data")
    return sets


async def make_material(sets: Sequence[Dataset], size: int, questions: int, embedder: Embedder) -> Material:
    draw = np.random.default_rng(0)
    documents = [document.text for one in sets for document in one.documents]
    asked = [question.text for one in sets for question in one.queries]
    asked = [asked[n] for n in draw.permutation(len(asked))[: questions + WARM_UP]]
    some = [documents[n][:EMBEDDED_CHARACTERS] for n in draw.permutation(len(documents))[:EMBEDDED]]
    pairs = draw.integers(len(documents), size=(size, 2))
    return Material(
        texts=[splice(documents[one], documents[other], number) for number, (one, other) in enumerate(pairs)],
        vectors=mixtures(await embedder.embed(some, space=SPACE, role="document"), size, draw),
        questions=[
            Question(*pair) for pair in zip(asked, await embedder.embed(asked, space=SPACE, role="query"), strict=True)
        ],
    )


def splice(one: str, other: str, number: int) -> str:
    """The first half of one document, the second half of another, and a word of its own: none is a copy."""
    head, tail = one.split(), other.split()
    return " ".join([*head[: (len(head) + 1) // 2], *tail[len(tail) // 2 :], f"no{number}"])


def mixtures(real: Vectors, size: int, draw: np.random.Generator) -> Vectors:
    """Vectors between real ones: three of them in changing shares, and a little noise, each of length 1."""
    shares = draw.dirichlet((4.0, 2.0, 1.0), size=size).astype(np.float32)
    mixed = draw.standard_normal((size, real.shape[1]), dtype=np.float32) * np.float32(0.01)
    for column in range(shares.shape[1]):
        mixed += shares[:, column, None] * real[draw.integers(len(real), size=size)]
    unit: Vectors = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return unit


class Spread(NamedTuple):
    """Milliseconds that a question takes."""

    p50: float
    p95: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """Of every question asked once, the first ones not counted."""
        counted = seconds[WARM_UP:]
        return cls(1000 * (percentile(counted, 0.50) or 0.0), 1000 * (percentile(counted, 0.95) or 0.0))


async def seconds(work: Awaitable[object]) -> float:
    started = perf_counter()
    await work
    return perf_counter() - started


async def share_found(
    index: VectorIndex, vectors: Vectors, questions: Sequence[Question], where: Filter, nth: int = 1, space: str = SPACE
) -> float:
    """What an index finds of the nearest ten that pass a filter, which are among every n-th of a space's vectors, by
    comparing with all of these.
    """
    passing = vectors[::nth]
    found = []
    for question in questions:
        hits = (await index.search_vectors(space, question.vector, where, limit=CANDIDATES)).hits
        scores = passing @ question.vector
        wanted = min(NEAREST, len(scores))
        nearest = {name_of(nth * int(n)) for n in np.argpartition(-scores, wanted - 1)[:wanted]}
        found.append(len(nearest.intersection(hit.id for hit in hits[:NEAREST])) / wanted)
    return float(np.mean(found))
