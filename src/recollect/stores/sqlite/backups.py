"""A backup: the file as it is at one moment, written while others go on, and sealed by a checksum of its contents.

The seal stands in the table `facts`. The first change to the file takes it away, for then it is a store like any other;
as long as it is there the contents are those that were sealed, or the file is damaged.
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
"""Pages that are copied at a time."""
Q = load(__name__, "backups.sql")


@dataclass(frozen=True, slots=True)
class Seal:
    """What a backup holds: memories by space, and the checksum of everything."""

    made_at: str
    spaces: Mapping[str, int]
    digest: str


def write(db: apsw.Connection, file: Path) -> dict[str, int]:
    """Copy what a connection sees into a new file; how many memories of each space that are. The connection holds one
    snapshot all along, so the copy is of one moment.
    """
    target = apsw.Connection(str(file))
    try:
        with target.backup("main", db, "main") as backup:
            while not backup.done:
                backup.step(PAGES)
    finally:
        target.close()
    return _memories(db)


def seal(db: apsw.Connection, file: Path) -> Seal:
    """Check a file that was just written, and seal it. It is left as a single file, without a log beside it."""
    db.pragma("journal_mode", "delete")
    if (found := db.execute("PRAGMA integrity_check(1)").get) != "ok":
        raise BackendError(f"the backup in {file} did not turn out whole ({found}): try again", backend="sqlite")
    made = Seal(datetime.now(UTC).isoformat(timespec="seconds"), _memories(db), _digest(db))
    with writing(db):
        db.execute(Q["set_fact"], {"name": "backup", "value": json.dumps(asdict(made))})
        closing.mark_closed(db)
    return made


def verify(db: apsw.Connection, file: Path) -> list[str]:
    """What to say of a file that is a backup, nothing of one that is not. Raises BackendError unless it holds what was
    sealed.
    """
    value = db.execute(Q["fact"], {"name": "backup"}).get
    if value is None:
        return []
    made = Seal(**json.loads(value))
    if _memories(db) != made.spaces or _digest(db) != made.digest:
        raise BackendError(
            f"{file} is a backup of {made.made_at}, and no longer holds what was written then: it was damaged, or "
            "changed by another program; use another backup",
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
    """Over every row of every table, the seal itself left out."""
    digest = sha256()
    for name, condition in db.execute(Q["tables"]).fetchall():
        digest.update(_encoded(name))
        for row in db.execute(Q["rows"].format(table=name, condition=condition)):
            digest.update(b"".join(map(_encoded, row)))
    return digest.hexdigest()


def _encoded(value: str | bytes | int | float | None) -> bytes:
    """A value as bytes that no other value has."""
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
