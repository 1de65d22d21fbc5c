"""A copy of a file that was open is told from a file that was closed, and a damaged one from a whole one."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from recollect import Recollect
from recollect.stores.sqlite.migrations import steps

KILLED = """
import os, signal, sys
from recollect import Recollect

r = Recollect(sys.argv[1], embedder="hashing")
r.space("work").remember("stored and acknowledged")
os.kill(os.getpid(), signal.SIGKILL)
"""

ANOTHER_PROGRAM = """
import sqlite3, sys

db = sqlite3.connect(sys.argv[1], timeout=0)
db.execute("SELECT count(*) FROM memories").fetchone()
db.close()  # as its last user SQLite would take the log into the file, and remove it
"""


def opened(path: Path) -> Recollect:
    return Recollect(f"sqlite:///{path}", embedder="hashing")


def remember(path: Path, *texts: str) -> None:
    with opened(path) as r:
        for text in texts:
            r.space("work").remember(text)


def told(path: Path) -> str:
    with opened(path) as r:
        return " ".join(f"{check.ok} {check.detail}" for check in r.doctor().checks)


def test_a_plain_copy_of_an_open_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It lacks what is in the log. Opening it warns, and doctor says so, then and later."""
    store, copy = tmp_path / "memory.db", tmp_path / "copy.db"
    remember(store, "first")
    with opened(store) as r:
        r.space("work").remember("second")
        r.space("work").remember("third")
        shutil.copy(store, copy)
    with caplog.at_level(logging.WARNING, logger="recollect"):
        assert "the last changes may be lost" in told(copy)
    assert "its log is missing" in caplog.text
    assert "the last changes may be lost" in told(copy)
    assert "lost" not in told(store)


def test_files_that_were_closed(tmp_path: Path) -> None:
    """Closed by the last of several users, moved, copied, never written or only read: there is nothing to say."""
    store, copy = tmp_path / "memory.db", tmp_path / "copy.db"
    with opened(store) as one, opened(store) as other:
        one.space("work").remember("first")
        other.space("work").remember("second")
    assert "lost" not in told(store)
    with opened(store) as one:
        with opened(store) as other:
            other.space("work").remember("third")
        one.space("work").remember("fourth")
    shutil.copy(store, copy)
    assert "lost" not in told(copy)
    with opened(tmp_path / "empty.db"):
        pass
    assert "lost" not in told(tmp_path / "empty.db")


def test_a_crash_is_no_loss(tmp_path: Path) -> None:
    """The log is still there, and what is in it comes back: nothing is warned of."""
    store = tmp_path / "memory.db"
    remember(store, "first")
    killed = subprocess.run([sys.executable, "-c", KILLED, f"sqlite:///{store}"], check=False)
    assert killed.returncode < 0
    assert "lost" not in told(store)
    with opened(store) as r:
        assert r.space("work").stats().memories == 2
    assert "lost" not in told(store)


def test_a_damaged_file(tmp_path: Path) -> None:
    """Pages that do not fit together, as in a copy that was made during a write, are found by doctor."""
    store = tmp_path / "memory.db"
    remember(store, *(f"note {number}" for number in range(50)))
    with closing(sqlite3.connect(store)) as db:
        ((page,),) = db.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'tags_by_row' OR name = 'tags'"
        ).fetchmany(1)
        ((size,),) = db.execute("PRAGMA page_size").fetchall()
    with store.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    assert "False" in told(store)
    assert "restore it from a backup" in told(store)


def test_opening_a_file_twice_keeps_its_locks(tmp_path: Path) -> None:
    """A process that opens a store a second time, and one that only looks at its version, still keeps other programs
    from removing the log that it writes to.
    """
    store, log = tmp_path / "memory.db", tmp_path / "memory.db-wal"
    with opened(store) as first:
        first.space("work").remember("before")
        for look in (lambda: opened(store).close(), lambda: steps(store)):
            look()
            subprocess.run([sys.executable, "-c", ANOTHER_PROGRAM, str(store)], check=True)
            assert log.exists()
            first.space("work").remember(f"after {look}")
    with opened(store) as again:
        assert again.space("work").stats().memories == 3
