"""The vector leg's engine over a real file: exact and approximate search, caches that catch up, files that break."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np
import pytest
from usearch.index import Index

from recollect.stores.named_sql import read
from recollect.stores.nearest import SAMPLE, background, text_digest
from recollect.stores.sqlite.usearch import EXPANSIONS
from recollect.stores.sqlite.vector_views import Limits
from recollect.stores.sqlite.vectors import VectorRow, VectorSearch, put, remove
from recollect.types import Background, Filter, Scored

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

DIMENSIONS = 32
SPACE, GENERATION = 1, 1
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPEN = Filter(now=NOW)
SMALL = Limits(exact_rows=200, tail_rows=50, rest_seconds=0.0)
"""Two hundred rows are already many, so that a test soon has a base and a graph."""


def made_up(count: int, seed: int = 0, dimensions: int = DIMENSIONS) -> Vectors:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(20, dimensions))
    found = centres[random.integers(0, 20, count)] + random.normal(0, 0.5, (count, dimensions))
    return np.ascontiguousarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


class File:
    """A store file with bare memories: row n has the id "n" padded with zeros."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.index = path.with_name(f"{path.name}.index")
        fresh = not path.exists()
        self.db = apsw.Connection(str(path))
        self.db.pragma("journal_mode", "wal")
        if fresh:
            self.db.execute(read("recollect.stores.sqlite.store", "schema.sql"))
            self.db.execute("INSERT OR REPLACE INTO clock VALUES (1, 0)")
            self.db.execute("INSERT INTO spaces (number, name) VALUES (1, 'one'), (2, 'two')")
            self.db.execute(
                "INSERT INTO generations (number, model, dimensions) VALUES (1, 'a', ?1), (2, 'b', ?1)", (DIMENSIONS,)
            )

    def tick(self) -> int:
        seq: int = self.db.execute("UPDATE clock SET seq = seq + 1 RETURNING seq").get
        return seq

    def add(
        self, vectors: Vectors, *, space: int = SPACE, generation: int = GENERATION, kind: str = "fact"
    ) -> list[int]:
        with self.db:
            first = self.db.execute("SELECT coalesce(max(row), 0) + 1 FROM memories").get
            rows = list(range(first, first + len(vectors)))
            self.db.executemany(
                "INSERT INTO memories (row, space, id, hash, namespace, kind, text, title, tags, source, metadata, "
                "created_at, updated_at, embedding) "
                "VALUES (?, ?, ?, randomblob(32), 'default', ?, '', '', '[]', '', '{}', 0, 0, 'ready')",
                ((row, space, name(row), kind) for row in rows),
            )
            put(self.db, space, generation, self.tick(), vector_rows(rows, vectors))
        return rows

    def replace(self, rows: Sequence[int], vectors: Vectors) -> None:
        with self.db:
            put(self.db, SPACE, GENERATION, self.tick(), vector_rows(rows, vectors))

    def forget(self, rows: Sequence[int]) -> None:
        with self.db:
            remove(self.db, SPACE, self.tick(), rows)
            self.db.executemany("DELETE FROM memories WHERE row = ?", ((row,) for row in rows))

    def change(self, rows: Sequence[int], column: str, value: object) -> None:
        with self.db:
            self.tick()
            self.db.executemany(f"UPDATE memories SET {column} = ? WHERE row = ?", ((value, row) for row in rows))

    def search(
        self, search: VectorSearch, vector: Vector, where: Filter = OPEN, limit: int = 10, **key: int
    ) -> list[Scored]:
        space, generation = key.get("space", SPACE), key.get("generation", GENERATION)
        return list(search.search(self.db, space, generation, vector, where, limit).hits)

    def exact(self, vector: Vector, limit: int = 10, condition: str = "TRUE") -> list[Scored]:
        """The truth, from the rows."""
        found = self.db.execute(
            "SELECT m.id, v.vector FROM vectors AS v JOIN memories AS m USING (row) "
            f"WHERE v.space = {SPACE} AND v.generation = {GENERATION} AND {condition}"
        )
        hits = [Scored(id, float(np.frombuffer(blob, np.float32) @ vector)) for id, blob in found]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]


