"""A backup: a snapshot of the file, written while others use it, and sealed with a checksum of its contents.

The seal is in the table `facts`. The first change to the file removes it, which makes the backup an ordinary store.
While the seal is there, contents that differ from it mean that the file is damaged.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

import apsw

from recollect.errors import BackendError
from recollect.stores.named_sql import load
from recollect.stores.sqlite import closing
from recollect.stores.sqlite.transactions import writing

PAGES: Final = 5_000
"""Pages copied at a time."""
Q = load(__name__, "backups.sql")


@dataclass(frozen=True, slots=True)
class Seal:
    """The contents of a backup: memories by space, and a checksum of everything."""

    made_at: str
    spaces: Mapping[str, int]
    digest: str


def write(db: apsw.Connection, file: Path) -> dict[str, int]:
    """Copy a connection's snapshot into a new file; memories by space."""
    target = apsw.Connection(str(file))
    try:
        with target.backup("main", db, "main") as backup:
            while not backup.done:
                backup.step(PAGES)
    finally:
        target.close()
    return _memories(db)


def seal(db: apsw.Connection, file: Path) -> Seal:
    """Check a file that was just written, and seal it. No log is left beside it."""
    db.pragma("journal_mode", "delete")
    if (found := db.execute("PRAGMA integrity_check(1)").get) != "ok":
        raise BackendError(f"the backup in {file} is damaged ({found}): try again", backend="sqlite")
    made = Seal(datetime.now(UTC).isoformat(timespec="seconds"), _memories(db), _digest(db))
    with writing(db):
        db.execute(Q["set_fact"], {"name": "backup", "value": json.dumps(asdict(made))})
        closing.mark_closed(db)
    return made


def verify(db: apsw.Connection, file: Path) -> list[str]:
    """A remark if the file is a backup. Raises BackendError if its contents differ from its seal."""
    value = db.execute(Q["fact"], {"name": "backup"}).get
    if value is None:
        return []
    made = Seal(**json.loads(value))
    if _memories(db) != made.spaces or _digest(db) != made.digest:
        raise BackendError(
            f"{file} is a backup of {made.made_at} that was damaged, or changed by another program: use another backup",
            backend="sqlite",
        )
    memories, spaces = sum(made.spaces.values()), len(made.spaces)
    return [
        f"this file is a backup of {made.made_at}, unchanged since: its {memories:,} memories in {spaces:,} "
        f"space{'' if spaces == 1 else 's'} agree with their checksum"
    ]


def _memories(db: apsw.Connection) -> dict[str, int]:
    return {str(name): int(memories) for name, memories in db.execute(Q["memories"])}


def _digest(db: apsw.Connection) -> str:
    """A checksum over every row of every table, without the seal."""
    digest = sha256()
    for name, condition in db.execute(Q["tables"]).fetchall():
        digest.update(_encoded(name))
        for row in db.execute(Q["rows"].format(table=name, condition=condition)):
            digest.update(b"".join(map(_encoded, row)))
    return digest.hexdigest()


def _encoded(value: str | bytes | int | float | None) -> bytes:
    """A value as unambiguous bytes."""
    match value:
        case str():
            text = value.encode("utf-8", "surrogatepass")
            return b"s%d:%b" % (len(text), text)
        case bytes():
            return b"b%d:%b" % (len(value), value)
        case float():
            return b"f" + struct.pack("<d", value)
        case _:
            return f"{value};".encode()
