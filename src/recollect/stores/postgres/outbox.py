"""What external indexes have still to be told. The entries are written by triggers: see the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from recollect.ports import Entry, Lag
from recollect.stores.contents import utc
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.rows import firsts, rows_of
from recollect.types import Leg

TRIGGERS: Final = {
    "memories": ("note_remembered", "note_changed", "note_forgotten"),
    "edges": ("note_linked", "note_link_changed", "note_unlinked"),
}
"""What tells of changes, by table; other triggers of these tables are none of the outbox's business."""
VECTOR_TRIGGERS: Final = ("note_embedded", "note_unembedded")

Q = load(__name__, "outbox.sql")


async def feed(db: Database, index: str, leg: Leg) -> None:
    """Tell an index of every change; the first time of everything there is."""
    if await rows_of(db, Q["feed"], index=index, leg=leg):
        tables = TRIGGERS | dict.fromkeys(await firsts(db, Q["vector_tables"]), VECTOR_TRIGGERS)
        for table, triggers in tables.items():
            enabled = ", ".join(f"ENABLE TRIGGER {trigger}" for trigger in triggers)
            await db.execute(Q["awaken"].format(table=table, triggers=enabled))
        await enter_all(db, index)


async def watch_vectors(db: Database, table: str) -> None:
    """Let a new table of vectors tell of changes, if any index wants to know."""
    await db.execute(Q["watch_vectors"].format(table=table))
    if not await rows_of(db, Q["is_fed"]):
        await db.execute(Q["rest"].format(table=table))


async def enter_all(db: Database, index: str) -> None:
    await db.execute(Q["enter_all"], {"index": index})


async def enter(db: Database, space: int, index: str, ids: Sequence[str]) -> None:
    await db.execute(Q["enter"], {"space": space, "index": index, "ids": list(ids)})


async def waiting(db: Database, index: str, limit: int) -> list[Entry]:
    return [Entry(*found) for found in await rows_of(db, Q["waiting"], index=index, limit=limit)]


async def delivered(db: Database, index: str, entries: Sequence[Entry]) -> None:
    await db.execute(Q["delivered"], {"index": index, "numbers": [entry.number for entry in entries]})


async def lag(db: Database, index: str) -> Lag:
    ((waiting, since),) = await rows_of(db, Q["lag"], index=index)
    return Lag(waiting, None if since is None else utc(since))


async def lease(db: Database, index: str, holder: str, seconds: float) -> bool:
    return bool(await rows_of(db, Q["lease"], index=index, holder=holder, seconds=seconds))


async def release(db: Database, index: str, holder: str) -> None:
    await db.execute(Q["release"], {"index": index, "holder": holder})
