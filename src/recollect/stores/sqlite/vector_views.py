"""Each space's vectors as a process holds them: for a large space a base in files beside the store, and in memory what
was written since. Each search catches up from the rows by sequence number.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import apsw
import numpy as np

from recollect.stores.named_sql import load
from recollect.stores.nearest import NO_ROWS, Block, Candidates, Neighbours, members
from recollect.stores.sqlite.rows import as_json
from recollect.stores.sqlite.usearch import Base, Effort, Manifest, build, discard, open_base

if TYPE_CHECKING:
    from recollect.stores.nearest import Reach, Rows
    from recollect.types import Vector, Vectors

Key: TypeAlias = tuple[int, int]
"""Space and generation."""

Q = load(__name__, "vectors.sql")
_log = logging.getLogger(__name__)

_SPOTS = 16
_BUSY_SECONDS = 10
_READ_ROWS = 10_000
"""Vectors read at a time: after a large import there are many, and each is held twice meanwhile."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a base is built, and how much is held; measured at 384 dimensions on two cores."""

    exact_rows: int = 20_000
    """Up to here a whole space is compared, in 2 ms; a graph takes 1 ms, but needs a build and two files."""
    tail_rows: int = 10_000
    """Rows written since the base, compared in 0.4 ms; beyond that the base is rebuilt."""
    memory: int = 512 << 20
    """Bytes held in memory for all spaces; the least used are dropped. A larger space without a base is read from the
    store at each search."""
    rest_seconds: float = 5.0
    """Pause after a failed build."""


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class View:
    """A space's vectors as of transaction `seq`: those of a base without the rows that changed since, and the tail."""

    seq: int
    base: Base | None
    without: Rows
    tail: Block

    @property
    def total(self) -> int:
        return len(self.tail) + (0 if self.base is None else len(self.base) - len(self.without))

    def nearest(self, vector: Vector, count: int, effort: Effort) -> Candidates:
        """About the best of all rows; exactly those when there is no base."""
        found = self.tail.nearest(vector, count)
        if self.base is None:
            return found
        return self.base.nearest(vector, count, effort, self.without).joined(found).best(count)

    def nearest_among(self, vector: Vector, count: int, effort: Effort, allowed: Rows) -> Candidates:
        """The best of the rows in `allowed`, which is sorted."""
        found = self.tail.nearest(vector, count, allowed)
        if self.base is None:
            return found
        return self.base.nearest_among(vector, count, effort, allowed, self.without).joined(found).best(count)

    def neighbours_of_each(self, vectors: Vectors, count: int, reach: Reach) -> list[Neighbours]:
        """About the best of all rows for each of these vectors, and those that it is good enough for."""
        found = self.tail.neighbours_of_each(vectors, count, reach)
        if self.base is None:
            return found
        based = self.base.neighbours_of_each(vectors, count, reach, self.without)
        return [one.joined(other, count) for one, other in zip(based, found, strict=True)]

    def changed(self, seq: int, gone: Rows, rows: Rows, vectors: Vectors) -> View:
        """After transaction `seq`, which took away the rows `gone` (sorted) and then wrote these."""
        without = self.without
        if self.base is not None:
            without = np.union1d(without, gone[members(gone, self.base.rows)])
        view = View(seq, self.base, without, self.tail.changed(gone, rows, vectors))
        # If all vectors are gone, drop the base; the next one begins with later writes.
        return view if view.total else View(seq, None, NO_ROWS, Block.empty(vectors.shape[1]))

    def wants_base(self, limits: Limits) -> bool:
        if self.base is None:
            return self.tail.count > limits.exact_rows
        outdated = max(limits.tail_rows, len(self.base) // 10)
        return not self.base.has_graph or self.tail.count > limits.tail_rows or len(self.without) > outdated


class Views:
    """The views of all spaces, the least used ones dropped when they take too much memory."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._lock = threading.Lock()  # of the table of spaces, held for a moment only
        self._spaces: OrderedDict[Key, _Space] = OrderedDict()
        self._builder = _Builder(folder, limits.rest_seconds)

    def caught_up(self, db: apsw.Connection, space: int, generation: int, dimensions: int) -> View | None:
        """The space as the connection's snapshot sees it, or later; None when it is too large to hold."""
        key = (space, generation)
        with self._lock:
            known = self._spaces.get(key) or _Space(self._folder, key, dimensions)
            self._spaces[key] = known
            self._spaces.move_to_end(key)
        before, view = known.view, known.caught_up(db, self._limits)
        if view is None or view.wants_base(self._limits):
            self._builder.start(db.filename, key, dimensions)
        if view is not before:
            self._drop_least_used()
        return view

    def awaits_base(self, db: apsw.Connection, space: int, generation: int, dimensions: int) -> bool:
        """Whether a space is so large that it needs a base it does not have yet. If so, its build is started."""
        view = self.caught_up(db, space, generation, dimensions)
        return view is None or view.wants_base(self._limits)

    def settle(self) -> None:
        """Wait for the build that is running, if any."""
        self._builder.join()

    def close(self) -> None:
        """Stop the running build and drop all views."""
        self._builder.close()
        with self._lock:
            self._spaces.clear()

    def _drop_least_used(self) -> None:
        with self._lock:
            total = sum(space.size for space in self._spaces.values())
            while total > self._limits.memory and len(self._spaces) > 1:
                _, dropped = self._spaces.popitem(last=False)
                total -= dropped.size


class _Space:
    """One space's newest view. Views are never changed, so a search keeps the one it has while another catches up."""

    def __init__(self, folder: Path, key: Key, dimensions: int) -> None:
        self._folder = folder
        self._key = key
        self._dimensions = dimensions
        self._lock = threading.Lock()
        self.view: View | None = None

    @property
    def size(self) -> int:
        view = self.view
        return view.tail.size + (view.base.size if view.base else 0) if view else 0

    def caught_up(self, db: apsw.Connection, limits: Limits) -> View | None:
        seq: int = db.execute(Q["clock"]).get
        view = self.view
        if view is not None and view.seq >= seq and not view.wants_base(limits):
            return view
        with self._lock:
            view = self._advanced(db, self.view or self._opened(db), seq, limits)
            if (view is None or view.wants_base(limits)) and self._published_another(view):
                view = self._advanced(db, self._opened(db), seq, limits)
            self.view = view
            return view

    def _published_another(self, view: View | None) -> bool:
        """Whether there is another base than this view's."""
        manifest = Manifest.read(self._folder, stem(self._key))
        known = view.base.manifest if view is not None and view.base is not None else None
        return manifest not in (None, known)

    def _opened(self, db: apsw.Connection) -> View:
        """What is in the base that is published now, by this process or by another, if any."""
        base = open_base(self._folder, stem(self._key), self._dimensions)
        if base is not None and not _agrees(db, self._key, base):
            discard(self._folder, stem(self._key))
            base = None
        return View(0 if base is None else base.manifest.seq, base, NO_ROWS, Block.empty(self._dimensions))

    def _advanced(self, db: apsw.Connection, view: View, seq: int, limits: Limits) -> View | None:
        """The view after all that was written between its transaction and `seq`, the snapshot's; None when that is
        more than may be held.
        """
        if view.seq >= seq:
            return view
        space, generation = self._key
        newer: int = db.execute(Q["count_since"], (space, view.seq, generation)).get
        if 4 * self._dimensions * (view.tail.count + newer) > limits.memory:
            return None
        removed = [row for (row,) in db.execute(Q["removed_since"], (space, view.seq))]
        written = db.execute(Q["vectors_since"], (space, view.seq, generation))
        gone = np.unique(np.array(removed, np.int64))
        view = replace(view, tail=view.tail.with_room(view.tail.count + newer))
        while some := list(islice(written, _READ_ROWS)):
            rows = np.array([row for row, _ in some], np.int64)
            vectors = matrix((blob for _, blob in some), self._dimensions)
            view = view.changed(seq, np.union1d(rows, gone), rows, vectors)
            gone = NO_ROWS
        return view.changed(seq, gone, NO_ROWS, np.empty((0, self._dimensions), np.float32))


class _Builder:
    """Builds bases, one at a time, in a thread that ends with the build."""

    def __init__(self, folder: Path, rest_seconds: float) -> None:
        self._folder = folder
        self._rest_seconds = rest_seconds
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._rested_at = 0.0

    def start(self, database: str, key: Key, dimensions: int) -> None:
        """Begin a build, unless one is running or just failed, or the store is not a file."""
        with self._lock:
            running = self._thread and self._thread.is_alive()
            if running or not database or self._closing.is_set() or time.monotonic() < self._rested_at:
                return
            self._thread = threading.Thread(
                target=self._run, args=(database, key, dimensions), name="recollect-vector-index"
            )
            self._thread.start()

    def join(self) -> None:
        if self._thread:
            self._thread.join()

    def close(self) -> None:
        self._closing.set()
        self.join()

    def _abandoned(self) -> bool:
        return self._closing.is_set() or not threading.main_thread().is_alive()

    def _run(self, database: str, key: Key, dimensions: int) -> None:
        published = False
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with _only_one(self._folder / "build.lock") as alone:
                if alone:
                    published = build(
                        self._folder,
                        stem(key),
                        dimensions,
                        lambda: _snapshot(database, key, dimensions),
                        self._abandoned,
                    )
        except Exception:  # noqa: BLE001 (searches work without the base, and the next build may succeed)
            _log.warning(
                "the vector index in %s could not be built; searches are exact, but slower",
                self._folder,
                exc_info=True,
            )
        if not published:
            self._rested_at = time.monotonic() + self._rest_seconds


class _Snapshot:
    """`recollect.stores.sqlite.usearch.Snapshot` over one read transaction."""

    def __init__(self, db: apsw.Connection, key: Key, dimensions: int) -> None:
        self._db = db
        self._key = key
        self._dimensions = dimensions
        self.seq: int = db.execute(Q["clock"]).get

    def rows(self) -> Rows:
        return np.sort(np.array([row for (row,) in self._db.execute(Q["rows"], self._key)], np.int64))

    def vectors(self, rows: Rows) -> Vectors:
        found = self._db.execute(Q["vectors_by_row"], (as_json(rows.tolist()), *self._key, self.seq))
        return matrix((blob for _, blob in found), self._dimensions)

    def changed_since(self, seq: int) -> Rows:
        space, generation = self._key
        written = self._db.execute(Q["written_since"], (space, seq, generation)).fetchall()
        removed = self._db.execute(Q["removed_since"], (space, seq)).fetchall()
        return np.unique(np.array([row for (row,) in (*written, *removed)], np.int64))


@contextmanager
def _snapshot(database: str, key: Key, dimensions: int) -> Iterator[_Snapshot]:
    with closing(apsw.Connection(database, flags=apsw.SQLITE_OPEN_READONLY)) as db:
        db.set_busy_timeout(1000 * _BUSY_SECONDS)
        with db:
            yield _Snapshot(db, key, dimensions)


@contextmanager
def _only_one(path: Path) -> Iterator[bool]:
    """Whether this is the only process here, by SQLite's lock on a file: it ends with the process on any system."""
    with closing(apsw.Connection(str(path))) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except apsw.BusyError:
            yield False
        else:
            yield True


def stem(key: Key) -> str:
    """What the names of a base's files begin with."""
    space, generation = key
    return f"{space}-{generation}"


def _agrees(db: apsw.Connection, key: Key, base: Base) -> bool:
    """Whether a base was built from this store, judged by some of its vectors: the store's file may have been replaced,
    with the index folder left behind.
    """
    slots = np.linspace(0, len(base) - 1, min(_SPOTS, len(base)), dtype=np.int64)
    wanted = as_json(base.rows[slots].tolist())
    found = list(db.execute(Q["vectors_by_row"], (wanted, *key, base.manifest.seq)))
    rows = np.array([row for row, _ in found], np.int64)
    vectors = matrix((blob for _, blob in found), base.manifest.dimensions)
    return len(rows) > 0 and np.array_equal(vectors, base.vectors[np.searchsorted(base.rows, rows)])


def matrix(blobs: Iterable[bytes], dimensions: int) -> Vectors:
    return np.frombuffer(b"".join(blobs), "<f4").reshape(-1, dimensions)
