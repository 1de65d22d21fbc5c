"""What is kept beside the memories: tokens, grants, usage, replies, and an outbox for external indexes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from recollect.types import Access, Bucket, Grant, Leg, Reply, Token, Use

SESSIONS = 100
"""Sign-ins per token; a further one ends the oldest."""

USES: Final = 10_000
"""How many uses of memories a space keeps with the question that led to them."""


class Entry(NamedTuple):
    """A memory whose change has not reached an external index yet; the number identifies its last change."""

    space: str
    id: str
    number: int


class Lag(NamedTuple):
    """How many changes have not reached an index, and since when the oldest waits."""

    waiting: int
    since: datetime | None


class Ledger(Protocol):
    """What a store keeps beside the memories: tokens, grants, usage, replies and an outbox."""

    # Tokens and sessions: the tokens that servers are called with. They belong to whoever runs the store, not to a
    # space: a token is looked up before its spaces are known. None is ever deleted: a revoked one stays known.

    async def add_token(self, token: Token, digest: bytes) -> None:
        """Store a new token with the digest of its secret, durable on return."""

    async def token(self, id: str) -> tuple[Token, bytes] | None:
        """A token, revoked or expired ones too, and its secret's digest."""

    async def tokens(self) -> Sequence[Token]:
        """All tokens, revoked and expired ones too, oldest first."""

    async def revoke_token(self, id: str, now: datetime) -> bool:
        """Revoke a token, and end its sessions; whether there was one that had not been revoked."""

    async def any_token(self) -> bool:
        """Whether a token was ever made."""

    async def add_session(self, digest: bytes, token: str, *, now: datetime, expires: datetime) -> None:
        """Store a sign-in by this token, with the digest of the browser's secret. Deletes expired sessions, and this
        token's oldest beyond `SESSIONS`.
        """

    async def session(self, digest: bytes) -> tuple[Token, datetime] | None:
        """The token of a session, expired ones too, and when the session ends."""

    async def end_session(self, digest: bytes) -> bool:
        """End a session; whether there was one."""

    # Grants: what spaces let each other see. Nothing here changes what another call reaches. Whoever asks for a memory
    # of another space asks in that space, and looks here first.

    async def grant(self, space: str, namespace: str, to: str, access: Access) -> None:
        """Offer another space access to a namespace of this one. An existing offer or grant only changes its access."""

    async def revoke(self, space: str, namespace: str, to: str) -> bool:
        """Take a grant of this space back, accepted or not; whether there was one."""

    async def accept(self, space: str, namespace: str, to: str) -> bool:
        """Accept what this space offers, for the space it is offered to; whether there is such an offer or grant."""

    async def granted_by(self, space: str) -> Sequence[Grant]:
        """What this space lets others see, or offers them, by namespace and name."""

    async def granted_to(self, space: str) -> Sequence[Grant]:
        """What others let this space see and it has accepted, by space and namespace."""

    async def offered_to(self, space: str) -> Sequence[Grant]:
        """What others offer this space and it has not accepted, by space and namespace."""

    # Usage: how often a space is asked, by the hour, and when its memories were last scored.

    async def count_usage(self, space: str, buckets: Sequence[Bucket]) -> None:
        """Add to what was counted for these hours, by whichever process. A space without memories counts nothing."""

    async def usage(self, space: str, since: datetime) -> Sequence[Bucket]:
        """What was counted for the hours that begin then or later, oldest first."""

    async def note_uses(self, space: str, uses: Sequence[Use]) -> None:
        """Note which questions led to the use of memories. Of a space the newest `USES` are kept. Those of a memory go
        when it is forgotten; ids that are not there are ignored.
        """

    async def uses(self, space: str) -> Sequence[Use]:
        """Which questions led to the use of which memories, in the order in which they were noted."""

    async def claim_scoring(self, space: str, *, before: datetime, now: datetime) -> str | None:
        """Claim the scoring of a space that was last scored before `before`. The answer is the id after which to begin,
        "" for the first; None if it is not due, or another process claimed it. A new space counts as scored.
        """

    async def note_scoring(self, space: str, scored_at: datetime | None, after: str | None = None) -> None:
        """Record when the qualities were updated; without a time, that they are due, from an id on."""

    # Replies: what requests with an idempotency key were answered with, so that none is run twice. A space begins with
    # its first claim, if it has not begun yet.

    async def claim(self, space: str, key: str, fingerprint: str, *, now: datetime, expires: datetime) -> Reply | None:
        """Claim a key for a request, until it expires. None: this request, and no other, has the key. A reply: another
        request has it, without a status while it is running. Expired keys are taken over, and others that have expired
        are removed, some at a time.
        """

    async def reply(self, space: str, key: str, status: int, body: bytes, *, expires: datetime) -> None:
        """Store the answer to a running request, until it expires. An existing answer stays."""

    async def disclaim(self, space: str, key: str) -> None:
        """Release a key whose request failed. An existing answer stays."""

    # Outbox: the changes that external indexes have not seen yet, each noted in the transaction that made it.

    async def feed(self, index: str, leg: Leg) -> None:
        """Record every change for this index from now on, in all processes; the first time, everything there is."""

    async def enter(self, index: str, space: str | None = None, ids: Sequence[str] = ()) -> None:
        """Send these ids to an index again, or without a space, everything."""

    async def waiting(self, index: str, *, limit: int) -> Sequence[Entry]:
        """The oldest entries of all spaces, in order."""

    async def delivered(self, index: str, entries: Sequence[Entry]) -> None:
        """Remove entries. One whose memory has changed since it was read stays, under another number."""

    async def lag(self, index: str) -> Lag: ...

    async def lease(self, index: str, holder: str, seconds: float) -> bool:
        """Whether this holder alone may feed the index for this long. Calling again in time renews the lease."""

    async def release(self, index: str, holder: str) -> None:
        """Let others feed the index."""
