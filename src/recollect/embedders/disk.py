"""Embeddings cached on disk, so that evaluating the same texts again takes seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import apsw
import numpy as np

from recollect.errors import EmbeddingError
from recollect.ports import Embedder, Role

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

A = TypeVar("A")
T = TypeVar("T")

FILE = "embeddings.db"
SLICE = 512
"""Texts embedded between two writes: the most that an interrupted run loses."""
BUSY_SECONDS = 30
SCHEMA = "create table if not exists vectors (key blob primary key, vector blob not null)"
GET = "select vector from vectors where key = ?"
PUT = "insert or replace into vectors (key, vector) values (?, ?)"


class DiskCachedEmbedder:
    """Another embedder's vectors, to the last bit, by text, role and embedder name, in one SQLite file in `folder`.

    Several processes may share the folder; a crash loses at most the texts being embedded.
    """

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self._inner = inner
        self._path = folder / FILE
        self._dimensions = inner.dimensions
        self._db: apsw.Connection | None = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="recollect-embeddings")

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def in_process(self) -> bool:
        return self._inner.in_process

    @property
    def dimensions(self) -> int | None:
        return self._inner.dimensions or self._dimensions

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        if not texts:
            return await self._inner.embed(texts, space=space, role=role)
        keys = [self._key(text, role) for text in texts]
        known = await self._on_disk(_get, keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        for slice_ in _slices(list(missing)):
            fresh = await self._inner.embed([missing[key] for key in slice_], space=space, role=role)
            made = dict(zip(slice_, fresh, strict=True))
            await self._on_disk(_put, made)
            known |= made
        vectors = np.stack([known[key] for key in keys])
        self._dimensions = vectors.shape[1]
        return vectors

    async def close(self) -> None:
        """Close the file and the inner embedder."""
        await asyncio.get_running_loop().run_in_executor(self._worker, self._disconnect)
        self._worker.shutdown()
        await self._inner.close()

    def _key(self, text: str, role: Role) -> bytes:
        return sha256(f"{self._inner.name}\0{role}\0{text}".encode("utf-8", "surrogatepass")).digest()

    async def _on_disk(self, work: Callable[[apsw.Connection, A], T], argument: A) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._translated, work, argument)

    def _translated(self, work: Callable[[apsw.Connection, A], T], argument: A) -> T:
        try:
            self._db = self._db or _connect(self._path)
            return work(self._db, argument)
        except (apsw.Error, OSError) as error:
            raise EmbeddingError(
                f"the embedding cache {self._path} cannot be used ({error}): delete it, or free some disk space"
            ) from error

    def _disconnect(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def _connect(path: Path) -> apsw.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    db = apsw.Connection(str(path))
    db.set_busy_timeout(BUSY_SECONDS * 1000)
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "normal")  # a power cut may cost the last vectors: they can be made again
    db.execute(SCHEMA)
    return db


def _get(db: apsw.Connection, keys: Sequence[bytes]) -> dict[bytes, Vector]:
    found: dict[bytes, Vector] = {}
    for key in keys:
        for (vector,) in db.execute(GET, (key,)):
            found[key] = np.frombuffer(vector, "<f4")
    return found


def _put(db: apsw.Connection, vectors: dict[bytes, Vector]) -> None:
    with db:  # one transaction
        db.executemany(PUT, ((key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()))


def _slices(keys: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [keys[start : start + SLICE] for start in range(0, len(keys), SLICE)]
