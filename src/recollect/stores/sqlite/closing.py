"""Whether a file holds all that was stored in it.

What is stored goes to the log beside the file (`-wal`) first, and into the file later, at the latest when the last user
closes it. A plain copy of a file that is open lacks what is in the log. It looks whole, so whoever closes the file
writes that down in it, and the first change takes it away. A file without that mark and without a log was not closed:
it was copied while it was open, or somebody removed its log. A copy that was made between the first change and the
moment when the file learnt of it is not seen.
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
"""The version of the schema from which on files are marked."""
AGAIN: Final = 0.05
"""Seconds before a file that seems not to have been closed is looked at again."""
Q = load(__name__, "backups.sql")
_log = logging.getLogger(__name__)


def companion(path: Path, ending: str) -> Path:
    """What stands beside a store under its name and an ending: the same for all links that lead to it."""
    file = path.resolve()
    return file.with_name(f"{file.name}{ending}")


def lost_log(path: Path) -> bool:
    """Whether a file was not closed though it has no log beside it. Ask before opening it. Another process may open or
    close it meanwhile, so it is looked at twice.
    """
    if not _is_torn(path):
        return False
    time.sleep(AGAIN)
    return _is_torn(path)


def _is_torn(path: Path) -> bool:
    log = companion(path, "-wal")
    if not path.exists() or log.exists():
        return False
    with suppress(apsw.Error):  # a file that cannot be read is not ours to judge here
        closed = _as_it_lies(path)
        return not closed and not log.exists()
    return False


def _as_it_lies(path: Path) -> bool:
    """Whether the file says that it was closed, or is too old to say so. Read without a log and without any lock."""
    db = apsw.Connection(
        f"{path.absolute().as_uri()}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        return db.pragma("user_version") < FIRST_MARKED or db.execute(Q["fact"], {"name": "closed"}).get is not None
    finally:
        db.close()


def note_lost_log(db: apsw.Connection, path: Path) -> None:
    """Write down what is soon seen no more."""
    _log.warning("%s was not closed, and its log is missing: what was stored in it last may be lost", path)
    with writing(db):
        now = datetime.now(UTC).isoformat(timespec="seconds")
        db.execute(Q["set_fact"], {"name": "log_lost", "value": now})


def note_change(db: apsw.Connection) -> bool:
    """Part of every change; whether it is the first since the file was closed, or sealed as a backup."""
    db.execute(Q["break_seal"])
    return db.changes() > 0


def take_over(db: apsw.Connection) -> None:
    """Let the file itself know of the first change. It is stored already, so a failure does not matter."""
    with suppress(apsw.Error):
        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def close(db: apsw.Connection) -> None:
    """Mark the file as closed before its last user closes it. If that fails it is opened with a warning next time."""
    with suppress(apsw.Error):
        if db.execute(Q["fact"], {"name": "closed"}).get is None:
            with writing(db):
                mark_closed(db)


def mark_closed(db: apsw.Connection) -> None:
    db.execute(Q["set_fact"], {"name": "closed", "value": 1})


def examine(db: apsw.Connection, path: Path) -> list[str]:
    """What is known about the wholeness of a file. Raises BackendError for a damaged one."""
    if (found := db.execute("PRAGMA quick_check(1)").get) != "ok":
        raise BackendError(f"{path} is damaged ({found}): restore it from a backup", backend="sqlite")
    since = db.execute(Q["fact"], {"name": "log_lost"}).get
    if since is None:
        return []
    return [
        f"when this file was opened at {since} it had not been closed, and its log ({path.name}-wal) was missing, as "
        "in a plain copy of a file that is in use: what was stored last may be lost; make copies by `recollect backup "
        "FILE`"
    ]
