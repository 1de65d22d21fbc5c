"""How a space is used, counted by the hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from recollect.types.answers import Leg


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


class Use(NamedTuple):
    """A memory that was of use, and the question that led to it."""

    question: str
    id: str
    at: datetime


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
