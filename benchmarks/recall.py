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
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np
from rich.console import Console
from rich.table import Table

from recollect import AsyncRecollect, AsyncSpace, Draft, Filter
from recollect.embedders import make_embedder
from recollect.embedders.disk import DiskCachedEmbedder
from recollect.evaluation.datasets import Dataset, load
from recollect.evaluation.metrics import percentile
from recollect.indexes.usearch import CONNECTIVITY, EXPANSION_ADD, EXPANSIONS, Manifest
from recollect.ports import Embedder, Term, WordSearch
from recollect.settings import cache_folder
from recollect.stores.sqlite.rows import space_number
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite.vector_views import LIMITS
from recollect.stores.sqlite.word_scores import BUDGET, Counts, Frequencies, choose
from recollect.text.query import parse_query

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

SETS = Path(__file__).parents[2] / "shared" / "data"
SPACE = "bench"
FIRST = 1_000
"""Memories in the store when it is opened for the first time: opening must not take longer with all of them."""
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
        vectors=mixtures(await embedder.embed(some, space=SPACE), size, draw),
        questions=[Question(*pair) for pair in zip(asked, await embedder.embed(asked, space=SPACE), strict=True)],
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


def spread(call: Callable[[Question], object], questions: Sequence[Question]) -> Spread:
    times = []
    for question in questions:
        started = perf_counter()
        call(question)
        times.append(perf_counter() - started)
    return Spread.of(times)


@dataclass(frozen=True, slots=True)
class Filled:
    """How the store was filled: memories a second, seconds to link them, milliseconds to open it."""

    per_second: float
    linking: float
    opened_small: float
    opened_full: float


async def fill(path: Path, material: Material) -> Filled:
    """First a few memories, then the rest, and after each the time to open the store."""
    drafts = material.drafts()
    loading = linking = 0.0
    opened = []
    for part in (islice(drafts, FIRST), drafts):
        async with memory(path) as recollect:
            loading += await seconds(recollect.space(SPACE).remember_many(part))
            linking += await seconds(recollect.space(SPACE).settle())
        again = memory(path)
        opened.append(1000 * await seconds(again.__aenter__()))
        await again.close()
    return Filled(len(material.texts) / loading, linking, *opened)


def memory(path: Path) -> AsyncRecollect:
    return AsyncRecollect(f"sqlite:///{path}", embedder="local")


async def index_built(path: Path, space: AsyncSpace, material: Material) -> None:
    """Wait until the vector index that is made in the background holds all but a tail, if there is to be one."""
    size = len(material.texts)
    while size > LIMITS.exact_rows:
        await space.recall(material.questions[0].text, vector=material.questions[0].vector)
        if any(m.graph and size - m.count <= LIMITS.tail_rows for m in manifests(path)):
            break
        await asyncio.sleep(1)


def manifests(path: Path) -> list[Manifest]:
    """What the vector indexes beside a store say of themselves."""
    files = path.with_name(f"{path.name}.vectors").glob("*.json")
    return [found for file in files if (found := Manifest.read(file.parent, file.stem))]


async def time_recall(space: AsyncSpace, questions: Sequence[Question], width: str = "no filter") -> tuple[Spread, int]:
    """What a recall takes with the question's vector given, and how many answers lacked a lane."""
    times, degraded = [], 0
    for question in questions:
        started = perf_counter()
        recall = await space.recall(question.text, vector=question.vector, tags=tags_of(width))
        times.append(perf_counter() - started)
        degraded += recall.degraded
    return Spread.of(times), degraded


def time_bare_usearch(path: Path, material: Material) -> Spread:
    """The same vectors in an index of the same making, searched with the effort that the store's own index found it
    needs for these vectors.
    """
    from usearch.index import Index  # after onnxruntime: some versions of the two crash in the other order

    index = Index(
        ndim=material.vectors.shape[1],
        metric="ip",
        dtype="i8",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=max([EXPANSIONS[0], *(m.expansion for m in manifests(path))]),
    )
    index.add(np.arange(len(material.vectors), dtype=np.uint64), material.vectors)
    return spread(lambda question: index.search(question.vector, CANDIDATES, threads=1), material.questions)


