"""How fast a recall is at some size, beside the two bare legs that it is made of, measured in one run.

    python benchmarks/recall.py --size 100000 --questions 200

What is remembered and asked is in material.py. Nothing is asserted: the goals are printed beside.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np
from material import (
    CANDIDATES,
    SETS,
    SPACE,
    WARM_UP,
    WIDTHS,
    Material,
    Question,
    Spread,
    make_material,
    read_sets,
    seconds,
    share_found,
    tags_of,
)
from rich.console import Console
from rich.table import Table

from recollect import RECIPES, AsyncRecollect, AsyncSpace, Filter
from recollect.embedders import make_embedder
from recollect.embedders.disk import DiskCachedEmbedder
from recollect.legs import LegSearch
from recollect.legs.graph import GraphLeg
from recollect.legs.keyword import KeywordLeg
from recollect.legs.question import Question as Asked
from recollect.legs.vector import VectorLeg
from recollect.ports import Term, WordSearch
from recollect.ranking.fusion import fuse
from recollect.settings import cache_folder
from recollect.stores.bm25 import BUDGET
from recollect.stores.sqlite.rows import space_number
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite.usearch import CONNECTIVITY, EXPANSION_ADD, EXPANSIONS, Manifest
from recollect.stores.sqlite.vector_views import LIMITS
from recollect.stores.sqlite.word_scores import Counts, Frequencies, choose
from recollect.text.query import parse_query

if TYPE_CHECKING:
    from recollect.types import Edge, Vector

FIRST = 1_000
"""Memories in the store when it is opened for the first time: opening must not take longer with all of them."""


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


async def time_by_hand(path: Path, questions: Sequence[Question]) -> Spread:
    """The same legs, fusion and read of rows, called one after the other without an engine around them: no deadlines,
    no guards, no near-copies, no reports. What is left to a recall beyond this is what those cost.
    """
    how, now = RECIPES["balanced"], Filter(now=datetime.now(UTC))
    times = []
    store = SqliteStore(path)
    await store.open()
    bare = SimpleNamespace(vectors=store, words=store, links=store, rows=store, edges=no_edges)
    legs: dict[str, LegSearch] = {"vector": VectorLeg(bare), "keyword": KeywordLeg(bare), "graph": GraphLeg(bare)}
    try:
        for one in questions:
            started = perf_counter()
            asked = Asked(SPACE, one.text, now, CANDIDATES, unasked, store, store, given=one.vector)
            rankings = await asyncio.gather(*(legs[lane.leg].search(asked, lane) for lane in how.lanes))
            fused = fuse(how.fusion, list(zip(how.lanes, rankings, strict=True)))
            await store.get(SPACE, [hit.id for hit in fused[: how.limit.default]])
            times.append(perf_counter() - started)
    finally:
        await store.close()
    return Spread.of(times)


async def no_edges(space: str, ids: Sequence[str]) -> Sequence[Edge]:
    raise AssertionError(f"nobody is a guest of {space} here, to see the links of {len(ids)} memories")


async def unasked() -> Vector:
    raise AssertionError("every question here brings its vector")


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
        counts = Frequencies(db, space, Counts())

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
                await share_found(
                    store, material.vectors, material.questions[WARM_UP:], Filter(tags=tags_of(width)), nth
                ),
            )
            for width, nth in WIDTHS.items()
        ]
    finally:
        await store.close()


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
            spreads["legs, fusion and rows by hand"] = await time_by_hand(path, material.questions)
            spreads["recall"], degraded = await time_recall(space, material.questions)
            spreads["recall, the same asked again"], _ = await time_recall(space, material.questions)
            print_speed(console, options.size, filled, spreads, degraded)
            print_widths(console, await measure_widths(path, space, material))


if __name__ == "__main__":
    asyncio.run(main())
