"""How fast a recall is at some size, beside the two bare legs that it is made of, measured in one run.

    python benchmarks/recall.py --size 100000 --questions 200

The texts are real: documents of judged sets, spliced in pairs until there are enough. The vectors are mixtures of
the packaged model's, so that they lie where real ones do. Nothing is asserted: the goals are printed beside.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np
from rich.console import Console
from rich.table import Table
from usearch.index import Index

from recollect import AsyncRecollect, Draft
from recollect.embedders import make_embedder
from recollect.embedders.disk import DiskCachedEmbedder
from recollect.evaluation.datasets import load
from recollect.evaluation.metrics import percentile
from recollect.ports import Embedder, Term, WordSearch
from recollect.settings import cache_folder
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite.word_scores import BUDGET, Frequencies, choose, weigh
from recollect.text.query import parse_query
from recollect.types import Filter

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

SETS = Path(__file__).parents[2] / "shared" / "data"
SPACE = "bench"
FIRST = 1_000
"""Memories in the store when it is opened for the first time: opening must not take longer with all of them."""
WARM_UP = 20
EMBEDDED = 2_000
"""Documents that the model embeds; every vector is mixed from theirs."""
EMBEDDED_CHARACTERS = 400
CANDIDATES = 100
"""What each lane of `balanced` is asked for, and so each bare leg."""
WIDTHS = {"100 %": 1, "10 %": 10, "1 %": 100, "0.1 %": 1_000}
"""Filters, by what they let through: every n-th memory carries the tag."""


@dataclass(frozen=True, slots=True)
class Material:
    """What is remembered and asked. The first questions only warm up, so that none is asked twice."""

    texts: Sequence[str]
    vectors: Vectors
    questions: Sequence[str]
    question_vectors: Vectors

    def drafts(self) -> Iterator[Draft]:
        for number, (text, vector) in enumerate(zip(self.texts, self.vectors, strict=True)):
            tags = tuple(width for width, nth in WIDTHS.items() if number % nth == 0)
            yield Draft(text, id=name_of(number), tags=tags, vector=vector)

    def asked(self) -> list[tuple[str, Vector]]:
        return list(zip(self.questions, self.question_vectors, strict=True))


def name_of(number: int) -> str:
    return f"{number:08d}"


# Making the material


async def make_material(folder: Path, size: int, questions: int, embedder: Embedder) -> Material:
    draw = np.random.default_rng(0)
    sets = [load(path.parent) for path in sorted(folder.glob("*/corpus.jsonl"))]
    if not sets:
        sys.exit(f"{folder} holds no judged sets to take texts from: name a folder that does with --data")
    documents = [document.text for one in sets for document in one.documents]
    asked = [question.text for one in sets for question in one.queries]
    asked = [asked[n] for n in draw.permutation(len(asked))[: questions + WARM_UP]]
    pairs = draw.integers(len(documents), size=(size, 2))
    pairs[: len(documents), 0] = pairs[: len(documents), 1] = draw.permutation(len(documents))[:size]
    some = [documents[n][:EMBEDDED_CHARACTERS] for n in draw.permutation(len(documents))[:EMBEDDED]]
    real = await embedder.embed(some, space=SPACE)
    return Material(
        texts=[splice(documents[one], documents[other], number) for number, (one, other) in enumerate(pairs)],
        vectors=mixtures(real, size, draw),
        questions=asked,
        question_vectors=await embedder.embed(asked, space=SPACE),
    )


def splice(one: str, other: str, number: int) -> str:
    """The first half of one document and the second half of another: real words at their real frequencies."""
    head, tail = one.split(), other.split()
    return " ".join([*head[: (len(head) + 1) // 2], *tail[(len(tail) + 1) // 2 :], f"no{number}"])


def mixtures(real: Vectors, size: int, draw: np.random.Generator) -> Vectors:
    """Vectors between real ones: three of them in changing shares, and a little noise, each of length 1."""
    shares = draw.dirichlet((4.0, 2.0, 1.0), size=size).astype(np.float32)
    mixed = draw.standard_normal((size, real.shape[1]), dtype=np.float32) * np.float32(0.01)
    for column in range(shares.shape[1]):
        mixed += shares[:, column, None] * real[draw.integers(len(real), size=size)]
    unit: Vectors = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return unit


# Measuring


class Spread(NamedTuple):
    """Milliseconds of a measured call."""

    p50: float
    p95: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """Of each question once; the first ones warm up what there is to warm."""
        counted = seconds[WARM_UP:]
        return cls(1000 * (percentile(counted, 0.50) or 0.0), 1000 * (percentile(counted, 0.95) or 0.0))


class Filled(NamedTuple):
    """How the store was filled: memories a second, seconds to link and index them, milliseconds to open it."""

    per_second: float
    linking: float
    indexing: float
    opened_small: float
    opened_full: float


async def fill(path: Path, material: Material) -> Filled:
    drafts = material.drafts()
    loading = linking = 0.0
    opened = []
    for part in (islice(drafts, FIRST), drafts):
        async with AsyncRecollect(f"sqlite:///{path}", embedder="local") as recollect:
            space = recollect.space(SPACE)
            loading += await seconds(space.remember_many(part))
            linking += await seconds(space.settle())
            indexing = await seconds(indexed(path, len(material.texts)))
        opened.append(await opening(path))
    return Filled(len(material.texts) / loading, linking, indexing, *opened)


async def opening(path: Path) -> float:
    started = perf_counter()
    async with AsyncRecollect(f"sqlite:///{path}", embedder="local"):
        return (perf_counter() - started) * 1000


async def indexed(path: Path, size: int) -> None:
    """Wait until the vector index that is made in the background holds nearly all, if the store is to have one."""
