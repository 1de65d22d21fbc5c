"""Quality: how often and how recently a memory was useful, and how that changes a ranking."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log1p
from typing import TYPE_CHECKING, Final, NamedTuple

from recollect.engine.transfer import EVERYTHING
from recollect.types import Fused, Memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.ports import Store

BASE: Final = 0.5
"""The quality of a new memory."""
HALF_LIFE: Final = timedelta(days=90)
PER_HIT: Final = 0.1
"""How much being returned counts, compared with being used."""
DIGITS: Final = 4
SIGNIFICANT: Final = 0.02
"""A quality is only written if it changed by more than this share: each row every few days, not every hour."""
BATCH: Final = 500
QUALITY: Final = "quality"
"""The kind of the part of a score that quality added or took away."""
EXACT: Final = "exact"
"""The kind of the part of a score that moved an exact match up (`ranking.fusion.keep_exact`)."""


@dataclass(frozen=True, slots=True)
class Rated:
    """How many memories were scored, and how many of them got a new quality."""

    memories: int
    changed: int


def usefulness(memory: Memory) -> float:
    """How often it was useful: `used + hits / 10`."""
    return memory.used + PER_HIT * memory.hits


def stale_since(memory: Memory) -> datetime:
    """When it was last used, stored or changed. A later hit moves that a tenth of the way."""
    since = max(memory.created_at, memory.updated_at, memory.last_used_at or memory.created_at)
    return since if memory.last_hit_at is None else since + PER_HIT * max(memory.last_hit_at - since, timedelta())


def quality(memory: Memory, most: float, now: datetime) -> float:
    """From 0 to 1. `most` is the usefulness of the space's most useful memory.

    `(0.5 + 0.5 log(1 + usefulness) / log(1 + most)) x 0.5 ** (days since it was last used, stored or changed / 90)`

    A new memory has 0.5 and the most useful one 1.0; both halve every 90 days without a use. A memory that was never
    useful falls below 0.05 (pgmemory's `min_quality`) after 299 days, the most useful one after 389. One that is
    returned every day but never used takes 333 to 433 days. The next use brings it back.

    The formula takes the logarithm because the tenth use tells more than the hundredth. `most` is at least 1, so one
    hit does not make the best memory. The sum starts at the base, so a use or a hit never lowers the quality (pgmemory,
    the source of the formula and the half-life, has no base: one hit in a busy space would cost nine tenths).

    >>> now = datetime(2026, 1, 1)
    >>> new = Memory("a", "work", "a text", created_at=now, updated_at=now)
    >>> quality(new, 99, now), quality(new, 99, now + HALF_LIFE)
    (0.5, 0.25)
    >>> best = Memory("b", "work", "a text", created_at=now, updated_at=now, used=99, last_used_at=now)
    >>> quality(best, 99, now), quality(best, 99, now + HALF_LIFE)
    (1.0, 0.5)
    >>> quality(Memory("c", "work", "a text", created_at=now, updated_at=now, hits=90, last_hit_at=now), 99, now)
    0.75
    """
    share = min(log1p(usefulness(memory)) / log1p(max(most, 1.0)), 1.0)  # it may have been used since `most` was read
    idle = max(now - stale_since(memory), timedelta())  # another machine's clock may be ahead
    return float((BASE + (1 - BASE) * share) * 0.5 ** (idle / HALF_LIFE))


class Batch(NamedTuple):
    """How many memories were scored, how many got a new quality, and where to continue (None: these were the last)."""

    memories: int
    changed: int
    cursor: str | None


async def batches(store: Store, space: str, now: datetime, after: str | None = None) -> AsyncIterator[Batch]:
    """Score every memory of a space, or those after an id. Each batch is its own transaction, so others can write.
    A quality that was set by hand is overwritten, so that all qualities are comparable.
    """
    most = await store.most_useful(space, PER_HIT)
    while True:
        page = await store.list(space, EVERYTHING, limit=BATCH, after=after)
        rated = {m.id: (m.quality, round(quality(m, most, now), DIGITS)) for m in page.memories}
        new = {id: now for id, (before, now) in rated.items() if before is None or _differ(before, now)}
        changed = await store.set_qualities(space, new) if new else 0
        after = page.cursor
        yield Batch(len(rated), changed, after)
        if after is None:
            return


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > SIGNIFICANT * max(one, other)


async def score(store: Store, space: str, now: datetime, on_progress: Callable[[int], None] = lambda _: None) -> Rated:
    """Score every memory of a space. An interrupted run can be repeated."""
    done = changed = 0
    async for batch in batches(store, space, now):
        done, changed = done + batch.memories, changed + batch.changed
        on_progress(done)
    await store.ledger.note_scoring(space, now)
    return Rated(done, changed)


def weighed(fused: Sequence[Fused], qualities: Mapping[str, float | None], weight: float) -> list[Fused]:
    """Multiply each score by `1 - weight + weight x quality` and sort again; `why` gets a part that says so.

    A memory that was never scored counts as a new one. The lift of an exact match is taken back first: `keep_exact`
    gives it again in the new order.
    """
    scored = [_weighed(f, qualities.get(f.id), weight) for f in fused]
    scored.sort(key=lambda one: one[0].score, reverse=True)
    return [
        f._replace(parts=(*f.parts, (QUALITY, place, worth, factor, f.score - before, QUALITY)))
        for place, (f, worth, factor, before) in enumerate(scored, start=1)
    ]


def quality_factor(fused: Fused) -> float:
    """The factor by which `weighed` multiplied the score."""
    return next((part[3] for part in fused.parts if part[5] == QUALITY), 1.0)


def _weighed(fused: Fused, known: float | None, weight: float) -> tuple[Fused, float, float, float]:
    """The hit with its new score, its quality, the factor, and its score before."""
    worth = BASE if known is None else known
    factor = 1 - weight + weight * worth
    before = fused.score - sum(part[4] for part in fused.parts if part[5] == EXACT)
    parts = tuple(part for part in fused.parts if part[5] != EXACT)
    return Fused(fused.id, before * factor, parts), worth, factor, before
