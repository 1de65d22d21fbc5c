"""Bases without a store: what a build writes, what an open base finds, and exact comparison in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recollect.stores.nearest import Block, Candidates, dots, members
from recollect.stores.sqlite import checked_files
from recollect.stores.sqlite.usearch import EXPANSIONS, Base, Effort, Manifest, Snapshot, build, discard, open_base

if TYPE_CHECKING:
    from recollect.stores.nearest import Rows
    from recollect.types import Vector, Vectors

DIMENSIONS = 48
USUAL = Effort()


class Rowed:
    """A snapshot in memory: row n * 3 has vector n."""

    def __init__(self, vectors: Vectors, seq: int = 1, changed: Rows | None = None) -> None:
        self.seq = seq
        self._vectors = vectors
        self._changed = np.empty(0, np.int64) if changed is None else changed

    def rows(self) -> Rows:
        return np.arange(len(self._vectors), dtype=np.int64) * 3

    def vectors(self, rows: Rows) -> Vectors:
        return self._vectors[rows // 3]

    def changed_since(self, seq: int) -> Rows:
        return self._changed


def reading(
    vectors: Vectors, seq: int = 1, changed: Rows | None = None
) -> Callable[[], AbstractContextManager[Snapshot]]:
    return lambda: nullcontext(Rowed(vectors, seq, changed))


def never() -> bool:
    return False


def unit(vectors: Vectors) -> Vectors:
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def clustered(count: int, seed: int = 0) -> Vectors:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(30, DIMENSIONS))
    return unit(
        (centres[random.integers(0, 30, count)] + random.normal(0, 0.4, (count, DIMENSIONS))).astype(np.float32)
    )


def opened(folder: Path) -> Base:
    base = open_base(folder, "1-1", DIMENSIONS)
    assert base is not None
    return base


def recall(base: Base, vectors: Vectors, questions: Vectors) -> float:
    """The share of the nearest ten that the base finds."""
    found = 0
    for question in questions:
        expected = np.argsort(-(vectors @ question))[:10] * 3
        found += int(np.isin(expected, base.nearest(question, 50, USUAL).best(10).rows).sum())
    return found / (10 * len(questions))


@pytest.fixture
def vectors() -> Vectors:
    return clustered(1500)


def test_a_build_can_be_opened_and_finds_the_nearest(tmp_path: Path, vectors: Vectors) -> None:
    """Rows, vectors and the transaction come back, and a search finds what exact comparison finds."""
    assert build(tmp_path, "1-1", DIMENSIONS, reading(vectors, seq=7), never)
    base = opened(tmp_path)
    assert base.manifest.seq == 7
    assert base.has_graph
    assert np.array_equal(base.vectors, vectors)
    assert recall(base, vectors, clustered(50, seed=1)) >= 0.99


def test_left_out_rows_are_not_found(tmp_path: Path, vectors: Vectors) -> None:
    """Rows that changed since are left out, whichever way the base is searched."""
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors), never)
    base = opened(tmp_path)
    without = np.sort(base.nearest(vectors[0], 20, USUAL).rows)
    assert not members(base.nearest(vectors[0], 20, USUAL, without).rows, without).any()
    assert not members(base.nearest_among(vectors[0], 20, USUAL, base.rows, without).rows, without).any()


@pytest.mark.parametrize("every", [1, 3, 50])
def test_only_allowed_rows_are_found(tmp_path: Path, vectors: Vectors, every: int) -> None:
    """Among few or many allowed rows the nearest are found; rows that the base does not have do no harm."""
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors), never)
    allowed = np.sort(np.concatenate((np.arange(0, len(vectors), every) * 3, [100_000])))
    for question in clustered(10, seed=1):
        expected = set((np.argsort(-(vectors[::every] @ question))[:10] * every * 3).tolist())
        assert set(opened(tmp_path).nearest_among(question, 10, USUAL, allowed).rows.tolist()) == expected


def test_many_allowed_rows_are_found_through_the_graph(
    tmp_path: Path, vectors: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph that is asked for more, as fewer rows pass, finds the nearest that pass; when it does not find enough,
    because what passes is far away, those rows are compared exactly.
    """
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors), never)
    base = opened(tmp_path)
    monkeypatch.setattr("recollect.stores.sqlite.usearch._STEP", 0)
    allowed = base.rows[::2].copy()
    found = 0
    for question in clustered(50, seed=1):
        expected = np.argsort(-(vectors[::2] @ question))[:10] * 6
        found += int(np.isin(expected, base.nearest_among(question, 64, USUAL, allowed).best(10).rows).sum())
    assert found >= 0.99 * 500
    farthest = np.argsort(vectors @ vectors[0])[:500]
    found_far = base.nearest_among(vectors[0], 64, USUAL, np.sort(farthest) * 3).best(10)
    assert set(found_far.rows.tolist()) == set((farthest[-10:] * 3).tolist())


