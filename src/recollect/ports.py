"""What the engine needs from the outside, as Protocols split by capability.

A store is all of `Records`, `WordIndex`, `VectorIndex` and `GraphIndex`; an external index replaces one of the
last two. Every method is async, takes the space first, and never reaches another space. Implementations translate
their driver's errors into the tree of `recollect.errors`, in one place each.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from recollect.types import (
    Access,
    Background,
    Bucket,
    Edge,
    Filter,
    Generation,
    Grant,
    Leg,
    Memory,
    Migration,
    Page,
    Record,
    Remembered,
    Reply,
    Scored,
    SpaceStats,
    Token,
)

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

Words: TypeAlias = str
"""`analyzed`, or the name of a text-search configuration of Postgres. Every store knows `simple` and `english`."""
Match: TypeAlias = Literal["any", "plain", "websearch"]
KeywordScore: TypeAlias = Literal["bm25", "ts_rank", "ts_rank_cd"]


class Engine(Protocol):
    """What a recall asks and may have to wait for: a store, an index beside it, an embedder."""

    @property
    def name(self) -> str:
        """For messages, e.g. "sqlite"."""

    @property
    def in_process(self) -> bool:
        """Whether it runs inside this process. Such an engine never hangs, however long a busy processor makes it take:
        no deadline is held against it, unless a caller gives one.
        """


class Embedder(Engine, Protocol):
    """Texts into unit vectors. `name` identifies the model: vectors of two names are never compared."""

    @property
    def dimensions(self) -> int | None:
        """None until the model is known well enough to tell (a remote one, before its first answer)."""

    async def embed(self, texts: Sequence[str], *, space: str) -> Vectors:
        """One row per text, in order, float32, each of length 1. Raises EmbeddingError."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Term:
    """One analyzed term of a question, how much it counts beside its rarity, and whether it names one thing."""

    term: str
    weight: float = 1.0
    names: bool = False


