"""The ledger methods that all databases share.

Each backend has a `ledger.sql` with the same names and parameters, and a subclass that runs the statements and converts
times and lists. Work that takes several dependent statements is in the subclass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from recollect.ports import SESSIONS, USES, Entry, Lag
from recollect.types import Access, Bucket, Grant, Leg, LegUsage, Reply, Token, Usage, Use

Step: TypeAlias = tuple[str, dict[str, Any]]
"""The name of a statement, and its parameters."""


class Done(NamedTuple):
    """What a statement returned, and how many rows it changed."""

    rows: Sequence[tuple[Any, ...]]
    changed: int


class SqlLedger(ABC):
    """See `recollect.ports.Ledger`."""

    @abstractmethod
    async def _read(self, statement: str, space: str | None = None, **values: Any) -> Sequence[tuple[Any, ...]]:
        """The rows that a statement returns. The number of the space is its parameter `space`."""

    @abstractmethod
    async def _write(self, *steps: Step, space: str | None = None, begin: bool = False) -> list[Done]:
        """Run statements in one transaction; `begin` adds the space if it is new."""

    @abstractmethod
    def _moment(self, value: Any) -> datetime:
        """A time as the database returns it."""

    @abstractmethod
    def _names(self, value: Any) -> tuple[str, ...]:
        """A list of names as the database returns it."""

    async def _look_up(self, statement: str, **values: Any) -> Sequence[tuple[Any, ...]]:
        """Read a row by its key."""
        return await self._read(statement, **values)

    async def _change(self, statement: str, space: str | None = None, *, begin: bool = False, **values: Any) -> int:
        """How many rows a statement changed."""
        (done,) = await self._write((statement, values), space=space, begin=begin)
        return done.changed

    def _optional_moment(self, value: Any) -> datetime | None:
        return None if value is None else self._moment(value)

    # Tokens and sessions

    async def add_token(self, token: Token, digest: bytes) -> None:
        await self._change(
            "add_token",
            id=token.id,
            digest=digest,
            name=token.name,
            spaces=list(token.spaces),
            scope=token.scope,
            created_at=token.created_at,
            expires_at=token.expires_at,
            revoked_at=token.revoked_at,
        )

    async def token(self, id: str) -> tuple[Token, bytes] | None:
        for digest, *columns in await self._look_up("token", id=id):
            return self._token(*columns), digest
        return None

    async def tokens(self) -> Sequence[Token]:
        return [self._token(*columns) for columns in await self._read("tokens")]

    async def revoke_token(self, id: str, now: datetime) -> bool:
        revoked, _ = await self._write(("revoke_token", {"id": id, "now": now}), ("end_sessions_of", {"id": id}))
        return revoked.changed > 0

    async def any_token(self) -> bool:
        ((there,),) = await self._read("any_token")
        return bool(there)

    async def add_session(self, digest: bytes, token: str, *, now: datetime, expires: datetime) -> None:
        await self._write(
            ("end_expired_sessions", {"now": now}),
            ("end_oldest_sessions", {"token": token, "kept": SESSIONS - 1}),
            ("add_session", {"digest": digest, "token": token, "now": now, "expires": expires}),
        )

    async def session(self, digest: bytes) -> tuple[Token, datetime] | None:
        for expires, *columns in await self._look_up("session", digest=digest):
            return self._token(*columns), self._moment(expires)
        return None

    async def end_session(self, digest: bytes) -> bool:
        return await self._change("end_session", digest=digest) > 0

    def _token(self, id: str, name: str, spaces: Any, scope: Any, created: Any, expires: Any, revoked: Any) -> Token:
        ends = self._optional_moment(expires), self._optional_moment(revoked)
        return Token(id, name, self._names(spaces), scope, self._moment(created), *ends)

    # Grants

    async def grant(self, space: str, namespace: str, to: str, access: Access) -> None:
        await self._change("grant", space, begin=True, namespace=namespace, to=to, access=access)

    async def revoke(self, space: str, namespace: str, to: str) -> bool:
        return await self._change("revoke", space, namespace=namespace, to=to) > 0

    async def accept(self, space: str, namespace: str, to: str) -> bool:
        return await self._change("accept", space, namespace=namespace, to=to) > 0

    async def granted_by(self, space: str) -> Sequence[Grant]:
        return _grants(await self._read("granted_by", space))

    async def granted_to(self, space: str) -> Sequence[Grant]:
        return _grants(await self._read("granted_to", to=space, accepted=True))

    async def offered_to(self, space: str) -> Sequence[Grant]:
        return _grants(await self._read("granted_to", to=space, accepted=False))

    # Usage and scoring

    @abstractmethod
    async def count_usage(self, space: str, buckets: Sequence[Bucket]) -> None: ...

    async def usage(self, space: str, since: datetime) -> Sequence[Bucket]:
        rows = await self._read("usage", space, since=since)
        return [_bucket(self._moment(hour), list(of_hour)) for hour, of_hour in groupby(rows, key=itemgetter(0))]

    async def note_uses(self, space: str, uses: Sequence[Use]) -> None:
        noted: list[Step] = [("note_use", use._asdict()) for use in uses]
        await self._write(*noted, ("drop_oldest_uses", {"kept": USES}), space=space)

    async def uses(self, space: str) -> Sequence[Use]:
        return [Use(question, id, self._moment(at)) for question, id, at in await self._read("uses", space)]

    async def claim_scoring(self, space: str, *, before: datetime, now: datetime) -> str | None:
        (claimed,) = await self._write(("claim_scoring", {"before": before, "now": now}), space=space)
        return claimed.rows[0][0] if claimed.rows else None

    async def note_scoring(self, space: str, scored_at: datetime | None, after: str | None = None) -> None:
        await self._change("note_scoring", space, scored_at=scored_at, after=after)

    # Replies

    @abstractmethod
    async def claim(
        self, space: str, key: str, fingerprint: str, *, now: datetime, expires: datetime
    ) -> Reply | None: ...

    @abstractmethod
    async def reply(self, space: str, key: str, status: int, body: bytes, *, expires: datetime) -> None: ...

    @abstractmethod
    async def disclaim(self, space: str, key: str) -> None: ...

    # Outbox: triggers write the entries, see the schemas

    @abstractmethod
    async def feed(self, index: str, leg: Leg) -> None: ...

    async def enter(self, index: str, space: str | None = None, ids: Sequence[str] = ()) -> None:
        if space is None:
            await self._change("enter_all", index=index)
        else:
            await self._change("enter", space, index=index, ids=list(ids))

    async def waiting(self, index: str, *, limit: int) -> Sequence[Entry]:
        return [Entry(*found) for found in await self._read("waiting", index=index, limit=limit)]

    async def delivered(self, index: str, entries: Sequence[Entry]) -> None:
        await self._change("delivered", index=index, numbers=[entry.number for entry in entries])

    async def lag(self, index: str) -> Lag:
        ((waiting, since),) = await self._read("lag", index=index)
        return Lag(waiting, self._optional_moment(since))

    async def lease(self, index: str, holder: str, seconds: float) -> bool:
        return await self._change("lease", index=index, holder=holder, seconds=seconds) > 0

    async def release(self, index: str, holder: str) -> None:
        await self._change("release", index=index, holder=holder)


def recall_rows(buckets: Sequence[Bucket]) -> list[tuple[datetime, int, int, int]]:
    """Hour, recalls, degraded, failed. Sorted, so that two processes that count never deadlock."""
    return sorted((hour, counted.recalls, counted.degraded, counted.failed) for hour, counted in buckets)


def leg_rows(buckets: Sequence[Bucket]) -> list[tuple[Any, ...]]:
    """Hour, leg, and the numbers of `LegUsage` in its order; sorted for the same reason."""
    return sorted((hour, leg, *astuple(did)) for hour, counted in buckets for leg, did in counted.legs.items())


def _bucket(hour: datetime, rows: Sequence[tuple[Any, ...]]) -> Bucket:
    """From the rows of one hour: the hour, recalls, degraded, failed, and one leg's name and numbers, or nulls."""
    _, recalls, degraded, failed, *_ = rows[0]
    legs = {leg: LegUsage(*numbers) for _, _, _, _, leg, *numbers in rows if leg is not None}
    return Bucket(hour, Usage(recalls, degraded, failed, legs))


def _grants(rows: Iterable[tuple[Any, ...]]) -> list[Grant]:
    return [Grant(space, namespace, to, access, bool(accepted)) for space, namespace, to, access, accepted in rows]