def test_vectors_without_structure_are_compared_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a sample shows that the graph misses too much it is not walked, and the answer is still right."""
    monkeypatch.setattr(
        "recollect.stores.sqlite.usearch.EXPANSIONS", (5,)
    )  # too little for ten, as 1600 is for much noise
    noise = unit(np.random.default_rng(0).normal(size=(3000, DIMENSIONS)).astype(np.float32))
    build(tmp_path, "1-1", DIMENSIONS, reading(noise), never)
    base = opened(tmp_path)
    assert base.manifest.expansion == 0
    for question in unit(np.random.default_rng(1).normal(size=(10, DIMENSIONS)).astype(np.float32)):
        expected = set((np.argsort(-(noise @ question))[:10] * 3).tolist())
        assert set(base.nearest(question, 100, USUAL).best(10).rows.tolist()) == expected
        among = base.nearest_among(question, 10, USUAL, base.rows)
        assert set(among.rows.tolist()) == expected


def test_every_vector_finds_itself(tmp_path: Path) -> None:
    """Threads that add at once leave some vectors without a link to them; the build notices and adds those again."""
    vectors = clustered(4000, seed=3)
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors), never)
    base = opened(tmp_path)
    assert base.manifest.expansion
    lost = [slot for slot, vector in enumerate(vectors) if 3 * slot not in base.nearest(vector, 10, USUAL).rows]
    assert lost == []


def test_a_base_is_extended_from_the_one_before(tmp_path: Path, vectors: Vectors) -> None:
    """New, replaced and removed rows are right after an extension, which starts from the graph that is there."""
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors[:1000]), never)
    later = np.concatenate((clustered(50, seed=2), vectors[50:1500]))
    changed = np.concatenate((np.arange(50), np.arange(1000, 1500))) * 3
    build(tmp_path, "1-1", DIMENSIONS, reading(later, 2, changed), never)
    base = opened(tmp_path)
    assert (base.manifest.seq, base.manifest.worn) == (2, 50)
    assert recall(base, later, clustered(50, seed=1)) >= 0.99


def test_a_worn_graph_is_made_anew(tmp_path: Path, vectors: Vectors) -> None:
    """When much of a graph would be taken out, it starts from nothing."""
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors), never)
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors[::-1].copy(), 2, np.arange(1500) * 3), never)
    base = opened(tmp_path)
    assert base.manifest.worn == 0
    assert base.nearest(vectors[0], 10, USUAL).best(1).rows.tolist() == [1499 * 3]


def test_an_abandoned_first_build_leaves_the_matrix(tmp_path: Path, vectors: Vectors) -> None:
    """Without a graph the base compares exactly; the files of the unfinished graph are gone."""
    assert not build(tmp_path, "1-1", DIMENSIONS, reading(vectors), lambda: True)
    base = opened(tmp_path)
    assert not base.has_graph
    assert base.nearest(vectors[5], 10, USUAL).best(1).rows.tolist() == [15]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".matrix"]


def test_an_abandoned_extension_leaves_the_base_before(tmp_path: Path, vectors: Vectors) -> None:
    """The base that was published stays published, and stays alone."""
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors[:1000]), never)
    assert not build(tmp_path, "1-1", DIMENSIONS, reading(vectors, 2, np.arange(1000, 1500) * 3), lambda: True)
    assert opened(tmp_path).manifest.seq == 1
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".graph", ".json", ".matrix"]


def test_a_failing_build_leaves_the_base_before(tmp_path: Path, vectors: Vectors) -> None:
    """An error on the way is raised, and what was there is still there."""
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors), never)

    def broken() -> bool:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        build(tmp_path, "1-1", DIMENSIONS, reading(clustered(2000), 2, np.arange(1500) * 3), broken)
    assert opened(tmp_path).manifest.seq == 1


def test_a_base_of_other_dimensions_is_no_base(tmp_path: Path, vectors: Vectors) -> None:
    """Whoever asks for other dimensions gets none, and so does whoever asks after it was discarded."""
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors), never)
    assert open_base(tmp_path, "1-1", DIMENSIONS + 1) is None
    discard(tmp_path, "1-1")
    discard(tmp_path, "1-1")
    assert open_base(tmp_path, "1-1", DIMENSIONS) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"seq": 1}', '{"graph": 3, "matrix": []}', "\x00"])
def test_a_manifest_that_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    """Garbage where the manifest should be means that there is no base."""
    (tmp_path / "1-1.json").write_text(text)
    assert Manifest.read(tmp_path, "1-1") is None


def test_an_effort_is_the_caller_s_or_the_measured_one(
    tmp_path: Path, vectors: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a caller asks for is the number of candidates that the graph keeps, more or fewer than by itself, but no
    fewer than are wanted. A base without a graph compares all, whatever is asked for.
    """
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors), never)
    base = opened(tmp_path)
    asked: list[int] = []
    search = Base._search

    def recorded(self: Base, graph: Any, vector: Vector, count: int, **how: bool) -> Rows:
        asked.append(count)
        return search(self, graph, vector, count, **how)

    monkeypatch.setattr(Base, "_search", recorded)
    for effort in (Effort(), Effort(least=500), Effort(500, ef_search=64), Effort(500, ef_search=5)):
        base.nearest(vectors[0], 10, effort)
    assert asked == [EXPANSIONS[0], 500, 64, 10]
    discard(tmp_path, "1-1")
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors), lambda: True)
    found = [opened(tmp_path).nearest(vectors[0], 10, Effort(ef_search=ef)).rows.tolist() for ef in (None, 1)]
    assert found[0] == found[1]
    assert len(asked) == 4


