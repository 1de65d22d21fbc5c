"""Recall and latency of the vector leg beside bare usearch, in one run, at several widths of filter.

    python benchmarks/vectors.py --size 100000
    python benchmarks/vectors.py --vectors embeddings.npy --queries questions.npy

Without files the vectors are made up: a thousand clusters in 64 dimensions, turned into 384. `--shapeless` takes
Gaussian noise instead, the worst case for a graph. Nothing is asserted; the goals are recall >= 0.99 at each width and
an unfiltered median of at most 1.3 times bare usearch.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import apsw
import numpy as np
from usearch.index import Index

from recollect.stores.named_sql import read
from recollect.stores.nearest import text_digest
from recollect.stores.sqlite.usearch import CONNECTIVITY, EXPANSION_ADD, EXPANSIONS
from recollect.stores.sqlite.vectors import VectorRow, VectorSearch, put
from recollect.types import Filter, Scored

if TYPE_CHECKING:
    import numpy.typing as npt

    from recollect.types import Vector, Vectors

WIDTHS = {"100 %": 1, "10 %": 10, "1 %": 100, "0.1 %": 1000}
TIE = 1e-5  # scores that differ by less are equal, so either of two near-copies counts as found


def main() -> None:
    options = _options()
    vectors, questions = _given(options) if options.vectors else _made_up(options)
    questions = questions[: options.questions]
    print(
        f"{len(vectors):,} vectors of {vectors.shape[1]} dimensions, {len(questions)} questions, limit {options.limit}"
    )
    bare = {kind: _bare(vectors, questions, kind, options.limit) for kind in ("f32", "i8")}
    with tempfile.TemporaryDirectory() as folder:
        _measure(Path(folder), vectors, questions, options.limit, bare)


def _measure(folder: Path, vectors: Vectors, questions: Vectors, limit: int, bare: dict[str, float]) -> None:
    db = _filled(folder / "bench.db", vectors)
    search = VectorSearch(folder / "bench.db.index")

    def ask(vector: Vector, where: Filter = Filter()) -> list[Scored]:  # noqa: B008 (a Filter is frozen)
        return list(search.search(db, 1, 1, vector, where, limit).hits)

    print(f"first search, all read from the file: {_timed(ask, questions[:1]):.0f} ms")
    print(f"next, while the index is built: {_timed(ask, questions[:20]):.2f} ms")
    start = perf_counter()
    search.settle()
    files = sum(path.stat().st_size for path in (folder / "bench.db.index").iterdir())
    print(f"index ready after another {perf_counter() - start:.1f} s, {files / 1e6:.0f} MB")
    search.close()
    search = VectorSearch(folder / "bench.db.index")
    print(f"first search of a new process, index there: {_timed(ask, questions[:1]):.1f} ms")
    for width, step in WIDTHS.items():
        where = Filter(tags=(f"every {step}",)) if step > 1 else Filter()
        ask(questions[0], where)
        recall = np.mean([_recall(ask(vector, where), vectors[::step] @ vector) for vector in questions])
        median = _timed(lambda vector, where=where: ask(vector, where), questions)  # type: ignore[misc]
        ratios = ", ".join(f"{median / ms:.2f} x bare {kind}" for kind, ms in bare.items())
        print(f"{width:>6}: recall@10 {recall:.4f}, median {median:.2f} ms ({ratios})")
    search.close()
    db.close()


def _recall(hits: Sequence[Scored], scores: Vector) -> float:
    """The share of the ten best that the first ten hits hold."""
    wanted = min(10, len(scores))
    bar = np.partition(scores, -wanted)[-wanted] - TIE
    return float(np.mean([*(hit.score >= bar for hit in hits[:wanted]), *[False] * (wanted - len(hits))]))


def _bare(vectors: Vectors, questions: Vectors, kind: str, limit: int) -> float:
    """Median milliseconds of usearch alone, with the same graph and the same expansion."""
    expansion = max(EXPANSIONS[0], 4 * limit)
    index = Index(
        ndim=vectors.shape[1],
        metric="ip",
        dtype=kind,
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=expansion,
    )
    start = perf_counter()
    index.add(np.arange(len(vectors), dtype=np.uint64), vectors, threads=2)
    built = perf_counter() - start
    median = _timed(lambda vector: index.search(vector, limit, threads=1), questions)
    print(f"bare usearch, {kind}: median {median:.2f} ms at expansion {expansion}, built in {built:.0f} s")
    return median


def _timed(ask: Callable[[Vector], object], questions: Vectors) -> float:
    """Median milliseconds."""
    times = []
    for vector in questions:
        start = perf_counter()
        ask(vector)
        times.append(perf_counter() - start)
    return float(np.median(times)) * 1000


def _filled(path: Path, vectors: Vectors) -> apsw.Connection:
    """A store file with as many bare memories, every tenth, hundredth and thousandth tagged."""
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    db.pragma("mmap_size", 1 << 30)
    db.execute(read("recollect.stores.sqlite.store", "schema.sql"))
    with db:
        db.execute("INSERT OR REPLACE INTO clock VALUES (1, 1)")
        db.execute("INSERT INTO spaces (number, name) VALUES (1, 'bench')")
        db.execute("INSERT INTO generations VALUES (1, 'bench', ?)", (vectors.shape[1],))
        db.executemany(
            "INSERT INTO memories (row, space, id, hash, namespace, kind, text, title, tags, source, metadata, "
            "created_at, updated_at, embedding) "
            "VALUES (?1, 1, printf('%036d', ?1), randomblob(32), 'default', 'fact', ?2, "
            "'', '[]', '', '{}', 0, 0, 'ready')",
            ((row, f"memory {row} " * 20) for row in range(1, len(vectors) + 1)),
        )
        for step in WIDTHS.values():
            rows = range(1, len(vectors) + 1, step)
            db.executemany("INSERT INTO tags VALUES (1, ?, ?)", ((f"every {step}", row) for row in rows))
        put(
            db,
            1,
            1,
            1,
            [VectorRow(row, text_digest("", str(row)), vector) for row, vector in enumerate(vectors, start=1)],
        )
    return db


def _made_up(options: argparse.Namespace) -> tuple[Vectors, Vectors]:
    random = np.random.default_rng(7)
    total = options.size + options.questions
    if options.shapeless:
        found: npt.NDArray[np.float64] = random.normal(size=(total, 384))
    else:
        centres = random.normal(size=(1000, 64))
        found = centres[random.integers(0, 1000, total)] + random.normal(0, 0.7, (total, 64))
        found = found @ random.normal(size=(64, 384))
    unit = _unit(found)
    return unit[: options.size], unit[options.size :]


def _given(options: argparse.Namespace) -> tuple[Vectors, Vectors]:
    """The given vectors, and near-copies of them until there are enough."""
    random = np.random.default_rng(7)
    known = _unit(np.load(options.vectors))
    copies = known[random.integers(0, len(known), max(0, options.size - len(known)))]
    noise = random.normal(0, 0.35 / np.sqrt(known.shape[1]), copies.shape)
    found = np.concatenate((known, _unit(copies + noise)))[: options.size]
    return found[random.permutation(len(found))], _unit(np.load(options.queries))


def _unit(vectors: npt.NDArray[np.floating]) -> Vectors:
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Recall and latency of the vector leg beside bare usearch.")
    parser.add_argument("--size", type=int, default=100_000, help="how many vectors")
    parser.add_argument("--questions", type=int, default=200, help="how many searches per measurement")
    parser.add_argument("--limit", type=int, default=100, help="hits asked for; the engine's fanout is 100")
    parser.add_argument("--vectors", type=Path, help="a .npy file of embeddings")
    parser.add_argument("--queries", type=Path, help="a .npy file of the questions' embeddings")
    parser.add_argument("--shapeless", action="store_true", help="Gaussian noise, the worst case")
    options = parser.parse_args()
    if bool(options.vectors) != bool(options.queries):
        parser.error("--vectors and --queries go together")
    return options


if __name__ == "__main__":
    main()
