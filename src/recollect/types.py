"""The words of the design as plain, frozen data. Nothing here does I/O, and nothing here imports another room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector: TypeAlias = npt.NDArray[np.float32]
    """One embedding: `dimensions` numbers, length 1."""
    Vectors: TypeAlias = npt.NDArray[np.float32]
    """Many embeddings: one row each."""

Leg: TypeAlias = Literal["vector", "keyword", "graph"]
PartKind: TypeAlias = Literal["vector", "keyword", "graph", "exact", "quality"]
"""What gave a part of a score: the leg of a lane, or an adjustment made after fusion."""
EmbeddingState: TypeAlias = Literal["ready", "pending", "failed"]
Access: TypeAlias = Literal["read", "write"]
Scope: TypeAlias = Literal["read", "write", "admin"]
LaneStatus: TypeAlias = Literal["ok", "late", "failed", "skipped"]
Lost: TypeAlias = Literal[
    "found", "not stored", "filtered", "superseded", "expired", "not a candidate", "below the cut", "near-copy"
]
LEGS: tuple[Leg, ...] = get_args(Leg)


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored record, as callers see it.

    `hits` counts how often it was returned, `used` how often a caller said that it was of use.
    """

    id: str
    space: str
    text: str
    namespace: str = "default"
    kind: str = "fact"
    title: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    thread: str | None = None
    place: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime = datetime.min
    updated_at: datetime = datetime.min
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    superseded_by: str | None = None
    quality: float | None = None
    hits: int = 0
    last_hit_at: datetime | None = None
    used: int = 0
    last_used_at: datetime | None = None
    embedding: EmbeddingState = "pending"


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory before it is stored: only `text` is needed.

    `place` is the memory's position in its `thread`; left out, it goes to the end. The fields after `vector` are
    set by `import`, so that a memory comes back as it left; a caller who remembers something new leaves them out.
    """

    text: str
    namespace: str = "default"
    kind: str = "fact"
    title: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    thread: str | None = None
    place: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    vector: Sequence[float] | Vector | None = None
    id: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    superseded_by: str | None = None
    quality: float | None = None
    hits: int = 0
    last_hit_at: datetime | None = None
    used: int = 0
    last_used_at: datetime | None = None
    linked: bool = False
    """Whether its links to its nearest come along; else they are made."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A directed link between two memories of one space, with a strength in (0, 1]."""

    source: str
    target: str
    relation: str = "related"
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Grant:
    """A namespace of a space that another one may see, or also change; an offer until that one has accepted it."""

    space: str
    namespace: str
    to: str
    access: Access = "read"
    accepted: bool = False


class Migration(NamedTuple):
    """What was done to a store, or would be, step by step; and what is left to whoever looks after its server."""

    steps: tuple[str, ...]
    advice: tuple[str, ...] = ()


SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
"""What a token allows, each with all that is before it."""


@dataclass(frozen=True, slots=True)
class Token:
    """Who may do what through a server: the spaces it is pinned to (none named: all of them) and its scope. The secret
    itself is shown once, when the token is made, and kept nowhere.
    """

    id: str
    name: str
    spaces: tuple[str, ...]
    scope: Scope
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def may(self, scope: Scope, space: str | None = None) -> bool:
        """Whether it allows this in a space, or without one, in all of them."""
        here = not self.spaces or (space is not None and space in self.spaces)
        return here and SCOPES.index(scope) <= SCOPES.index(self.scope)


class Issued(NamedTuple):
    """A token that was just made, and the only time that its secret is shown; its repr does not show it."""

    token: Token
    secret: str

    def __repr__(self) -> str:
        return f"Issued(token={self.token!r}, secret='…')"


@dataclass(frozen=True, slots=True)
class Reply:
    """What an idempotency key stands for: which request, and what it was answered with; no status while it is still
    under way.
    """

    fingerprint: str
    status: int | None = None
    body: bytes = b""


SIMILAR = "similar"
"""The relation of a memory to its nearest, which Recollect makes by itself and makes anew when a text changes."""