def in_a_child(work: str, folder: Path) -> None:
    """Run a function of this module on a folder in another process, for whatever may end that."""
    script = f"import pathlib, sys; from {__name__} import {work}; {work}(pathlib.Path(sys.argv[1]))"
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", script, str(folder)], cwd=root, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()


def _flip_bytes(folder: Path) -> None:
    build(folder, "1-1", DIMENSIONS, reading(clustered(300)), never)
    intact = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}

    def restore() -> None:
        for path, (content, written) in intact.items():
            path.write_bytes(content)
            os.utime(path, ns=(written, written))

    for path, (content, written) in intact.items():
        for at in np.linspace(0, len(content) - 1, 40, dtype=int).tolist():
            restore()
            path.write_bytes(content[:at] + bytes(byte ^ 0x55 for byte in content[at : at + 16]) + content[at + 16 :])
            os.utime(path, ns=(written, written))
            assert open_base(folder, "1-1", DIMENSIONS) is None, (path.suffix, at)
            assert Manifest.read(folder, "1-1") is None
    restore()
    assert opened(folder).has_graph


def test_changed_bytes_are_noticed_wherever_they_are(tmp_path: Path) -> None:
    """In each of the files, at many places, under the time that the file had before: the base is discarded."""
    in_a_child(_flip_bytes.__name__, tmp_path)


