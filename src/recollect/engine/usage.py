"""Usage counts: each recall is counted in memory, and the counts are written every few seconds."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import Final, TypeAlias

from recollect.errors import RecallFailed, RecollectError
from recollect.ports import Store
from recollect.recipes import Recipe
from recollect.types import Bucket, Hit, LaneReport, Leg, LegUsage, Recall, SpaceUsage, Usage

FLUSH_SECONDS: Final = 5.0
EVER: Final = datetime.min.replace(tzinfo=UTC)
NOTHING: Final = Usage()
MOST_RECALLS: Final = 16
"""Recalls that wait to be added up. Their answers stay in memory until then."""
Counted: TypeAlias = tuple[str, datetime, Recipe, Recall | RecallFailed]
"""A recall: its space, when it ended, its recipe, and its answer or why there is none."""


class HitCounter:
    """Counts recalls and hits, and writes the counts in the background, so that a recall never waits for a write. A
    process that dies loses the counts of its last seconds.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recalls: list[Counted] = []
        self._hits: dict[str, Counter[str]] = defaultdict(Counter)
        self._usage: dict[str, dict[datetime, Usage]] = defaultdict(dict)
        self._flusher: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    def count(self, space: str, recipe: Recipe, outcome: Recall | RecallFailed) -> None:
        """Count a recall. The counts are added up later, because its caller waits for the answer."""
        self._recalls.append((space, datetime.now(UTC), recipe, outcome))
        if len(self._recalls) == MOST_RECALLS:
            self._add_up()
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush_later())

    def _add_up(self) -> None:
        """The hits of each memory, and what each leg did. Memories of other spaces are not counted: their space counts
        its own recalls.
        """
        recalls, self._recalls = self._recalls, []
        for space, moment, recipe, outcome in recalls:
            if isinstance(outcome, RecallFailed):
                usage = Usage(1, failed=1, legs=leg_usage(recipe, outcome.lanes, ()))
            else:
                self._hits[space].update([hit.memory.id for hit in outcome.hits if hit.memory.space == space])
                legs = leg_usage(recipe, outcome.lanes, outcome.hits)
                usage = Usage(1, degraded=int(outcome.degraded), legs=legs)
            hours, hour = self._usage[space], hour_of(moment)
            hours[hour] = hours.get(hour, NOTHING) + usage

    async def flush(self) -> None:
        """Write the counts. If the store cannot be written, they are lost."""
        async with self._writing:
            self._add_up()
            hits, self._hits = self._hits, defaultdict(Counter)
            usage, self._usage = self._usage, defaultdict(dict)
            for space, hours in usage.items():
                try:
                    await self._store.ledger.count_usage(space, [Bucket(*one) for one in hours.items()])
                    if hits[space]:
                        await self._store.mark_hits(space, hits[space], now=datetime.now(UTC))
                except RecollectError:
                    return

    async def close(self) -> None:
        async with self._writing:  # do not interrupt a write
            if self._flusher is not None:
                self._flusher.cancel()
        await self.flush()

    async def _flush_later(self) -> None:
        await asyncio.sleep(FLUSH_SECONDS)
        await self.flush()


def leg_usage(recipe: Recipe, lanes: Iterable[LaneReport], hits: Sequence[Hit]) -> dict[Leg, LegUsage]:
    """What each leg did in one recall: its lanes with a weight, and the hits they found."""
    wanted = {lane.name for lane in recipe.lanes if lane.weight > 0}
    found: Counter[Leg] = Counter()
    for hit in hits:
        found.update(hit.why.legs)
    done: dict[Leg, LegUsage] = {}
    for report in lanes:
        if report.lane in wanted:
            before = done.get(report.leg) or LegUsage(hits=found[report.leg])
            done[report.leg] = before + lane_usage(report)
    return done


def lane_usage(report: LaneReport) -> LegUsage:
    """What one lane did in one recall."""
    if report.status == "skipped":
        return LegUsage(skipped=1)
    late, failed = int(report.status == "late"), int(report.status == "failed")
    return LegUsage(searches=1, ms=report.ms, late=late, failed=failed)


async def usage_since(store: Store, space: str, since: datetime | None) -> SpaceUsage:
    """How a space was used since then, or ever."""
    start = None if since is None else hour_of(since)
    buckets = tuple(await store.ledger.usage(space, start or EVER))
    return SpaceUsage(space, start, reduce(add, (bucket.usage for bucket in buckets), NOTHING), buckets)


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