@dataclass(frozen=True, slots=True)
class Generation:
    """Which model made a store's vectors. Two generations are never compared."""

    model: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class Record:
    """What the engine hands to a store: a complete memory, its vector if there is one, and its first links.

    `linked` says that its nearest memories were looked for already; others are linked later, in batches. `hash` comes
    with a memory of another store, and says there what is an exact copy of it; left out, it is made of its fields.
    `joins` says whether a memory that answers for this record, being its exact copy, takes over what it lacks.
    """

    memory: Memory
    vector: Vector | None = None
    edges: tuple[Edge, ...] = ()
    linked: bool = False
    hash: bytes | None = None
    joins: bool = True


class Remembered(NamedTuple):
    """What became of one record: the memory as stored, and whether it is new (False: an exact copy was there)."""

    memory: Memory
    created: bool


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories a search may see. Every leg applies it before it ranks.

    `tags` must all be there. `since` and `until` compare when a memory happened (`occurred_at`, else `created_at`),
    `since` inclusive and `until` exclusive. `min_quality` keeps memories that were never scored.
    `now` decides what has expired; the engine fills it in once per recall.
    """

    kinds: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    source_prefix: str = ""
    thread: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    min_quality: float | None = None
    include_superseded: bool = False
    include_expired: bool = False
    now: datetime | None = None


class Scored(NamedTuple):
    """One hit of one lane: a memory's id and its raw score, higher is better."""

    id: str
    score: float


@dataclass(frozen=True, slots=True)
class Background:
    """How a lane scores the memories of a space at large, most of which have nothing to do with the question.

    Mean and standard deviation over the `count` memories that could have been found, as far as the leg can tell
    without scoring them all.
    """

    mean: float
    deviation: float
    count: int

    @classmethod
    def of(cls, scores: Sequence[float], count: int) -> Background:
        """The background of `count` memories of which `scores` are a fair sample."""
        mean = fsum(scores) / max(len(scores), 1)
        variance = fsum((score - mean) ** 2 for score in scores) / max(len(scores), 1)
        return cls(mean, sqrt(variance), count)


@dataclass(frozen=True, slots=True)
class Ranking:
    """One lane's ordered hits, best first; rank counts from 1.

    `background` says what an ordinary score is, where the leg knows it. `exact` are the ids that hold what the
    question names: a rare identifier, or a quoted phrase.
    """

    lane: str
    leg: Leg
    hits: tuple[Scored, ...] = ()
    background: Background | None = None
    exact: frozenset[str] = frozenset()


class Contribution(NamedTuple):
    """What one lane, or one adjustment, gave to one hit.

    `kind` says what made it. `lane` is only a name: a recipe may call a lane "exact" or "quality".
    """

    lane: str
    rank: int
    raw: float
    normalised: float
    contribution: float
    kind: PartKind

    def __str__(self) -> str:
        return f"{self.lane} #{self.rank} ({self.raw:.3g}) {self.contribution:+.4f}"


class Why(tuple[Contribution, ...]):
    """Why a hit is where it is: one `Contribution` for each lane that found it and each adjustment of its score.
    Prints as a phrase.
    """

    __slots__ = ()

    @property
    def legs(self) -> frozenset[Leg]:
        """The legs that found the hit."""
        kinds = {part.kind for part in self}
        return frozenset(leg for leg in LEGS if leg in kinds)

    def __str__(self) -> str:
        return ", ".join(str(part) for part in self)


NO_REASON = Why()


Part: TypeAlias = tuple[str, int, float, float, float, PartKind]
"""The fields of a `Contribution`, as a plain tuple: fusion makes thousands of them for each answer."""