def _cut_while_open(folder: Path) -> None:
    vectors = clustered(1500)
    build(folder, "1-1", DIMENSIONS, reading(vectors), never)
    base = opened(folder)
    for path in folder.iterdir():
        os.truncate(path, 0)
    assert recall(base, vectors, clustered(20, seed=1)) >= 0.99
    assert base.nearest_among(vectors[7], 1, USUAL, base.rows).rows.tolist() == [21]
    assert open_base(folder, "1-1", DIMENSIONS) is None


def _cut_while_open_from_disk(folder: Path) -> None:
    checked_files.IN_MEMORY = 0
    _cut_while_open(folder)
    assert sorted(path.suffix for path in folder.iterdir()) == [".graph", ".json", ".matrix"]


@pytest.mark.parametrize("work", [_cut_while_open, _cut_while_open_from_disk])
def test_an_open_base_does_not_mind_that_its_files_are_cut(tmp_path: Path, work: Callable[[Path], None]) -> None:
    """Whether its copy is in memory or, as that of a large file, in a file without a name."""
    in_a_child(work.__name__, tmp_path)


def test_a_base_that_was_swept_away_meanwhile_is_not_discarded(
    tmp_path: Path, vectors: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process publishes another base between a look at the manifest and the files: that one is opened."""
    build(tmp_path, "1-1", DIMENSIONS, reading(vectors), never)
    read = Manifest.read
    seen: list[Manifest | None] = []

    def read_and_publish(folder: Path, stem: str) -> Manifest | None:
        found = read(folder, stem)
        seen.append(found)
        if len(seen) == 1:
            build(tmp_path, "1-1", DIMENSIONS, reading(vectors, 2), never)
        return found

    monkeypatch.setattr(Manifest, "read", read_and_publish)
    assert opened(tmp_path).manifest.seq == 2


def test_a_block_keeps_what_older_blocks_show(vectors: Vectors) -> None:
    """Adding and removing make new blocks; whoever holds an older one sees what it always showed."""
    none = np.empty(0, np.int64)
    first = Block.empty(DIMENSIONS).changed(none, np.arange(100), vectors[:100])
    second = first.changed(np.array([5]), np.array([5, 200]), vectors[[300, 301]])
    assert (len(first), len(second)) == (100, 101)
    assert first.nearest(vectors[5], 1).rows.tolist() == [5]
    assert second.nearest(vectors[5], 1).rows.tolist() != [5]
    assert second.nearest(vectors[300], 1).rows.tolist() == [5]


def test_a_block_finds_only_allowed_rows(vectors: Vectors) -> None:
    """Few or many allowed rows, the answer is the same as comparing them all."""
    block = Block.empty(DIMENSIONS).changed(np.empty(0, np.int64), np.arange(1000), vectors[:1000])
    for allowed in (np.arange(0, 1000, 100), np.arange(0, 1000, 2), np.array([], np.int64)):
        expected = allowed[np.argsort(-(vectors[allowed] @ vectors[1]))[:5]]
        assert set(block.nearest(vectors[1], 5, allowed).rows.tolist()) == set(expected.tolist())


def test_products_are_those_of_the_picked_vectors(vectors: Vectors) -> None:
    """Picking vectors in portions changes nothing about their products."""
    slots = np.random.default_rng(0).integers(0, len(vectors), 3000)
    assert np.allclose(dots(vectors, vectors[0], slots), vectors[slots] @ vectors[0], atol=1e-6)


def test_candidates_join_and_keep_the_best() -> None:
    """The best of two lists are the best of both."""
    one = Candidates(np.array([1, 2]), np.array([0.5, 0.1], np.float32))
    two = Candidates(np.array([3]), np.array([0.3], np.float32))
    assert set(one.joined(two).best(2).rows.tolist()) == {1, 3}
