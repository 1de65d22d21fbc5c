"""A base: the vectors of one space in two files beside the store, a matrix to compare exactly and a graph to find fast.

The files are written once, under new names, and never changed. A small JSON file, the manifest, names the current pair;
replacing it publishes another pair. A process that dies during a build leaves only files without a manifest, which the
next build deletes. Opening a base copies it and checks the copy against the manifest, so nobody can change it
underneath; a damaged base is discarded and rebuilt.

The graph is an HNSW graph over vectors rounded to one byte per number: compared with float32 it is a third of the size,
three times faster to build and twice as fast to search. Recall is about the same, because the matrix compares what it
finds again, exactly.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from recollect.stores.nearest import (
    NO_ROWS,
    Candidates,
    Neighbours,
    dots,
    members,
    neighbours,
    neighbours_of_each,
    products,
)
from recollect.stores.sqlite.checked_files import CheckedFile, Damaged

if TYPE_CHECKING:
    from usearch.index import Index

    from recollect.stores.nearest import Mask, Reach, Rows
    from recollect.types import Vector, Vectors

_log = logging.getLogger(__name__)

CONNECTIVITY = 16  # 24 and 32 find about as much at expansion 400, and make larger files
EXPANSION_ADD = 256  # 128 finds 0.993 of the nearest ten at expansion 400, where this finds 0.998
EXPANSIONS = (400, 800, 1600)  # effort of a search; the first suffices for real embeddings (0.998 of the nearest ten)
GOAL = 0.99  # share of the nearest ten that a sample must find for an expansion to be used

_SAMPLE = 64
_NEAREST = 10
_ROUNDING = 1e-5  # float32 cosines closer than this are a tie
_ADDED_PER_STEP = 1000  # vectors added in a few tenths of a second: how long an abandoned build goes on
_HOPELESS = 0.05  # share of vectors that do not find themselves at the first look
_FIRST_LOOK = 32  # effort with which nearly every vector finds itself; the others are searched with more
_COPIED_AT_ONCE = 4096
_EFFORT_EACH = 64  # of a search for many vectors at once, which wants a few that are near, not the very nearest
_COMPARED_EACH = 32  # of what it finds
_THREADS = 2
_WORN = 0.1  # share of a graph's vectors that may have been taken out before it is made anew
_STEP = 15  # a step of the graph takes as long as this many exact comparisons of picked vectors


class _Abandoned(Exception):
    """The build was asked to stop."""


class Snapshot(Protocol):
    """The vectors of one space at one moment, from the store."""

    @property
    def seq(self) -> int: ...

    def rows(self) -> Rows:
        """All rows, sorted."""

    def vectors(self, rows: Rows) -> Vectors: ...

    def changed_since(self, seq: int) -> Rows:
        """Rows written or removed after a transaction, sorted."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Which files are a space's base, and what is in them.

    `seq` is the transaction they reflect. `expansion` is the effort a search of the graph takes, 0 when no effort finds
    enough. `worn` counts the vectors taken out of the graph since it was made from nothing.
    """

    seq: int
    count: int
    dimensions: int
    matrix: CheckedFile
    graph: CheckedFile | None = None
    expansion: int = 0
    worn: int = 0

    @classmethod
    def read(cls, folder: Path, stem: str) -> Manifest | None:
        """The manifest that is published, or None."""
        try:
            published = json.loads((folder / f"{stem}.json").read_bytes())
            fields: dict[str, Any] = published["base"]
            if published["checksum"] != _checksum(fields):
                return None
            graph = fields.pop("graph")
            matrix = CheckedFile(*fields.pop("matrix"))
            return cls(matrix=matrix, graph=CheckedFile(*graph) if graph else None, **fields)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None  # unreadable is as good as lost: a base can always be rebuilt

    def publish(self, folder: Path, stem: str) -> None:
        """Make this the manifest."""
        draft = folder / f"{stem}.json.new"
        with draft.open("w", encoding="utf-8") as file:
            fields = asdict(self)
            json.dump({"base": fields, "checksum": _checksum(fields)}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(folder / f"{stem}.json")

    def sweep(self, folder: Path, stem: str) -> None:
        """Delete the files that this manifest does not name. Processes that have them open keep them."""
        named = {self.matrix.name, self.graph.name if self.graph else ""}
        for path in folder.glob(f"{stem}-*"):
            if path.name not in named:
                with suppress(OSError):  # still open somewhere, on systems that mind: a later sweep gets it
                    path.unlink()


class Effort(NamedTuple):
    """How many candidates a search of a graph keeps: at least so many, or those that a caller asks for."""

    least: int = 0
    ef_search: int | None = None

    def expansion(self, measured: int, count: int) -> int:
        """In a graph that needs the measured number to find enough, for a search that wants `count` rows."""
        return max(self.ef_search or max(self.least, measured), count)


class Base:
    """An open base. Rows that changed after `seq` are the caller's to leave out."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.manifest = manifest
        self.rows, self.vectors = _open_matrix(folder, manifest)
        self._graph: Index | None = None
        if manifest.graph:
            self._graph = _empty_graph(manifest.dimensions)
            self._graph_bytes = manifest.graph.read(folder)  # which the graph refers to
            self._graph.view(self._graph_bytes)
        self._searching = threading.Lock()

    @property
    def has_graph(self) -> bool:
        return self._graph is not None

    @property
    def size(self) -> int:
        """Bytes of memory held."""
        return self.manifest.matrix.in_memory + (self.manifest.graph.in_memory if self.manifest.graph else 0)

    def __len__(self) -> int:
        return len(self.rows)

    def nearest(self, vector: Vector, count: int, effort: Effort, without: Rows = NO_ROWS) -> Candidates:
        """About the best of all rows but those of `without`, which is sorted."""
        if not self._graph:
            slots = np.flatnonzero(~members(self.rows, without)) if len(without) else slice(None)
            return Candidates(self.rows[slots], products(self.vectors, vector)[slots]).best(count)
        expansion = effort.expansion(self.manifest.expansion, count)
        found = self._search(self._graph, vector, expansion, exact=not self.manifest.expansion)
        return self._compared(vector, found[~members(found, without)][:count])

    def nearest_among(
        self, vector: Vector, count: int, effort: Effort, allowed: Rows, without: Rows = NO_ROWS
    ) -> Candidates:
        """The best of the rows in `allowed`, sorted, but those of `without`: exactly when they are few, else about."""
        passing = allowed[members(allowed, self.rows) & ~members(allowed, without)]
        expansion = effort.expansion(self.manifest.expansion, count) * len(self) // max(1, len(passing))
        if self._graph and self.manifest.expansion and len(passing) > _STEP * expansion:
            found = self._search(self._graph, vector, expansion)
            kept = found[members(found, passing)]
            if len(kept) >= count:
                return self._compared(vector, kept[:count])
        return self._compared(vector, passing).best(count)

    def neighbours_of_each(
        self, vectors: Vectors, count: int, reach: Reach, without: Rows = NO_ROWS
    ) -> list[Neighbours]:
        """About the best of all rows but those of `without` for each of these vectors, and of those that are about the
        best the ones that it is good enough for.
        """
        if not self._graph or not self.manifest.expansion:
            return self._compared_with_each(vectors, count, reach, without)
        with self._searching:
            keys = self._graph.search(vectors, min(_EFFORT_EACH, len(self)), threads=_THREADS).keys
        rows = keys.reshape(len(vectors), -1).astype(np.int64)[:, :_COMPARED_EACH]
        slots = np.searchsorted(self.rows, rows)
        scores = np.stack([dots(self.vectors, vector, some) for vector, some in zip(vectors, slots, strict=True)])
        scores[members(rows.ravel(), without).reshape(rows.shape)] = -np.inf
        seen, places = np.unique(rows, return_inverse=True)
        return neighbours(rows, scores, count, reach(seen)[places.reshape(rows.shape)])

    def _compared_with_each(self, vectors: Vectors, count: int, reach: Reach, without: Rows) -> list[Neighbours]:
        gone = members(self.rows, without)
        least = np.where(gone, np.float32(np.inf), reach(self.rows))
        found = neighbours_of_each(self.rows, self.vectors, vectors, count + len(without), least)
        return [Neighbours(one.best.without(without).best(count), one.takers) for one in found]

    def _search(self, graph: Index, vector: Vector, count: int, *, exact: bool = False) -> Rows:
        """Rows that are near, nearest first by the rounded vectors."""
        with self._searching:  # usearch has the room for one search per thread number, and here each is its first
            keys = graph.search(vector, min(count, len(self)), threads=1, exact=exact).keys
        return keys.astype(np.int64)

    def _compared(self, vector: Vector, rows: Rows) -> Candidates:
        return Candidates(rows, dots(self.vectors, vector, np.searchsorted(self.rows, rows)))