class Fused(NamedTuple):
    """One id after fusion, with its parts."""

    id: str
    score: float
    parts: tuple[Part, ...]

    @property
    def why(self) -> Why:
        return Why(Contribution(*part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a memory's text around the first match. `marks` are (start, end) positions within `text`."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LaneReport:
    """How one lane fared in one recall."""

    lane: str
    leg: Leg
    status: LaneStatus
    reason: str = ""
    ms: float = 0.0
    candidates: int = 0
    wanted: bool = True
    """Whether the lane has a weight: one without is skipped on purpose."""

    @property
    def missing(self) -> bool:
        """Whether the lane was wanted and did not answer."""
        return self.wanted and self.status != "ok"


@dataclass(frozen=True, slots=True)
class Expectation:
    """Where an expected memory was lost on its way to the answer, and in which lanes it was seen."""

    id: str
    stage: Lost
    reason: str
    rank: int | None = None
    why: Why = NO_REASON


@dataclass(frozen=True)
class Hit:
    """One memory of an answer.

    `snippet` is made when it is first looked at: an agent that reads the whole text never pays for it.
    """

    memory: Memory
    score: float
    why: Why
    make_snippet: Callable[[], Snippet] = field(repr=False, compare=False)
    before: tuple[Memory, ...] = ()
    after: tuple[Memory, ...] = ()

    @cached_property
    def snippet(self) -> Snippet:
        return self.make_snippet()


@dataclass(frozen=True, slots=True)
class Recall:
    """An answer: hits best first, and how it came about. Iterating it yields the hits."""

    hits: tuple[Hit, ...]
    degraded: bool
    lanes: tuple[LaneReport, ...]
    took: float
    """Milliseconds, embedding included."""
    query: str
    recipe: str
    expected: Expectation | None = None
    truncated: str = ""
    """What was left out because the answer would be too large, and why; empty where nothing was."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


class Neighbor(NamedTuple):
    """A memory reached over links: the product of the strengths on its best path, and how many steps away."""

    memory: Memory
    strength: float
    steps: int
    relation: str


@dataclass(frozen=True, slots=True)
class Page:
    """Some memories in id order, and the cursor that continues after them (None: that was all)."""

    memories: tuple[Memory, ...]
    cursor: str | None
    truncated: str = ""
    """Why there are fewer than were asked for, where the page would be too large; the cursor goes on after them."""


@dataclass(frozen=True, slots=True)
class SpaceStats:
    """What a space holds."""

    space: str
    memories: int
    superseded: int
    pending: int
    edges: int
    kinds: Mapping[str, int]
    namespaces: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LegUsage:
    """What one leg did in some recalls.

    `hits` are memories of answers that it found; one that two legs found counts for both. `searches` are its lanes that
    were run, `ms` what these took together, `late` and `failed` how many of them did not answer, and `skipped` how many
    were wanted and not run.
    """

    hits: int = 0
    searches: int = 0
    ms: float = 0.0
    late: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def average(self) -> float | None:
        """Milliseconds of a search."""
        return self.ms / self.searches if self.searches else None

    def __add__(self, other: LegUsage) -> LegUsage:
        return LegUsage(
            self.hits + other.hits,
            self.searches + other.searches,
            self.ms + other.ms,
            self.late + other.late,
            self.failed + other.failed,
            self.skipped + other.skipped,
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """Some recalls: how many, how many of them were degraded or failed altogether, and what each leg did."""

    recalls: int = 0
    degraded: int = 0
    failed: int = 0
    legs: Mapping[Leg, LegUsage] = field(default_factory=dict)

    def __add__(self, other: Usage) -> Usage:
        legs = dict(self.legs)
        for leg, usage in other.legs.items():
            legs[leg] = legs[leg] + usage if leg in legs else usage
        return Usage(self.recalls + other.recalls, self.degraded + other.degraded, self.failed + other.failed, legs)


class Bucket(NamedTuple):
    """The recalls of one hour, which begins at `start`."""

    start: datetime
    usage: Usage


@dataclass(frozen=True, slots=True)
class SpaceUsage:
    """How a space was used: together, and hour by hour, oldest first; hours without a recall are left out."""

    space: str
    since: datetime | None
    total: Usage
    buckets: tuple[Bucket, ...]