@dataclass(frozen=True, slots=True)
class WordSearch:
    """A question for a word index.

    `match="any"` uses the analyzer's `terms` and `phrases` (each phrase is adjacent terms, scored like one term).
    `plain` (every word) and `websearch` (every word, with "quotes", `or` and `-not`) are Postgres' own readings of
    the raw `text` under the `words` configuration. `title_boost` is added when the title contains the whole text.
    `context` lets what stands beside a memory in its thread count as a weaker field. `within` are the namespaces in
    which it is counted how common a word is and how long texts are; none: the whole space. Whoever may see these
    namespaces alone learns nothing of the others from a score then.
    """

    text: str
    terms: tuple[Term, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    words: Words = "analyzed"
    match: Match = "any"
    score: KeywordScore = "bm25"
    title_boost: float = 0.0
    context: bool = True
    within: tuple[str, ...] = ()


class WordHits(NamedTuple):
    """A word index's answer.

    `background`: how the question scores the space at large. `holders`: for each term that names one thing, and for
    each phrase (its terms joined by blanks), the ids of hits whose own words, not only their context, hold it.
    """

    hits: Sequence[Scored]
    background: Background | None = None
    holders: Mapping[str, frozenset[str]] = {}


class VectorHits(NamedTuple):
    """A vector index's answer, how the question's vector compares with those of the space at large, and which of the
    hits stand in a thread (None: the index does not know).
    """

    hits: Sequence[Scored]
    background: Background | None = None
    threaded: frozenset[str] | None = None


class Reached(NamedTuple):
    """A memory reached over links: best product of strengths, how many steps that path has, its last relation."""

    id: str
    strength: float
    steps: int
    relation: str


class Beside(NamedTuple):
    """Ids of the memories around one in its thread, nearest first on each side."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class Mark(NamedTuple):
    """What a store knows of a memory beside its fields, and what `Record` takes to another store."""

    hash: bytes
    linked: bool


class Sample(NamedTuple):
    """How many memories there are, and the ids of some of them."""

    total: int
    ids: Sequence[str]


class Records(Protocol):
    """The source of truth."""

    async def add(self, space: str, records: Sequence[Record]) -> list[Remembered]:
        """Store all in one transaction, durable on return. Same namespace, kind and text (in a thread: same thread,
        and same place if one is given), or the same id: not stored again, answered with the first, unless that was
        superseded or has expired. Such a copy takes over what it lacks of the record, unless the record says otherwise:
        new tags and metadata keys, a title, source and time, and the longer life; nothing is overwritten. A memory of a
        thread without a place goes to the thread's end. A link whose other end was forgotten meanwhile is left out.
        """

    async def copies(self, space: str, memories: Sequence[Memory]) -> list[Memory | None]:
        """For each, what `add` would answer instead of storing it: the memory with the same id, or an exact copy."""

    async def get(self, space: str, ids: Sequence[str]) -> dict[str, Memory]:
        """Those that exist here, whatever their state; others are simply absent."""

    async def list(
        self, space: str, where: Filter, *, limit: int, after: str | None = None, newest_first: bool = False
    ) -> Page:
        """A page in id order, or with the highest ids first. It goes on after the id of a cursor, in that order."""

    async def update(
        self, space: str, id: str, changes: Mapping[str, Any], *, vector: Vector | None = None, now: datetime
    ) -> Memory:
        """Change the named fields. A changed title or text without a vector makes the memory `pending`, and its links
        to its nearest are made anew. Raises NotFound.
        """

    async def forget(self, space: str, ids: Sequence[str]) -> int:
        """Delete rows, words, vectors and links; how many there were."""

    async def supersede(self, space: str, old: str, new: Record | str, *, now: datetime) -> Memory:
        """Mark `old` as replaced, and answer with what replaced it: a memory that is here, by its id, or a record,
        which is stored as `add` stores it, in the same transaction. Raises NotFound, and InvalidRequest for a cycle,
        for an id that stands for another text, or where another has replaced it already: of several at once one wins,
        and the others store nothing.
        """

    async def history(self, space: str, id: str, *, limit: int) -> Sequence[str]:
        """The ids of a memory, of those that it replaced and of those that replaced it, through others too, whatever
        their state: each before what replaced it, ties by id. At most `limit` before it and as many after it, those the
        fewest steps away. One that was forgotten leads no further; nothing, if this one is not here.
        """

    async def beside(self, space: str, ids: Sequence[str], reach: int) -> dict[str, Beside]:
        """Thread neighbours up to `reach` on each side, for those ids that are in a thread. A thread belongs to its
        namespace: the same name in another one is another thread.
        """

    async def visible(self, space: str, ids: Sequence[str], where: Filter) -> set[str]:
        """Which of these ids pass the filter."""

    async def sample(self, space: str, namespaces: Sequence[str], *, limit: int) -> Sample:
        """Some memories of these namespaces that stand for all of them: those with the lowest content hashes, which
        depend on nothing but what the namespaces hold.
        """

    async def pending(self, space: str, *, limit: int) -> builtins.list[Memory]:
        """Memories that still need a vector, oldest first."""

    async def put_vectors(self, space: str, embedded: Sequence[tuple[Memory, Vector]]) -> None:
        """Attach vectors to memories, which become `ready`; not where the title or the text changed meanwhile."""

    async def fail_vectors(self, space: str, ids: Sequence[str]) -> None:
        """Mark memories that cannot be embedded as `failed`: they no longer wait for a vector."""

    async def unlinked(self, space: str, *, limit: int) -> builtins.list[str]:
        """Memories with a vector that were not yet linked to their nearest."""

    async def marks(self, space: str, ids: Sequence[str]) -> dict[str, Mark]:
        """What makes another memory an exact copy of each of these, and whether it was linked to its nearest."""

    async def mark_hits(self, space: str, hits: Mapping[str, int], *, now: datetime) -> None:
        """Count how often these ids were recalled since they were last counted, the last time at `now`."""

    async def mark_used(self, space: str, ids: Sequence[str], *, now: datetime) -> int:
        """Count that these ids, each of them once, were of use at `now`; how many there are."""

    async def spaces(self) -> Sequence[str]: ...

    async def stats(self, space: str) -> SpaceStats: ...

    async def generation(self) -> Generation | None: ...

    async def set_generation(self, generation: Generation) -> None:
        """Record the model of this store's vectors. Raises EmbeddingMismatch when there is another already."""


class WordIndex(Protocol):
    async def search_words(self, space: str, search: WordSearch, where: Filter, *, limit: int) -> WordHits: ...


class VectorIndex(Protocol):
    async def search_vectors(
        self, space: str, vector: Vector, where: Filter, *, limit: int, ef_search: int | None = None
    ) -> VectorHits:
        """The nearest memories by cosine, best first, ties by id; recall against exact search >= 0.99."""

    async def nearest_to(self, space: str, ids: Sequence[str], *, limit: int) -> dict[str, list[Scored]]:
        """For each of these memories that has a vector, the others that are nearest to it, whatever their state."""

    async def vectors(self, space: str, ids: Sequence[str]) -> dict[str, Vector]: ...


class GraphIndex(Protocol):
    async def link(self, space: str, edges: Sequence[Edge]) -> None:
        """Add edges; same ends and relation: the strength is replaced. Raises NotFound when an end is not here."""

    async def link_nearest(self, space: str, nearest: Mapping[str, Sequence[Edge]]) -> None:
        """For each of these memories its links to its nearest, which it is then marked to have; a link whose end was
        forgotten meanwhile is left out.
        """

    async def unlink(self, space: str, source: str, target: str, relation: str | None = None) -> int: ...

    async def walk(
        self, space: str, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]:
        """Memories within `depth` (1 to 3) steps of a seed, along links in either direction, by the best product of
        strengths over all paths, best first, ties by id. Seeds are left out unless another seed reaches them.
        Only memories that pass `where` are returned; the walk may pass through the others of this space.
        """

    def edges(self, space: str, ids: Sequence[str] | None = None) -> AsyncIterator[Edge]:
        """Every edge of the space, or those that touch these ids, streamed."""


class Change(NamedTuple):
    """One memory as an external index is to hold it from now on: what it says, its vector, and the links that begin
    at it. No memory: it is gone.
    """

    id: str
    memory: Memory | None
    vector: Vector | None = None
    edges: tuple[Edge, ...] = ()


class ExternalIndex(Engine, Protocol):
    """An engine beside the store that answers one leg. The store is the truth: whatever this holds can be made anew.
    `name` is its name for the outbox, too.
    """

    async def open(self) -> None:
        """Reach the engine if it is there; one that is down is no error here, for it may come back."""

    async def close(self) -> None: ...

    async def check(self) -> None:
        """Raises BackendUnavailable while the engine cannot be used, with the reason."""

    async def use(self, generation: Generation) -> None:
        """Hold the vectors of this generation from now on, if it holds any. An engine that is down is no error here."""

    async def apply(self, space: str, changes: Sequence[Change]) -> None:
        """Bring these memories to these states, durable on return. Doing it twice does no harm; the later of two
        states of one memory comes later in the sequence, or in a later call.
        """

    async def count(self, space: str) -> int:
        """How many memories of a space it holds."""

    def ids(self, space: str) -> AsyncIterator[str]:
        """The ids of a space that it holds, streamed."""

    async def spaces(self) -> Sequence[str]:
        """The spaces of which it holds something."""

    async def shadow(self) -> ExternalIndex:
        """An empty index of the same kind, in which this one is made anew while it goes on answering."""

    async def publish(self, shadow: ExternalIndex) -> None:
        """Answer from `shadow` from now on, for every process, and let go of what was there before."""


class ExternalVectors(ExternalIndex, VectorIndex, Protocol):
    """An external index that answers the vector leg."""


class ExternalLinks(ExternalIndex, Protocol):
    """An external index that answers the graph leg."""

    async def walk(
        self, space: str, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]:
        """See `GraphIndex.walk`."""


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


class Outbox(Protocol):
    """What external indexes have still to be told: noted in the transaction of each change itself."""

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


class Accounts(Protocol):
    """How a space is used, and what its memories are worth by that."""

    async def count_usage(self, space: str, buckets: Sequence[Bucket]) -> None:
        """Add to what was counted for these hours, by whichever process. A space without memories counts nothing."""

    async def usage(self, space: str, since: datetime) -> Sequence[Bucket]:
        """What was counted for the hours that begin then or later, oldest first."""

    async def most_useful(self, space: str, per_hit: float) -> float:
        """How often the memory proved useful that did so most: its uses, and `per_hit` for each of its hits."""

    async def claim_scoring(self, space: str, *, before: datetime, now: datetime) -> str | None:
        """Whether the qualities of the space were last brought up to date before then: if so, nobody else is told so
        from `now` on, and the answer is the id after which to begin, "" for the first. None: it is not due. A space
        counts as up to date when it begins.
        """

    async def note_scoring(self, space: str, scored_at: datetime | None, after: str | None = None) -> None:
        """Note that the qualities were brought up to date then; without a time, that they are due, from an id on."""

    async def set_qualities(self, space: str, qualities: Mapping[str, float]) -> int:
        """Set the quality of these ids and nothing else of them; how many had another one before."""


class Grants(Protocol):
    """What spaces let each other see. Nothing here changes what another call reaches: whoever asks for a memory of
    another space asks in that space, and looks here first.
    """

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


SESSIONS = 100
"""How many sign-ins by one token are in force at once; the oldest ends when there is one more."""


class Keyring(Protocol):
    """The tokens that servers are called with. They belong to whoever runs the store, not to a space: a token is looked
    up before it is known which spaces it is for. None is ever deleted, so that a revoked one stays known.
    """

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


class Replies(Protocol):
    """What requests with an idempotency key were answered with, so that one that is sent again is not run again. A
    space begins with its first claim, if it has not begun yet.
    """

    async def claim(self, space: str, key: str, fingerprint: str, *, now: datetime, expires: datetime) -> Reply | None:
        """Take a key for a request, until it expires. None: the key is this request's, of however many that claim it at
        once. A reply: another request has it, with no status while that one is still under way. What has expired by
        `now` is taken over, and others that have expired are removed, some at a time.
        """

    async def reply(self, space: str, key: str, status: int, body: bytes, *, expires: datetime) -> None:
        """Keep the answer to a request that is under way, until it expires; an answer that is there stays."""

    async def disclaim(self, space: str, key: str) -> None:
        """Let go of a key whose request came to nothing; an answer stays."""


class Store(Engine, Records, WordIndex, VectorIndex, GraphIndex, Outbox, Accounts, Grants, Keyring, Replies, Protocol):
    """A source of truth that can also search."""

    @property
    def location(self) -> str:
        """Where the store lives, for messages; the same for two stores that are one. Never a password."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def vector_background(self, space: str, vector: Vector) -> Background | None:
        """What the cosines of a vector with those of a space are measured against; None while the space has none. It
        depends only on what the space holds, and is the same in every store: see `recollect.stores.nearest`.
        """

    async def migrate(self, *, dry_run: bool, row_security: bool = False, words: Sequence[str] = ()) -> Migration:
        """Bring a store that is not open to the newest version, on Postgres with row security and with text-search
        configurations where these are asked for.
        """

    def bulk(self, expected: int = 0) -> AbstractAsyncContextManager[None]:
        """Around many `add`s, of about so many memories if that is known: what an index costs is paid once, at their
        end, where that is cheaper. Each `add` is as durable as ever.
        """

    async def settle(self, space: str) -> None:
        """Wait for an index that is being built for searches of this space, if any."""

    async def check(self) -> None:
        """Raises BackendError unless the store answers, and keeps what is written to it now."""

    async def remarks(self) -> Sequence[str]:
        """What whoever looks after this store should know about its indexes."""


@runtime_checkable
class Freezable(Protocol):
    """A store that can be read as it is at one moment, whatever is written meanwhile."""

    def still(self) -> AbstractAsyncContextManager[Store]:
        """The store as it is now, to be read. It is open, and is not closed by whoever reads it."""
