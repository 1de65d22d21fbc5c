"""The ledger in an SQLite file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from recollect.stores.contents import json_text
from recollect.stores.ledger import Done, SqlLedger, Step, leg_rows, recall_rows
from recollect.stores.named_sql import load
from recollect.stores.sqlite.connections import Connections
from recollect.stores.sqlite.owners import Owner
from recollect.stores.sqlite.rows import NOWHERE, ensure_space, micros, moment, number_of
from recollect.types import Bucket, Leg, Reply

Q = load(__name__, "ledger.sql")


class SqliteLedger(SqlLedger):
    """What a store file holds beside its memories."""

    def __init__(self, connections: Connections, owner: Owner) -> None:
        self._connections = connections
        self._owner = owner

    async def _read(self, statement: str, space: str | None = None, **values: Any) -> Sequence[tuple[Any, ...]]:
        return await self._connections.read(lambda db: _run(db, statement, _number(db, space), values).rows)

    async def _look_up(self, statement: str, **values: Any) -> Sequence[tuple[Any, ...]]:
        return await self._connections.read_now(lambda db: _run(db, statement, None, values).rows)

    async def _write(self, *steps: Step, space: str | None = None, begin: bool = False) -> list[Done]:
        def work(db: apsw.Connection) -> list[Done]:
            number = ensure_space(db, space) if begin and space else _number(db, space)
            return [_run(db, statement, number, values) for statement, values in steps]

        return await self._connections.write(work)

    def _moment(self, value: int) -> datetime:
        return moment(value)

    def _names(self, value: str) -> tuple[str, ...]:
        return tuple(json.loads(value))

    async def count_usage(self, space: str, buckets: Sequence[Bucket]) -> None:
        """No tick: how often something is asked decides nothing about what is found."""

        def work(db: apsw.Connection) -> None:
            number = _number(db, space)
            for statement, rows in (("count_recalls", recall_rows(buckets)), ("count_legs", leg_rows(buckets))):
                db.executemany(Q[statement], [(number, micros(hour), *rest) for hour, *rest in rows])

        await self._connections.write(work)

    async def claim_scoring(self, space: str, *, before: datetime, now: datetime) -> str | None:
        """Read first: mostly nothing is due, and then nobody waits for the lock of a writer."""
        ((due,),) = await self._read("is_scoring_due", space, before=before)
        return await super().claim_scoring(space, before=before, now=now) if due else None

    async def claim(self, space: str, key: str, fingerprint: str, *, now: datetime, expires: datetime) -> Reply | None:
        def work(db: apsw.Connection) -> Reply | None:
            number = ensure_space(db, space)
            self._free(db, number, key)
            claimed = {"key": key, "fingerprint": fingerprint, "expires": expires, "owner": self._owner.name()}
            if not _run(db, "claim", number, {**claimed, "now": now}).rows:
                return Reply(*_run(db, "reply", number, {"key": key}).rows[0])
            _run(db, "prune", number, {"now": now})
            return None

        return await self._connections.write(work)

    async def reply(self, space: str, key: str, status: int, body: bytes, *, expires: datetime) -> None:
        given = {"key": key, "status": status, "body": body, "expires": expires}
        await self._as_owner("answer", space, given)

    async def disclaim(self, space: str, key: str) -> None:
        await self._as_owner("disclaim", space, {"key": key})

    async def feed(self, index: str, leg: Leg) -> None:
        def work(db: apsw.Connection) -> None:
            if _run(db, "feed", None, {"index": index, "leg": leg}).changed:
                _run(db, "enter_all", None, {"index": index})

        await self._connections.write(work)

    async def _as_owner(self, statement: str, space: str, values: dict[str, Any]) -> None:
        """Run a statement for a key of this owner. Owners are used by the thread that writes, and no other."""
        await self._connections.write(
            lambda db: _run(db, statement, _number(db, space), {**values, "owner": self._owner.name()})
        )

    def _free(self, db: apsw.Connection, space: int, key: str) -> None:
        """Release a key whose owner is dead."""
        for (name,) in _run(db, "under_way", space, {"key": key}).rows:
            if self._owner.is_dead(name):
                _run(db, "disclaim", space, {"key": key, "owner": name})


def _number(db: apsw.Connection, space: str | None) -> int:
    return NOWHERE if space is None else number_of(db, space)


def _run(db: apsw.Connection, statement: str, space: int | None, values: dict[str, Any]) -> Done:
    bound = {name: _bound(value) for name, value in values.items()}
    rows = db.execute(Q[statement], {"space": space, **bound}).fetchall()
    return Done(rows, db.changes())


def _bound(value: Any) -> Any:
    """A parameter as SQLite takes it: times as microseconds, lists as JSON."""
    match value:
        case datetime():
            return micros(value)
        case list():
            return json_text(value)
        case _:
            return value