def open_base(folder: Path, stem: str, dimensions: int) -> Base | None:
    """The base that is published, or None when there is none. One that is damaged is discarded."""
    manifest = Manifest.read(folder, stem)
    while manifest is not None and manifest.dimensions == dimensions:
        try:
            return Base(folder, manifest)
        except (Damaged, FileNotFoundError, RuntimeError) as error:
            newest = Manifest.read(folder, stem)
            if newest == manifest:  # else another pair was published meanwhile, and this one swept away
                _log.warning("the vector index in %s is damaged (%s) and will be rebuilt", folder, error)
                discard(folder, stem)
                return None
            manifest = newest
        except OSError:
            return None
    return None


def discard(folder: Path, stem: str) -> None:
    with suppress(OSError):
        (folder / f"{stem}.json").unlink()


def build(
    folder: Path,
    stem: str,
    dimensions: int,
    read: Callable[[], AbstractContextManager[Snapshot]],
    abandoned: Callable[[], bool],
) -> bool:
    """Build a base of what the store holds now, from the existing one where that saves work, and publish it.

    If there was none, the matrix is published before the graph: it is quick to write, and comparing with it is exact.
    When `abandoned` returns True, the build stops and returns False.
    """
    folder.mkdir(parents=True, exist_ok=True)
    old = Manifest.read(folder, stem)
    old = old if old and old.dimensions == dimensions else None
    name = f"{stem}-{secrets.token_hex(4)}"
    try:
        with read() as snapshot:
            changed = snapshot.changed_since(old.seq) if old else NO_ROWS
            manifest = _write_matrix(folder / f"{name}.matrix", dimensions, snapshot)
        if not old:
            manifest.publish(folder, stem)
            old = manifest
        graph, worn = _started_graph(folder, old, manifest, changed)
        rows, vectors = _open_matrix(folder, manifest)
        _fill(graph, rows, vectors, abandoned)
        _rescue(graph, rows, vectors, abandoned)
        expansion = _least_expansion(graph, rows, vectors)
        path = folder / f"{name}.graph"
        graph.save(str(path))
        finished = replace(manifest, graph=CheckedFile.of(path), expansion=expansion, worn=worn)
        finished.publish(folder, stem)
        old = finished
    except _Abandoned:
        return False
    finally:
        if old:
            old.sweep(folder, stem)
    return True


