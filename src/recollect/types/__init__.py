"""The words of the design as plain, frozen data. Nothing here does I/O, and nothing here imports another room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.types.access import SCOPES, Access, Grant, Issued, Reply, Scope, Token
from recollect.types.answers import (
    ADJUSTMENTS,
    LEGS,
    NO_REASON,
    Background,
    Contribution,
    Expectation,
    ExpectationStage,
    Fused,
    Hit,
    LaneReport,
    LaneStatus,
    Leg,
    Neighbor,
    Part,
    PartKind,
    Ranking,
    Recall,
    Scored,
    Snippet,
    Tail,
    Why,
)
from recollect.types.records import (
    NEAREST,
    SIMILAR,
    Draft,
    Edge,
    EmbeddingState,
    Filter,
    Generation,
    Memory,
    Migration,
    Page,
    Record,
    Remembered,
    SpaceStats,
)
from recollect.types.usage import Bucket, LegUsage, SpaceUsage, Usage, Use

if TYPE_CHECKING:
    from recollect.types.records import Vector as Vector
    from recollect.types.records import Vectors as Vectors

__all__ = [
    "ADJUSTMENTS", "LEGS", "NEAREST", "NO_REASON", "SCOPES", "SIMILAR", "Access", "Background", "Bucket",
    "Contribution", "Draft", "Edge", "EmbeddingState", "Expectation", "ExpectationStage", "Filter", "Fused",
    "Generation", "Grant", "Hit", "Issued", "LaneReport", "LaneStatus", "Leg", "LegUsage", "Memory", "Migration",
    "Neighbor", "Page", "Part", "PartKind", "Ranking", "Recall", "Record", "Remembered", "Reply", "Scope", "Scored",
    "Snippet", "SpaceStats", "SpaceUsage", "Tail", "Token", "Usage", "Use", "Why",
]  # fmt: skip
