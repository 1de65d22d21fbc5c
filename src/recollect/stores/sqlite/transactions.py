"""The writing transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


@contextmanager
def writing(db: apsw.Connection) -> Iterator[None]:
    """All of the block or nothing, begun as the only writer there is.

    Not `with db`: apsw then keeps the interpreter's lock while it waits for another writer and for the disk, and the
    event loop stands still as long; its `execute` lets go of it.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite undoes it by itself when the disk is full
            db.execute("ROLLBACK")
        raise