def _write_matrix(path: Path, dimensions: int, snapshot: Snapshot) -> Manifest:
    """Rows, then their vectors in the same order. Written, not mapped: a full disk is then an error, not a crash."""
    rows = snapshot.rows()
    with path.open("wb") as file:
        file.write(rows.tobytes())
        for start in range(0, len(rows), _COPIED_AT_ONCE):
            file.write(snapshot.vectors(rows[start : start + _COPIED_AT_ONCE]).tobytes())
    return Manifest(snapshot.seq, len(rows), dimensions, CheckedFile.of(path))


def _open_matrix(folder: Path, manifest: Manifest) -> tuple[Rows, Vectors]:
    count, content = manifest.count, manifest.matrix.read(folder)
    if len(content) != count * (8 + 4 * manifest.dimensions):
        raise Damaged(f"{manifest.matrix.name} has another size than its manifest says")
    rows = np.frombuffer(content, np.int64, count)
    return rows, np.frombuffer(content, np.float32, offset=8 * count).reshape(count, manifest.dimensions)


def _empty_graph(dimensions: int) -> Index:
    from usearch.index import Index  # here, because it takes a sixth of a second that small spaces need not spend

    return Index(
        ndim=dimensions,
        metric="ip",
        dtype="i8",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=1,  # a search then takes the effort it asks for, and searches at once share no setting
    )


