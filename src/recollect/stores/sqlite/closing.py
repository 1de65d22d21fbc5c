"""Detects a file that lacks what was stored in it last.

Changes go to the log beside the file (`-wal`) first, and into the file later, at the latest when the last user closes
it. A plain copy of an open file lacks what is in the log, but looks whole. So closing the file marks it as closed, and
the first change removes the mark. A file with neither mark nor log was copied while it was open, or lost its log. A
copy made between the first change and the checkpoint after it is not detected.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from recollect.errors import BackendError
from recollect.stores.named_sql import load
from recollect.stores.sqlite.transactions import writing

FIRST_MARKED: Final = 3
"""The first schema version whose files are marked."""
AGAIN: Final = 0.05
"""Seconds before an unmarked file is checked again."""
Q = load(__name__, "backups.sql")
_log = logging.getLogger(__name__)


def companion(path: Path, ending: str) -> Path:
    """A file or folder beside the store, named after it; the same for all links to the store."""
    file = path.resolve()
    return file.with_name(f"{file.name}{ending}")


def lost_log(path: Path) -> bool:
    """Whether a file was not closed and has no log. Call it before opening the file. It checks twice, because another
    process may open or close the file meanwhile.
    """
    if not _is_torn(path):
        return False
    time.sleep(AGAIN)
    return _is_torn(path)


def _is_torn(path: Path) -> bool:
    log = companion(path, "-wal")
    if not path.exists() or log.exists():
        return False
    with suppress(apsw.Error):  # opening it reports the error
        closed = _as_it_lies(path)
        return not closed and not log.exists()
    return False


def _as_it_lies(path: Path) -> bool:
    """Whether the file is marked as closed, or too old to be marked. Read without its log and without a lock."""
    db = apsw.Connection(
        f"{path.absolute().as_uri()}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        return db.pragma("user_version") < FIRST_MARKED or db.execute(Q["fact"], {"name": "closed"}).get is not None
    finally:
        db.close()


def note_lost_log(db: apsw.Connection, path: Path) -> None:
    """Record the lost log in the file, and warn about it."""
    _log.warning("%s was not closed, and its log is missing: the last changes may be lost", path)
    with writing(db):
        now = datetime.now(UTC).isoformat(timespec="seconds")
        db.execute(Q["set_fact"], {"name": "log_lost", "value": now})


def note_change(db: apsw.Connection) -> bool:
    """Remove the marks of a closed file or backup; whether there were any. Part of every change."""
    db.execute(Q["break_seal"])
    return db.changes() > 0


def take_over(db: apsw.Connection) -> None:
    """Checkpoint the first change into the file. It is stored already, so a failure does not matter."""
    with suppress(apsw.Error):
        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def close(db: apsw.Connection) -> None:
    """Mark the file as closed. If that fails, the next open warns."""
    with suppress(apsw.Error):
        if db.execute(Q["fact"], {"name": "closed"}).get is None:
            with writing(db):
                mark_closed(db)


def mark_closed(db: apsw.Connection) -> None:
    db.execute(Q["set_fact"], {"name": "closed", "value": 1})


def check_whole(db: apsw.Connection, path: Path) -> list[str]:
    """A remark if the file may lack changes. Raises BackendError if it is damaged."""
    if (found := db.execute("PRAGMA quick_check(1)").get) != "ok":
        raise BackendError(f"{path} is damaged ({found}): restore it from a backup", backend="sqlite")
    since = db.execute(Q["fact"], {"name": "log_lost"}).get
    if since is None:
        return []
    return [
        f"this file was opened at {since} without having been closed, and its log ({path.name}-wal) was missing, as in "
        "a plain copy of a file in use, so the last changes may be lost: make copies with `recollect backup FILE`"
    ]