def name(row: int) -> str:
    return f"{row:06d}"


def vector_rows(rows: Sequence[int], vectors: Vectors) -> list[VectorRow]:
    """Each row's text is its name."""
    return [VectorRow(row, text_digest("", name(row)), vector) for row, vector in zip(rows, vectors, strict=True)]


def ids(hits: Sequence[Scored]) -> list[str]:
    return [hit.id for hit in hits]


def agree(found: Sequence[Scored], expected: Sequence[Scored]) -> bool:
    """The same scores in the same order; memories that tie within rounding may change places."""
    return len(found) == len(expected) and np.allclose([a.score for a in found], [b.score for b in expected], atol=2e-6)


def nearly(found: Sequence[Scored], expected: Sequence[Scored]) -> bool:
    """What a graph owes: a full answer in which at most one of the nearest is missing."""
    near = sum(hit.score >= expected[-1].score - 2e-6 for hit in found)
    return len(found) == len(expected) and near >= len(expected) - 1


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    opened = File(tmp_path / "memory.db")
    yield opened
    opened.db.close()


@pytest.fixture
def search(file: File) -> Iterator[VectorSearch]:
    opened = VectorSearch(file.index, SMALL)
    yield opened
    opened.close()


def with_base(file: File, search: VectorSearch, count: int = 1000) -> Vectors:
    """A space that is large enough for a base, and its base."""
    vectors = made_up(count)
    file.add(vectors)
    file.search(search, vectors[0])
    search.settle()
    assert manifest(file).exists()
    return vectors


def manifest(file: File) -> Path:
    return file.index / f"{SPACE}-{GENERATION}.json"


def test_a_small_space_is_compared_exactly(file: File, search: VectorSearch) -> None:
    """Below the bound every answer is the exact one, and no index file is made."""
    file.add(made_up(150))
    for question in made_up(20, seed=1):
        assert agree(file.search(search, question), file.exact(question))
    assert not file.index.exists()


