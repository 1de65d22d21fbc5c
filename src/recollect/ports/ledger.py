"""What is kept beside the memories: tokens, grants, usage, replies, and an outbox for external indexes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from recollect.types import Access, Bucket, Grant, Leg, Reply, Token, Use

SESSIONS = 100
"""How many sign-ins by one token are in force at once; the oldest ends when there is one more."""

USES: Final = 10_000
"""How many uses of memories a space keeps with the question that led to them."""


class Entry(NamedTuple):
    """A memory that an external index has still to look at, whatever became of it; the number stands for its last
    change.
    """

    space: str
    id: str
    number: int


class Lag(NamedTuple):
    """How many memories an index has still to look at, and since when the first of them waits."""

    waiting: int
    since: datetime | None


class Ledger(Protocol):
    """What a store keeps beside the memories: tokens, grants, usage, replies and an outbox."""

    # Tokens and sessions: the tokens that servers are called with. They belong to whoever runs the store, not to a
    # space: a token is looked up before its spaces are known. None is ever deleted: a revoked one stays known.

    async def add_token(self, token: Token, digest: bytes) -> None:
        """Keep a new token, durable on return; of its secret the digest alone."""

    async def token(self, id: str) -> tuple[Token, bytes] | None:
        """A token, revoked or expired ones too, and its secret's digest."""

    async def tokens(self) -> Sequence[Token]:
        """All tokens, revoked and expired ones too, oldest first."""

    async def revoke_token(self, id: str, now: datetime) -> bool:
        """Revoke a token, and end its sessions; whether there was one that had not been revoked."""

    async def any_token(self) -> bool:
        """Whether a token was ever made."""

    async def add_session(self, digest: bytes, token: str, *, now: datetime, expires: datetime) -> None:
        """Keep a sign-in by this token; of what the browser holds the digest alone. Sessions that have expired by `now`
        go, and of this token's those beyond its newest `SESSIONS`.
        """

    async def session(self, digest: bytes) -> tuple[Token, datetime] | None:
        """The token of a session, expired ones too, and when the session ends."""

    async def end_session(self, digest: bytes) -> bool:
        """End a session; whether there was one."""

    # Grants: what spaces let each other see. Nothing here changes what another call reaches. Whoever asks for a memory
    # of another space asks in that space, and looks here first.

    async def grant(self, space: str, namespace: str, to: str, access: Access) -> None:
        """Offer another space to see a namespace of this one, or also to change it. Where it is offered or accepted
        already, only the access changes.
        """

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
        """Whether the qualities of the space were last brought up to date before then: if so, nobody else is told so
        from `now` on, and the answer is the id after which to begin, "" for the first. None: it is not due. A space
        counts as up to date when it begins.
        """

    async def note_scoring(self, space: str, scored_at: datetime | None, after: str | None = None) -> None:
        """Note that the qualities were brought up to date then; without a time, that they are due, from an id on."""

    # Replies: what requests with an idempotency key were answered with, so that none is run twice. A space begins with
    # its first claim, if it has not begun yet.

    async def claim(self, space: str, key: str, fingerprint: str, *, now: datetime, expires: datetime) -> Reply | None:
        """Take a key for a request, until it expires. None: the key is this request's, of however many that claim it at
        once. A reply: another request has it, with no status while that one is still under way. What has expired by
        `now` is taken over, and others that have expired are removed, some at a time.
        """

    async def reply(self, space: str, key: str, status: int, body: bytes, *, expires: datetime) -> None:
        """Keep the answer to a request that is under way, until it expires; an answer that is there stays."""

    async def disclaim(self, space: str, key: str) -> None:
        """Let go of a key whose request came to nothing; an answer stays."""

    # Outbox: the changes that external indexes have not seen yet, each noted in the transaction that made it.

    async def feed(self, index: str, leg: Leg) -> None:
        """Note every change for this index from now on, by whichever process; the first time everything there is."""

    async def enter(self, index: str, space: str | None = None, ids: Sequence[str] = ()) -> None:
        """Let an index look at these ids again, or, where no space is named, at everything there is."""

    async def waiting(self, index: str, *, limit: int) -> Sequence[Entry]:
        """Those that have waited longest, of all spaces, in their order."""

    async def delivered(self, index: str, entries: Sequence[Entry]) -> None:
        """Take entries out; one whose memory has changed since it was read stays, under another number."""

    async def lag(self, index: str) -> Lag: ...

    async def lease(self, index: str, holder: str, seconds: float) -> bool:
        """Whether this holder alone may feed the index for so long. Asking again in time prolongs it."""

    async def release(self, index: str, holder: str) -> None:
        """Let others feed the index."""