def time_bare_fts5(path: Path, questions: Sequence[Question], budget: int) -> Spread:
    """The terms that the keyword leg selects within a budget as one OR query on the same FTS5 table, by its own
    bm25().
    """
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        space = space_number(db, SPACE) or 0
        counts = Frequencies(db, Counts())

        def matching(question: Question) -> str:
            asked = parse_query(question.text)
            terms = tuple(Term(term.term, term.weight) for term in asked.terms)
            parts, _ = choose(counts, space, WordSearch(question.text, terms, asked.phrases), budget)
            return " OR ".join(part.expression for part in parts) or '""'

        expressions = {question.text: matching(question) for question in questions}
        sql = f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT {CANDIDATES}"
        return spread(lambda question: db.execute(sql, (expressions[question.text],)).fetchall(), questions)


class Width(NamedTuple):
    """A filter's width, the recall's milliseconds under it, and the share of the exact nearest ten that it found."""

    width: str
    recall: Spread
    found: float


async def measure_widths(path: Path, space: AsyncSpace, material: Material) -> list[Width]:
    store = SqliteStore(path)
    await store.open()
    try:
        return [
            Width(
                width,
                (await time_recall(space, material.questions, width))[0],
                await share_found(store, material, width),
            )
            for width in WIDTHS
        ]
    finally:
        await store.close()


async def share_found(store: SqliteStore, material: Material, width: str) -> float:
    """What the vector leg finds of the nearest ten that pass the filter, by comparing with all of them."""
    nth = WIDTHS[width]
    where = Filter(tags=tags_of(width))
    passing = material.vectors[::nth]
    found = []
    for question in material.questions[WARM_UP:]:
        hits = (await store.search_vectors(SPACE, question.vector, where, limit=CANDIDATES)).hits
        scores = passing @ question.vector
        wanted = min(NEAREST, len(scores))
        nearest = {name_of(nth * int(n)) for n in np.argpartition(-scores, wanted - 1)[:wanted]}
        found.append(len(nearest.intersection(hit.id for hit in hits[:NEAREST])) / wanted)
    return float(np.mean(found))


def print_speed(console: Console, size: int, filled: Filled, spreads: Mapping[str, Spread], degraded: int) -> None:
    slower = max(spreads["usearch alone"].p50, spreads["FTS5 alone"].p50)
    speed = Table("", "p50 ms", "p95 ms", "x slower bare leg", "goal", title=f"recall at {size:,} memories")
    for name, one in spreads.items():
        goal = "<= 2 x, aim 4 ms" if name == "recall" else ""
        speed.add_row(name, f"{one.p50:.2f}", f"{one.p95:.2f}", f"{one.p50 / slower:.2f}", goal)
    console.print(speed, f"degraded answers: {degraded}")
    store = Table("", "measured", "goal", title="store")
    store.add_row("ingest, vectors given", f"{filled.per_second:,.0f} / s", ">= 3,000 / s, aim 10,000")
    store.add_row("links afterwards", f"{filled.linking:.1f} s", "")
    store.add_row(f"open, {min(FIRST, size):,} memories", f"{filled.opened_small:.1f} ms", "")
    store.add_row(f"open, {size:,} memories", f"{filled.opened_full:.1f} ms", "the same")
    console.print(store)


def print_widths(console: Console, widths: Sequence[Width]) -> None:
    table = Table("filter passes", "recall p50 ms", "recall p95 ms", "vector recall@10", "goal", title="filters")
    for one in widths:
        table.add_row(one.width, f"{one.recall.p50:.2f}", f"{one.recall.p95:.2f}", f"{one.found:.4f}", ">= 0.99")
    console.print(table)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=100_000, help="memories in the store")
    parser.add_argument("--questions", type=int, default=200, help="questions asked of each")
    parser.add_argument(
        "--data", type=Path, default=SETS, help="folder of judged sets to take texts and questions from"
    )
    options = parser.parse_args()
    console = Console()
    embedder = DiskCachedEmbedder(make_embedder("local"), cache_folder() / "eval")
    material = await make_material(read_sets(options.data), options.size, options.questions, embedder)
    await embedder.close()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        path = Path(folder) / "bench.db"
        filled = await fill(path, material)
        async with memory(path) as recollect:
            space = recollect.space(SPACE)
            await index_built(path, space, material)
            spreads = {
                "usearch alone": time_bare_usearch(path, material),
                "FTS5 alone": time_bare_fts5(path, material.questions, BUDGET),
                "FTS5 alone, no term dropped": time_bare_fts5(path, material.questions, sys.maxsize - 1),
            }
            spreads["recall"], degraded = await time_recall(space, material.questions)
            print_speed(console, options.size, filled, spreads, degraded)
            print_widths(console, await measure_widths(path, space, material))


if __name__ == "__main__":
    asyncio.run(main())
