"""Idempotency keys: a request that is sent several times runs once, and gets the same answer each time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from recollect.limits import check_name
from recollect.ports import Ledger
from recollect.types import Reply

UNDER_WAY: Final = timedelta(minutes=10)
"""How long a request may take. After that, its process is assumed to be gone."""
KEPT: Final = timedelta(hours=24)
"""How long an answer is kept."""


class Replies:
    """The answers to requests, by idempotency key: `AsyncRecollect.replies`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def claim(self, space: str, key: str, fingerprint: str) -> Reply | None:
        """Claim a key before running its request. None: run it, then call `reply` or `release`. Otherwise the earlier
        request's reply, without a status while that request is running. `fingerprint` identifies the request's content.
        """
        now = datetime.now(UTC)
        name = check_name("idempotency key", key)
        return await self._ledger.claim(space, name, fingerprint, now=now, expires=now + UNDER_WAY)

    async def reply(self, space: str, key: str, status: int, body: bytes) -> None:
        await self._ledger.reply(space, key, status, body, expires=datetime.now(UTC) + KEPT)

    async def release(self, space: str, key: str) -> None:
        """Let a failed request be run again."""
        await self._ledger.disclaim(space, key)
