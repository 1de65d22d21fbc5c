"""Vectors as Postgres sends and takes them in binary, many at once: one by one takes several times as long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recollect.stores.postgres.bulk import Database, Rows

if TYPE_CHECKING:
    from recollect.types import Vectors

_COPY_BEGINS: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
"""The signature, and that there is nothing to say beside it."""
_COPY_ENDS: Final = b"\xff\xff"
_NUMBERS: Final = {"vector": ">f4", "halfvec": ">f2"}


async def read_vectors(db: Database, sql: str, dimensions: int, **values: object) -> tuple[list[Any], Vectors]:
    """What a statement answers that asks for names or numbers and their vectors. Each vector comes as four bytes that
    say how long it is, and then its numbers.
    """
    found = await (await db.execute(sql, values, binary=True)).fetchall()
    sent = np.dtype([("head", "V4"), ("numbers", ">f4", (dimensions,))])
    vectors = np.frombuffer(b"".join([blob for _, blob in found]), sent)["numbers"]
    return [name for name, _ in found], vectors.astype(np.float32)


def copied(rows: Rows, storage: str) -> bytes:
    """Spaces, rows and their vectors, of one length and stored as `storage`, as COPY takes them. In front of a row
    stands how many columns it has, in front of each column how many bytes.
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
