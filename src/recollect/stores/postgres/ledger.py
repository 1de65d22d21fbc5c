"""The ledger in a Postgres database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from recollect.limits import utc
from recollect.stores.ledger import Done, SqlLedger, Step, leg_rows, recall_rows
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.numbers import Numbers
from recollect.stores.postgres.owners import GRACE, Owner
from recollect.stores.postgres.rows import ensure_space
from recollect.types import Bucket, Leg, Reply

Q = load(__name__, "ledger.sql")

RECALLS: Final = ("hours", "recalls", "degraded", "failed")
LEGS: Final = ("leg_hours", "legs", "hits", "searches", "ms", "late", "leg_failed", "skipped")
TRIGGERS: Final = {
    "memories": ("note_remembered", "note_changed", "note_forgotten"),
    "edges": ("note_linked", "note_link_changed", "note_unlinked"),
}
"""The triggers of each table that write to the outbox. Tables may have others."""
VECTOR_TRIGGERS: Final = ("note_embedded", "note_unembedded")


class PostgresLedger(SqlLedger):
    """What a database holds beside its memories."""

    def __init__(self, numbers: Numbers, owner: Owner) -> None:
        self._numbers = numbers
        self._owner = owner

    async def _read(self, statement: str, space: str | None = None, **values: Any) -> Sequence[tuple[Any, ...]]:
        number = None if space is None else await self._numbers.of(space)
        done = await self._numbers.connections().read(
            lambda db: _run(db, statement, number, values), space=number, share="rows"
        )
        return done.rows

    async def _write(self, *steps: Step, space: str | None = None, begin: bool = False) -> list[Done]:
        number = None if space is None or begin else await self._numbers.of(space)

        async def work(db: Database) -> list[Done]:
            here = await ensure_space(db, space) if begin and space else number
            return [await _run(db, statement, here, values) for statement, values in steps]

        return await self._numbers.connections().write(work, space=number)

    def _moment(self, value: datetime) -> datetime:
        return utc(value)

    def _names(self, value: list[str]) -> tuple[str, ...]:
        return tuple(value)

    async def count_usage(self, space: str, buckets: Sequence[Bucket]) -> None:
        columns = _columns(RECALLS, recall_rows(buckets)) | _columns(LEGS, leg_rows(buckets))
        await self._write(("count", columns), space=space)

    async def claim(self, space: str, key: str, fingerprint: str, *, now: datetime, expires: datetime) -> Reply | None:
        claimed = {"key": key, "fingerprint": fingerprint, "expires": expires, "owner": await self._owner.number()}

        async def work(db: Database) -> Reply | None:
            number = await ensure_space(db, space)
            if not (await _run(db, "claim", number, {**claimed, "now": now, "dead": dead})).rows:
                return Reply(*(await _run(db, "reply", number, {"key": key})).rows[0])
            await _run(db, "prune", number, {"now": now})
            return None

        dead = None
        held = await self._numbers.connections().write(work)
        if held is None or held.status is not None:
            return held
        dead = await self._dead_owner(space, key)
        return await self._numbers.connections().write(work) if dead else held

    async def _dead_owner(self, space: str, key: str) -> int | None:
        """Who owns a key that is under way, if that is nobody any more: one that lives has its lock again by and by."""
        for ask_again in (True, False):
            for (owner,) in await self._read("missing_owner", space, key=key):
                if ask_again:
                    await asyncio.sleep(GRACE)
                else:
                    return int(owner)
        return None

    async def reply(self, space: str, key: str, status: int, body: bytes, *, expires: datetime) -> None:
        owner = await self._owner.number()
        await self._change("answer", space, key=key, status=status, body=body, expires=expires, owner=owner)

    async def disclaim(self, space: str, key: str) -> None:
        await self._change("disclaim", space, key=key, owner=await self._owner.number())

    async def feed(self, index: str, leg: Leg) -> None:
        async def work(db: Database) -> None:
            if (await _run(db, "feed", None, {"index": index, "leg": leg})).changed:
                await _enable_triggers(db)
                await _enter_all(db, index)

        await self._numbers.connections().write(work)

    async def enter(self, index: str, space: str | None = None, ids: Sequence[str] = ()) -> None:
        if space is None:
            await self._numbers.connections().write(lambda db: _enter_all(db, index))
        else:
            await super().enter(index, space, ids)


async def _enter_all(db: Database, index: str) -> None:
    """Everything there is, space by space: with row security a transaction sees those that it enters and no others."""
    for (number,) in (await _run(db, "space_numbers", None, {})).rows:
        await _run(db, "enter_space", number, {})
        await _run(db, "enter_all", number, {"index": index})


async def _enable_triggers(db: Database) -> None:
    generations = (await _run(db, "vector_tables", None, {})).rows
    for table, triggers in (TRIGGERS | {table: VECTOR_TRIGGERS for (table,) in generations}).items():
        enabled = ", ".join(f"ENABLE TRIGGER {trigger}" for trigger in triggers)
        await db.execute(Q["enable_triggers"].format(table=table, triggers=enabled))


async def _run(db: Database, statement: str, space: int | None, values: dict[str, Any]) -> Done:
    bound = {name: utc(value) if isinstance(value, datetime) else value for name, value in values.items()}
    cursor = await db.execute(Q[statement], {"space": space, **bound})
    return Done(await cursor.fetchall() if cursor.description else [], cursor.rowcount)


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Rows as one list for each column."""
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