def _started_graph(folder: Path, old: Manifest, new: Manifest, changed: Rows) -> tuple[Index, int]:
    """The old graph without what has changed, and how many vectors were ever taken out of it; or an empty one."""
    graph = _empty_graph(new.dimensions)
    if old.graph is None:
        return graph, 0
    try:
        graph.load(old.graph.read(folder))
    except (Damaged, OSError, RuntimeError):
        return _empty_graph(new.dimensions), 0
    worn = old.worn + int(graph.remove(changed.astype(np.uint64)))
    return (graph, worn) if worn <= _WORN * new.count else (_empty_graph(new.dimensions), 0)


def _fill(graph: Index, rows: Rows, vectors: Vectors, abandoned: Callable[[], bool]) -> None:
    """Add the rows that the graph lacks."""
    slots = np.flatnonzero(~graph.contains(rows.astype(np.uint64))) if len(graph) else np.arange(len(rows))
    for part in _portions(slots, abandoned):
        graph.add(rows[part].astype(np.uint64), vectors[part], threads=_THREADS)


def _rescue(graph: Index, rows: Rows, vectors: Vectors, abandoned: Callable[[], bool]) -> None:
    """Add again, one by one, what its own vector does not find. When two threads add at once, some ten vectors in
    100,000 end up with no link that leads to them: no search would ever find those memories.
    """
    slots = np.arange(len(rows))
    for effort in (_FIRST_LOOK, EXPANSIONS[0]):
        lost = [_lost(graph, rows, vectors, part, effort) for part in _portions(slots, abandoned)]
        slots = np.concatenate([NO_ROWS, *lost])
        if len(slots) > _HOPELESS * len(rows):
            return  # vectors without structure: such a graph is not going to be walked
    if len(slots):
        graph.remove(rows[slots].astype(np.uint64))
        graph.add(rows[slots].astype(np.uint64), vectors[slots], threads=1)


def _lost(graph: Index, rows: Rows, vectors: Vectors, slots: Rows, effort: int) -> Rows:
    """Those slots whose vectors do not find their own rows."""
    found = graph.search(vectors[slots], min(effort, len(rows)), threads=_THREADS).keys.reshape(len(slots), -1)
    itself: Mask = (found == rows[slots].astype(np.uint64)[:, None]).any(axis=1)
    return slots[~itself]


def _portions(slots: Rows, abandoned: Callable[[], bool]) -> Iterator[Rows]:
    for start in range(0, len(slots), _ADDED_PER_STEP):
        if abandoned():
            raise _Abandoned
        yield slots[start : start + _ADDED_PER_STEP]


def _least_expansion(graph: Index, rows: Rows, vectors: Vectors) -> int:
    """The least effort with which a sample of the vectors finds enough of its nearest; 0 when none is enough, as
    with vectors that have no structure: then the graph's rounded vectors are compared one by one.
    """
    sample = vectors[np.linspace(0, len(rows) - 1, min(_SAMPLE, len(rows)), dtype=np.int64)]
    nearest = min(_NEAREST, len(rows))
    worst = [np.partition(products(vectors, vector), -nearest)[-nearest] for vector in sample]
    for expansion in EXPANSIONS:
        found = 0
        for vector, bar in zip(sample, worst, strict=True):
            keys = graph.search(vector, min(expansion, len(rows)), threads=1).keys.astype(np.int64)
            scores = dots(vectors, vector, np.searchsorted(rows, keys))
            found += min(nearest, int(np.count_nonzero(scores >= bar - _ROUNDING)))
        if found >= GOAL * nearest * len(sample):
            return expansion
    return 0


def _checksum(fields: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())
