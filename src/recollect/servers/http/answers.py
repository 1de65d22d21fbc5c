"""What answers hold, as models, for the OpenAPI document alone: answers are rendered by `documents.json_ready`, as by
every other door, and are not checked again on their way out. A test compares the two.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from recollect.servers.http.bodies import Status
from recollect.types import Access, EmbeddingState, LaneStatus, Leg, Lost, PartKind, Scope

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Memory(Answer):
    id: str
    space: str
    text: str
    namespace: str
    kind: str
    title: str
    tags: list[str]
    source: str
    thread: str | None
    place: int | None
    metadata: dict[str, Any]
    created_at: Time
    updated_at: Time
    occurred_at: Time | None
    expires_at: Time | None
    superseded_by: str | None
    quality: float | None
    hits: int
    last_hit_at: Time | None
    used: int
    last_used_at: Time | None
    embedding: EmbeddingState


class Remembered(Answer):
    """The memory as stored; `created` is false where an exact copy was there already."""

    memory: Memory
    created: bool


class Ingested(Answer):
    created: int
    copies: int


class Page(Answer):
    """Some memories in id order; `cursor` continues after them, null: that was all. `truncated` says why there are
    fewer than were asked for, where more would be too large.
    """

    memories: list[Memory]
    cursor: str | None
    truncated: str
    note: str = Field("", description="Left out, unless the space is empty: then which spaces hold something.")


class Contribution(Answer):
    lane: str
    rank: int
    raw: float
    normalised: float
    contribution: float
    kind: PartKind


class Snippet(Answer):
    """`marks` are [start, end] positions within `text`."""

    text: str
    marks: list[list[int]]


class Hit(Answer):
    memory: Memory
    score: float
    why: list[Contribution]
    snippet: Snippet
    before: list[Memory]
    after: list[Memory]


class LaneReport(Answer):
    lane: str
    leg: Leg
    status: LaneStatus
    reason: str
    ms: float
    candidates: int
    wanted: bool


class Expectation(Answer):
    id: str
    stage: Lost
    reason: str
    rank: int | None
    why: list[Contribution]


class Recall(Answer):
    """Hits best first, and how the answer came about; `took` is in milliseconds. `truncated` says what was left out
    because the answer would be too large; it is empty where nothing was.
    """

    hits: list[Hit]
    degraded: bool
    lanes: list[LaneReport]
    took: float
    query: str
    recipe: str
    expected: Expectation | None
    truncated: str
    note: str = Field("", description="Left out, unless the space is empty: then which spaces hold something.")


class Neighbor(Answer):
    memory: Memory
    strength: float
    steps: int
    relation: str


class Forgotten(Answer):
    forgotten: int


class Used(Answer):
    used: int


class Edge(Answer):
    source: str
    target: str
    relation: str
    strength: float


class Removed(Answer):
    removed: int


class Grant(Answer):
    space: str
    namespace: str
    to: str
    access: Access
    accepted: bool


class Accepted(Answer):
    accepted: bool


class Revoked(Answer):
    revoked: bool


class SpaceStats(Answer):
    space: str
    memories: int
    superseded: int
    pending: int
    edges: int
    kinds: dict[str, int]
    namespaces: dict[str, int]
    note: str = Field("", description="Left out, unless the space is empty: then which spaces hold something.")


class LegUsage(Answer):
    hits: int
    searches: int
    ms: float
    late: int
    failed: int
    skipped: int


class Usage(Answer):
    recalls: int
    degraded: int
    failed: int
    legs: dict[str, LegUsage]


class Bucket(Answer):
    start: Time
    usage: Usage


class SpaceUsage(Answer):
    space: str
    since: Time | None
    total: Usage
    buckets: list[Bucket]


class Rated(Answer):
    memories: int
    changed: int


class BrokenLine(Answer):
    number: int
    reason: str


class DanglingLine(Answer):
    number: int
    superseded_by: str


class Imported(Answer):
    """What an import did. Broken lines are counted, and the first 1,000 named; the good ones are kept. So are dangling
    ones, whose memory was superseded by one that is neither in the space nor among the lines.
    """

    read: int
    created: int
    copies: int
    links: int
    broken: list[BrokenLine]
    broken_count: int
    dangling: list[DanglingLine]
    dangling_count: int


class Token(Answer):
    id: str
    name: str
    spaces: list[str]
    scope: Scope
    created_at: Time
    expires_at: Time | None
    revoked_at: Time | None


class Issued(Answer):
    """A new token, and the only time that its secret is shown."""

    token: Token
    secret: str


class Check(Answer):
    name: str
    ok: bool
    detail: str


class Readiness(Answer):
    status: Status
    checks: list[Check]


class Alive(Answer):
    status: str


class Problem(BaseModel):
    """What was wrong, with what value, and what to do about it (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:recollect:not-found",
                    "title": "There is no such thing here",
                    "status": 404,
                    "detail": "space 'work' holds no memory '42'",
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    lanes: list[LaneReport] = Field(default=[], description="How each lane failed, where a recall had no answer.")
