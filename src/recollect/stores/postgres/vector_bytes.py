"""Vectors in Postgres' binary format, many at once: one by one takes several times as long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recollect.stores.postgres.bulk import Database, Rows

if TYPE_CHECKING:
    from recollect.types import Vectors

_COPY_BEGINS: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
"""The signature, empty flags and no header extension."""
_COPY_ENDS: Final = b"\xff\xff"
_NUMBERS: Final = {"vector": ">f4", "halfvec": ">f2"}


async def read_vectors(db: Database, sql: str, dimensions: int, **values: object) -> tuple[list[Any], Vectors]:
    """The keys and vectors that a statement returns. A vector is sent as a header of four bytes and its numbers."""
    found = await (await db.execute(sql, values, binary=True)).fetchall()
    sent = np.dtype([("head", "V4"), ("numbers", ">f4", (dimensions,))])
    vectors = np.frombuffer(b"".join([blob for _, blob in found]), sent)["numbers"]
    return [name for name, _ in found], vectors.astype(np.float32)


def copied(rows: Rows, storage: str) -> bytes:
    """Spaces, rows and vectors in the format of COPY: each row begins with its number of columns, each column with its
    number of bytes.
    """
    spaces, numbers, vectors = zip(*rows, strict=True)
    kind = np.dtype((_NUMBERS[storage], (len(vectors[0]),)))
    sent = np.empty(
        len(rows),
        [("columns", ">i2"), ("space", ">i4", (2,)), ("row_size", ">i4"), ("row", ">i8"),
         ("vector_size", ">i4"), ("head", ">i2", (2,)), ("vector", kind)],
    )  # fmt: skip
    sent["columns"] = 3
    sent["space"] = [(4, space) for space in spaces]
    sent["row_size"], sent["row"] = 8, numbers
    sent["vector_size"] = 4 + kind.itemsize
    sent["head"] = (len(vectors[0]), 0)
    sent["vector"] = vectors
    return _COPY_BEGINS + sent.tobytes() + _COPY_ENDS
