"""The writing transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


@contextmanager
def writing(db: apsw.Connection) -> Iterator[None]:
    """Run a block in one write transaction.

    Not `with db`: apsw would hold the interpreter's lock while it waits for another writer or the disk, and block the
    event loop. Its `execute` releases the lock.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite rolls back by itself when the disk is full
            db.execute("ROLLBACK")
        raise