def test_ef_search_is_what_the_graph_is_asked_for(
    file: File, search: VectorSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the search to usearch, as it is. Where all are compared it changes nothing."""
    file.add(made_up(100))
    question = made_up(1, seed=1)[0]
    exact = [search.search(file.db, SPACE, GENERATION, question, OPEN, 10, ef_search=ef) for ef in (None, 1, 200)]
    assert exact[0] == exact[1] == exact[2]
    with_base(file, search)
    asked: list[int] = []
    graph_search = Index.search

    def recorded(self: Index, vectors: Vectors, count: int, **how: Any) -> Any:
        asked.append(count)
        return graph_search(self, vectors, count, **how)

    file.search(search, question)
    monkeypatch.setattr(Index, "search", recorded)
    for ef_search in (None, 64, 200):
        search.search(file.db, SPACE, GENERATION, question, OPEN, 10, ef_search=ef_search)
    assert asked == [EXPANSIONS[0], 64, 200]


def test_an_empty_space_answers_with_nothing(file: File, search: VectorSearch) -> None:
    """No memories, no hits, no error."""
    assert file.search(search, made_up(1)[0]) == []


def test_the_background_is_that_of_the_living(file: File, search: VectorSearch) -> None:
    """Vectors that were replaced or forgotten since do not count."""
    vector = made_up(1)[0]
    file.add(np.repeat(vector[None], 100, axis=0))
    file.search(search, vector)
    file.forget(range(1, 50))
    file.replace(range(50, 101), np.repeat(-vector[None], 51, axis=0))
    background = search.search(file.db, SPACE, GENERATION, vector, OPEN, 10).background
    assert background is not None
    assert background.count == 51
    assert background.mean == pytest.approx(-1)
    assert background.deviation == pytest.approx(0, abs=1e-6)


def test_the_background_is_told_by_the_lowest_digests(file: File, search: VectorSearch) -> None:
    """At every moment by those that the space holds then: after more was written, replaced or forgotten, by another
    process too, and in a space that is too large to be held.
    """
    vectors, vector = made_up(6_000), made_up(1, seed=1)[0]
    known: dict[int, Vector] = {}

    def wanted() -> Background | None:
        lowest = sorted(known, key=lambda row: text_digest("", name(row)))[:SAMPLE]
        return background(np.array([known[row] for row in lowest]), vector, len(known))

    def told(by: VectorSearch) -> Background | None:
        return by.search(file.db, SPACE, GENERATION, vector, OPEN, 10).background

    with_file = VectorSearch(file.index, SMALL)
    for part in (slice(0, 100), slice(100, 255), slice(255, 258), slice(258, 259), slice(259, 900), slice(900, 6_000)):
        known |= zip(file.add(vectors[part]), vectors[part], strict=True)
        assert told(search) == told(with_file) == wanted()
    with_file.settle()
    lowest = sorted(known, key=lambda row: text_digest("", name(row)))
    file.replace(lowest[:2], -vectors[:2])
    known |= zip(lowest[:2], -vectors[:2], strict=True)
    assert told(search) == told(with_file) == wanted()
    for gone in (lowest[-3:], lowest[5:6], lowest[100:700], lowest[6:100]):
        file.forget(gone)
        known = {row: kept for row, kept in known.items() if row not in gone}
        assert told(search) == told(with_file) == wanted()
    assert told(VectorSearch(file.index, Limits(memory=100))) == wanted()
    with_file.close()


def test_scores_are_cosines_and_ties_go_by_id(file: File, search: VectorSearch) -> None:
    """Equal vectors score equally, within [-1, 1], and the smaller id comes first."""
    vector = made_up(1)[0]
    file.add(np.stack([vector, -vector, vector, vector]))
    assert file.search(search, vector) == [
        (name(1), 1.0),
        (name(3), 1.0),
        (name(4), 1.0),
        (name(2), -1.0),
    ]


def test_the_graph_agrees_with_exact_search(file: File, search: VectorSearch) -> None:
    """Above the bound the graph finds at least 99 % of the nearest ten, with the scores of exact search."""
    with_base(file, search, 2000)
    found = expected = 0
    for question in made_up(50, seed=1):
        hits, truth = file.search(search, question), file.exact(question)
        found += sum(hit.score >= truth[-1].score - 2e-6 for hit in hits)
        expected += len(truth)
    assert found >= 0.99 * expected


@pytest.mark.parametrize("every", [1, 2, 10, 100, 1000])
def test_every_width_of_filter_finds_the_nearest_that_pass(file: File, search: VectorSearch, every: int) -> None:
    """Whatever share of a large space passes a filter, the answer is full and holds the nearest that pass."""
    with_base(file, search, 2000)
    file.change(range(1, 2001, every), "kind", "wanted")
    where = replace(OPEN, kinds=("wanted",))
    found = expected = 0
    for question in made_up(20, seed=2):
        hits, truth = file.search(search, question, where), file.exact(question, condition="m.kind = 'wanted'")
        assert len(hits) == len(truth)
        found += sum(hit.score >= truth[-1].score - 2e-6 for hit in hits)
        expected += len(truth)
    assert found >= 0.99 * expected


def test_a_filter_that_passes_only_what_is_far_away_is_still_answered_in_full(file: File, search: VectorSearch) -> None:
    """Half of a space passes, but the farther half: the graph finds none of it near, and exact search answers."""
    vectors = with_base(file, search, 2000)
    question = vectors[0]
    far = (np.argsort(vectors @ question)[:1000] + 1).tolist()
    file.change(far, "kind", "far")
    hits = file.search(search, question, replace(OPEN, kinds=("far",)))
    assert agree(hits, file.exact(question, condition="m.kind = 'far'"))


@pytest.mark.parametrize("count", [150, 1000])
def test_superseded_memories_do_not_starve_the_answer(file: File, search: VectorSearch, count: int) -> None:
    """When nearly everything near is superseded, the answer holds what is not, in full."""
    vectors = made_up(count)
    file.add(vectors)
    file.search(search, vectors[0])
    search.settle()
    question = vectors[0]
    nearest = (np.argsort(-(vectors @ question))[: count - 20] + 1).tolist()
    file.change(nearest, "superseded_by", "another")
    hits = file.search(search, question)
    assert agree(hits, file.exact(question, condition="m.superseded_by IS NULL"))
    everything = file.search(search, question, replace(OPEN, include_superseded=True), limit=20)
    assert nearly(everything, file.exact(question, limit=20))


def test_what_expires_drops_out_though_nothing_is_written(file: File, search: VectorSearch) -> None:
    """A remembered filter does not bring back memories that expired since, and does not come up short."""
    vectors = made_up(100)
    file.add(vectors, kind="note")
    soon = NOW + timedelta(minutes=1)
    file.change(range(1, 81), "expires_at", int(soon.timestamp() * 1e6))
    where = replace(OPEN, kinds=("note",))
    question = vectors[0]
    assert agree(file.search(search, question, where), file.exact(question))
    after = file.search(search, question, replace(where, now=soon + timedelta(seconds=1)))
    assert agree(after, file.exact(question, condition="m.expires_at IS NULL"))
    assert agree(file.search(search, question, where), file.exact(question))


@pytest.mark.parametrize("count", [100, 1000])
def test_later_writes_are_seen_at_the_next_search(file: File, search: VectorSearch, count: int) -> None:
    """Rows added, replaced and removed after a cache or a base was made change the next answer."""
    vectors = made_up(count)
    file.add(vectors)
    file.search(search, vectors[0])
    search.settle()
    question = made_up(1, seed=5)[0]
    (added,) = file.add(question[None])
    assert ids(file.search(search, question))[0] == name(added)
    file.replace([added], -question[None])
    assert name(added) not in ids(file.search(search, question))
    file.replace([3], question[None])
    assert file.search(search, question)[0] == (name(3), 1.0)
    file.forget([3])
    assert name(3) not in ids(file.search(search, question))
    assert nearly(file.search(search, question), file.exact(question))


def test_two_searchers_of_one_file_see_each_others_writes(file: File, search: VectorSearch) -> None:
    """A second process builds and writes; the first catches up, and uses what the other built."""
    file.add(made_up(150))
    question = made_up(1, seed=5)[0]
    file.search(search, question)
    other_file = File(file.path)
    other = VectorSearch(file.index, SMALL)
    other_file.add(made_up(500, seed=3))
    (row,) = other_file.add(question[None])
    other_file.search(other, question)
    other.settle()
    other.close()
    other_file.db.close()
    built = manifest(file).read_bytes()
    assert file.search(search, question)[0] == (name(row), 1.0)
    search.settle()
    assert manifest(file).read_bytes() == built


def test_an_older_snapshot_does_not_see_later_rows(file: File, search: VectorSearch) -> None:
    """A reader whose snapshot is older than the shared cache gets only what its snapshot holds."""
    file.add(made_up(100))
    question = made_up(1, seed=5)[0]
    reader = apsw.Connection(str(file.path))
    with reader:
        before = search.search(reader, SPACE, GENERATION, question, OPEN, 10).hits
        added = file.add(np.repeat(question[None], 60, axis=0))
        assert ids(file.search(search, question)) == [name(row) for row in added[:10]]
        assert search.search(reader, SPACE, GENERATION, question, OPEN, 10).hits == before
    reader.close()


def test_spaces_and_generations_are_kept_apart(file: File, search: VectorSearch) -> None:
    """A search sees the vectors of its space and generation only."""
    question = made_up(1)[0]
    (here,) = file.add(question[None])
    (elsewhere,) = file.add(question[None], space=2)
    (newer,) = file.add(question[None], generation=2)
    assert ids(file.search(search, question)) == [name(here)]
    assert ids(file.search(search, question, space=2)) == [name(elsewhere)]
    assert ids(file.search(search, question, generation=2)) == [name(newer)]


def test_a_tail_that_outgrows_its_bound_is_built_into_the_base(file: File, search: VectorSearch) -> None:
    """The base is extended in the background, swapped in as a whole, and earlier files are deleted."""
    with_base(file, search)
    first = manifest(file).read_bytes()
    vectors = made_up(300, seed=7)
    file.add(vectors)
    file.replace([1, 2], vectors[:2])
    file.forget([4])
    file.search(search, vectors[0])
    search.settle()
    assert manifest(file).read_bytes() != first
    for question in made_up(20, seed=8):
        assert nearly(file.search(search, question), file.exact(question))
    assert len(list(file.index.glob("1-1-*"))) == 2


def test_an_emptied_space_has_no_base(file: File, search: VectorSearch, caplog: pytest.LogCaptureFixture) -> None:
    """When all that is in a base was forgotten, nothing is built and nothing complains; a space that fills up again
    gets a base of what is there then.
    """
    with_base(file, search)
    question = made_up(1, seed=5)[0]
    assert len(file.search(search, question)) == 10
    file.forget(range(1, 1001))
    assert file.search(search, question) == []
    search.settle()
    (first,) = file.add(question[None])
    assert ids(file.search(search, question)) == [name(first)]
    file.add(made_up(300, seed=6))
    file.search(search, question)
    search.settle()
    assert nearly(file.search(search, question), file.exact(question))
    assert not caplog.records


def test_a_row_s_removals_are_one_entry(file: File) -> None:
    """However often a memory's vector goes, what tells the caches does not grow."""
    (row,) = file.add(made_up(1))
    for _ in range(3):
        file.replace([row], made_up(1))
        with file.db:
            remove(file.db, SPACE, file.tick(), [row])
    assert file.db.execute("SELECT row, seq FROM removed_vectors").fetchall() == [(row, 7)]


@pytest.mark.parametrize("pattern", ["*.json", "*.graph", "*.matrix", "*"])
def test_lost_files_are_made_again(file: File, search: VectorSearch, pattern: str) -> None:
    """Whatever is deleted from the index folder, the next process answers in full and builds it again."""
    with_base(file, search)
    search.close()
    for path in file.index.glob(pattern):
        path.unlink()
    assert_recovers(file)


@pytest.mark.parametrize("pattern", ["*.json", "*.graph", "*.matrix"])
@pytest.mark.parametrize("damage", ["truncated", "overwritten", "emptied"])
def test_damaged_files_are_noticed_and_made_again(file: File, search: VectorSearch, pattern: str, damage: str) -> None:
    """A damaged file neither crashes the process nor changes an answer, also under the time that it had before."""
    with_base(file, search)
    search.close()
    (path,) = file.index.glob(pattern)
    content = path.read_bytes()
    half = len(content) // 2
    written = path.stat().st_mtime_ns
    path.write_bytes(
        {"truncated": content[:half], "overwritten": content[:half] + b"\xff" * (len(content) - half)}.get(damage, b"")
    )
    os.utime(path, ns=(written, written))
    assert_recovers(file)


def test_an_index_of_another_file_is_not_believed(file: File, search: VectorSearch, tmp_path: Path) -> None:
    """A folder left behind by another file of the same name is noticed, though it is intact."""
    with_base(file, search)
    search.close()
    other = File(tmp_path / "other.db")
    other.add(made_up(1000, seed=9))
    other.index = file.index
    assert_recovers(other)
    other.db.close()


def test_files_that_were_copied_are_still_good(file: File, search: VectorSearch) -> None:
    """A copy or a backup changes the files' times but not their content: nothing is built again."""
    with_base(file, search)
    search.close()
    for path in file.index.iterdir():
        path.write_bytes(path.read_bytes())
    before = manifest(file).read_bytes()
    assert_recovers(file)
    assert manifest(file).read_bytes() == before


def assert_recovers(file: File) -> None:
    """A new process answers as the rows do, at once and after it has built what it misses."""
    again = VectorSearch(file.index, SMALL)
    for question in made_up(3, seed=6):
        assert nearly(file.search(again, question), file.exact(question))
        again.settle()
    assert manifest(file).exists()
    again.close()


def test_a_build_that_was_killed_leaves_a_usable_state(file: File) -> None:
    """After kill -9 in the middle of a build the next process answers in full, builds, and sweeps what was left."""
    file.add(made_up(3000))
    script = (
        "import sys, time, pathlib; from tests.stores import test_sqlite_vectors as t\n"
        "import recollect.stores.sqlite.usearch as u\n"
        "fill = u._fill\n"
        "def slow(graph, rows, vectors, abandoned):\n"
        "    fill(graph, rows, vectors, lambda: print('building', flush=True) or time.sleep(60))\n"
        "u._fill = slow\n"
        "file = t.File(pathlib.Path(sys.argv[1]))\n"
        "file.search(t.VectorSearch(file.index, t.SMALL), t.made_up(1)[0])\n"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", script, str(file.path)], cwd=root, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"building\n"
        process.send_signal(signal.SIGKILL)
    assert_recovers(file)
    assert len(list(file.index.glob("1-1-*"))) == 2


def test_closing_ends_a_build_and_leaves_no_thread(file: File) -> None:
    """close() does not wait for a graph to be finished, and no thread outlives it."""
    before = threading.active_count()
    search = VectorSearch(file.index, SMALL)
    vectors = made_up(5000)
    file.add(vectors)
    file.search(search, vectors[0])
    search.close()
    assert threading.active_count() == before
    assert_recovers(file)


def test_a_folder_that_cannot_be_written_costs_only_speed(
    file: File, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without an index the search stays exact, and the log says so."""
    (tmp_path / "occupied").write_text("a file, not a folder")
    search = VectorSearch(tmp_path / "occupied", SMALL)
    file.add(made_up(500))
    for question in made_up(3, seed=1):
        assert agree(file.search(search, question), file.exact(question))
        search.settle()
    search.close()
    assert "could not be built" in caplog.text


def test_a_space_too_large_for_memory_is_read_from_the_file(file: File, tmp_path: Path) -> None:
    """Until its base is there such a space is compared from the rows, filters and all; then from the base."""
    search = VectorSearch(file.index, replace(SMALL, memory=1000))
    vectors = made_up(300)
    file.add(vectors)
    file.change([1, 2, 3], "superseded_by", "another")
    for question in made_up(3, seed=1):
        assert nearly(file.search(search, question), file.exact(question, condition="m.superseded_by IS NULL"))
        search.settle()
    search.close()


def test_many_small_spaces_share_a_bounded_memory(file: File) -> None:
    """The least used spaces are dropped from memory and read again when they are asked for."""
    search = VectorSearch(file.index, replace(SMALL, memory=256 * DIMENSIONS * 4 + 5000))
    question = made_up(1, seed=1)[0]
    file.add(made_up(100))
    (other,) = file.add(question[None], space=2)
    for _ in range(2):
        assert agree(file.search(search, question), file.exact(question))
        assert ids(file.search(search, question, space=2)) == [name(other)]
        assert len(search._views._spaces) == 1
    search.close()


def test_threads_search_while_rows_arrive_and_bases_are_swapped(file: File) -> None:
    """Searches from several threads, each with its own connection, stay right while one of them writes."""
    search = VectorSearch(file.index, SMALL)
    vectors = made_up(1500)
    file.add(vectors[:300])
    wrong: list[str] = []

    def ask(seed: int) -> None:
        reader = File(file.path)
        for question in made_up(40, seed=seed):
            with reader.db:
                hits = list(search.search(reader.db, SPACE, GENERATION, question, OPEN, 5).hits)
                truth = reader.exact(question, limit=5)
            if len(hits) != 5 or hits[0].score < truth[-1].score - 2e-6:
                wrong.append(f"{hits} instead of {truth}")
        reader.db.close()

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in (11, 12, 13)]
    for thread in threads:
        thread.start()
    for start in range(300, 1500, 100):
        file.add(vectors[start : start + 100])
    for thread in threads:
        thread.join()
    search.close()
    assert not wrong


def test_vectors_are_fetched_by_id(file: File, search: VectorSearch) -> None:
    """Plain vectors come back as stored; ids of other spaces or without a vector are left out."""
    vectors = made_up(3)
    file.add(vectors[:2])
    file.add(vectors[2:], space=2)
    with file.db:
        found = search.fetch(file.db, SPACE, 1, [name(2), name(1), name(3), "unknown"])
    assert set(found) == {name(1), name(2)}
    assert np.array_equal(found[name(1)], vectors[0])
