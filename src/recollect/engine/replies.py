"""Requests with an idempotency key: run once, however often they are sent, and answered the same each time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from recollect.limits import check_name
from recollect.ports import Ledger
from recollect.types import Reply

UNDER_WAY: Final = timedelta(minutes=10)
"""How long a request may take. Of one that has not been answered by then it is assumed that its process was lost."""
KEPT: Final = timedelta(hours=24)
"""How long an answer is kept."""


class Replies:
    """What requests were answered with, by their idempotency keys. Get it from `AsyncRecollect.replies`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def claim(self, space: str, key: str, fingerprint: str) -> Reply | None:
        """Whether a request is to be run: None, and it is to be followed by `reply` or `release`. Else what is known of
        the one with this key, with no status while that is still under way. `fingerprint` says which request it is.
        """
        now = datetime.now(UTC)
        name = check_name("idempotency key", key)
        return await self._ledger.claim(space, name, fingerprint, now=now, expires=now + UNDER_WAY)

    async def reply(self, space: str, key: str, status: int, body: bytes) -> None:
        """Keep the answer to a request."""
        await self._ledger.reply(space, key, status, body, expires=datetime.now(UTC) + KEPT)

    async def release(self, space: str, key: str) -> None:
        """Let a request be run again, for it came to nothing."""
        await self._ledger.disclaim(space, key)
