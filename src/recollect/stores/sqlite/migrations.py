"""Checks that a file can be opened as a store, and migrates it from older versions.

`sql/schema.sql` is the current schema, which a new file gets. `sql/migrations/NNN_what.sql` leads from version NNN - 1
to NNN, starting with 002; a test proves that both ways end in the same schema. SQLite's `application_id` in the header
marks a file as ours, and `user_version` is the schema version.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import apsw

from recollect.errors import BackendError, SchemaOutdated
from recollect.stores.named_sql import newest, read, steps_beside
from recollect.stores.nearest import text_digest
from recollect.stores.sqlite import closing
from recollect.stores.sqlite.transactions import writing

APPLICATION_ID: Final = int.from_bytes(b"RCLT", "big")
PAGE_SIZE: Final = 8192
"""Fits five vectors of 384 numbers; SQLite's default of 4096 bytes fits only two."""
_MAGIC = b"SQLite format 3\x00"


def shipped() -> Mapping[int, str]:
    return steps_beside(__name__)


def inspect(path: Path) -> None:
    """Raise for a file that is not a store, or a newer one, by its header alone, so that SQLite never opens it. A
    missing or empty file is fine.
    """
    header = _header(path)
    ours = header.startswith(_MAGIC) and int.from_bytes(header[68:72], "big") == APPLICATION_ID
    if header and not ours:
        raise _not_ours(path)
    _refuse_newer(path, int.from_bytes(header[60:64], "big"), newest(shipped()))


def steps(path: Path) -> list[str]:
    """The steps from a file to the newest version, in words. Raises what `inspect` raises."""
    inspect(path)
    header = _header(path)
    target = newest(shipped())
    if not header:
        return [f"make {path} with schema version {target}"]
    version = int.from_bytes(header[60:64], "big")
    return [f"bring {path} from schema version {n} to {n + 1}" for n in range(version, target)]


def prepare(db: apsw.Connection, path: Path) -> None:
    """Make a file that `inspect` let through a store of the newest version."""
    _stamp(db, path)
    if db.pragma("journal_mode", "wal") != "wal":
        raise BackendError(
            f"{path} is on a file system where processes cannot share memory: put the store on a local disk",
            backend="sqlite",
        )
    before = db.pragma("user_version")
    migrate(db, path, read(__name__, "schema.sql"), shipped())
    if db.pragma("user_version") != before:
        with writing(db):
            closing.note_change(db)


def migrate(db: apsw.Connection, path: Path, schema: str, steps: Mapping[int, str]) -> None:
    """Bring a stamped file to the newest version in one transaction; a process that comes second finds it done."""
    target = newest(steps)
    if db.pragma("user_version") == target:
        return
    db.create_scalar_function("text_digest", _text_digest, 2)
    with writing(db):
        version = db.pragma("user_version")
        _refuse_newer(path, version, target)
        for sql in [schema] if version == 0 else [steps[number] for number in range(version + 1, target + 1)]:
            db.execute(sql)
        db.pragma("user_version", target)


def _text_digest(*given: Any) -> Any:
    return text_digest(*given)


def _header(path: Path) -> bytes:
    """The first hundred bytes, where SQLite says what a file is; none if there is no file. They are read by SQLite's
    own means: POSIX drops all locks that a process has on a file when it closes any descriptor of it, and SQLite waits
    with that until nobody in this process needs them any more.
    """
    if not path.exists():
        return b""
    refused = errno.EISDIR if path.is_dir() else 0 if os.access(path, os.W_OK) else errno.EACCES
    if refused:
        raise OSError(refused, os.strerror(refused), str(path))
    file = apsw.VFSFile("", str(path.resolve()), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        return bytes(file.xRead(100, 0))
    finally:
        file.xClose()


def _stamp(db: apsw.Connection, path: Path) -> None:
    """Make an empty file ours. This must come before WAL mode, for only then is the stamp in the file itself, where
    `inspect` finds it, from the first moment on.
    """
    if _is_stamped(db):
        return
    db.pragma("page_size", PAGE_SIZE)
    with writing(db):
        if _is_stamped(db):  # another process was first
            return
        if db.execute("SELECT 1 FROM sqlite_schema").fetchone():
            raise _not_ours(path)
        db.pragma("application_id", APPLICATION_ID)


def _is_stamped(db: apsw.Connection) -> bool:
    return bool(db.pragma("application_id") == APPLICATION_ID)


def _not_ours(path: Path) -> BackendError:
    return BackendError(f"{path} is not a Recollect store; it was left as it is, name another file", backend="sqlite")


def _refuse_newer(path: Path, version: int, newest: int) -> None:
    if version > newest:
        raise SchemaOutdated(
            f"{path} is a store of version {version}, and this Recollect knows versions up to {newest}: "
            "upgrade it with `python3 -m pip install --upgrade recollect`",
            backend="sqlite",
        )
