"""What a recall gives: hits, their scores, and where each score comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, sqrt
from typing import Literal, NamedTuple, TypeAlias

from recollect.types.records import Memory

Leg: TypeAlias = str
"""The name of a leg: ours, or one that another package registers (`recollect.legs`)."""
LEGS: tuple[Leg, ...] = ("vector", "keyword", "graph")
"""Our own legs, in the order in which they are shown."""
PartKind: TypeAlias = str
"""What made a part of a score: the name of a leg, or one of the `ADJUSTMENTS`."""
ADJUSTMENTS: frozenset[PartKind] = frozenset(("exact", "quality", "rerank"))
Tail: TypeAlias = Literal["exponential", "normal"]
"""How the scores of unrelated memories fall off."""
LaneStatus: TypeAlias = Literal["ok", "late", "failed", "skipped"]
ExpectationStage: TypeAlias = Literal[
    "found", "not stored", "filtered", "superseded", "expired", "not a candidate", "below the cut", "near-copy"
]


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
    question names: a rare identifier, or a quoted phrase. `tail` says how the scores of unrelated memories fall off;
    None where a score is a share already.
    """

    lane: str
    leg: Leg
    hits: tuple[Scored, ...] = ()
    background: Background | None = None
    exact: frozenset[str] = frozenset()
    tail: Tail | None = None


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
        return frozenset(kinds - ADJUSTMENTS)

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
        return Why(map(Contribution._make, self.parts))


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a memory's text around the first match. `marks` are (start, end) positions within `text`."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LaneReport:
    """How one lane fared in one recall, or the stage in which the best hits were read together with the question."""

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

    @property
    def incomplete(self) -> bool:
        """Whether something of a wanted lane is missing in the answer; `reason` says what."""
        return self.wanted and (self.status != "ok" or bool(self.reason))


@dataclass(frozen=True, slots=True)
class Expectation:
    """Where an expected memory was lost on its way to the answer, and in which lanes it was seen."""

    id: str
    stage: ExpectationStage
    reason: str
    rank: int | None = None
    why: Why = NO_REASON


@dataclass(frozen=True)
class Hit:
    """One memory of an answer.

    `snippet` and `confidence` are made when they are first looked at: who does not ask never pays for them.
    """

    memory: Memory
    score: float
    why: Why
    make_snippet: Callable[[], Snippet] = field(repr=False, compare=False)
    make_confidence: Callable[[], float] = field(repr=False, compare=False)
    before: tuple[Memory, ...] = ()
    after: tuple[Memory, ...] = ()

    @cached_property
    def snippet(self) -> Snippet:
        return self.make_snippet()

    @cached_property
    def confidence(self) -> float:
        """The probability that this memory answers the question, from 0 to 1."""
        return self.make_confidence()


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
    nearest_miss: Hit | None = None
    """The surest hit where none was as sure as `min_confidence` asks for."""

    @property
    def answerable(self) -> bool:
        """Whether it is more likely than not that one of the hits answers the question."""
        wrong = 1.0
        for hit in self.hits:
            wrong *= 1 - hit.confidence
        return wrong < 0.5

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
