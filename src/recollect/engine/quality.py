"""Quality: what a memory is worth by how often and how recently it proved useful, and what that does to a ranking."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log1p
from typing import TYPE_CHECKING, Final, NamedTuple

from recollect.types import Filter, Fused, Memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.ports import Store

BASE: Final = 0.5
"""The quality of a new memory: nobody knows."""
HALF_LIFE: Final = timedelta(days=90)
PER_HIT: Final = 0.1
"""What being returned counts of being used."""
DIGITS: Final = 4
TELLING: Final = 0.02
"""A quality is written again when it differs by more than this share: each row every few days, not every hour."""
BATCH: Final = 500
EVERYTHING: Final = Filter(include_superseded=True, include_expired=True)
QUALITY: Final = "quality"
"""The kind of part that says what a hit's quality did to its score."""
EXACT: Final = "exact"
"""The kind of part that says that a hit was moved up for what it names (`ranking.fusion.keep_exact`)."""


@dataclass(frozen=True, slots=True)
class Rated:
    """How many memories were scored, and how many of them have another quality now."""

    memories: int
    changed: int


def usefulness(memory: Memory) -> float:
    """How often it proved useful: `used + hits / 10`. Being returned is not being useful, but it is not nothing."""
    return memory.used + PER_HIT * memory.hits


def fresh_until(memory: Memory) -> datetime:
    """From when on it grows stale: when it was last used, stored or changed. Having been returned since then moves that
    a tenth of the way.
    """
    since = max(memory.created_at, memory.updated_at, memory.last_used_at or memory.created_at)
    return since if memory.last_hit_at is None else since + PER_HIT * max(memory.last_hit_at - since, timedelta())


def quality(memory: Memory, most: float, now: datetime) -> float:
    """From 0 to 1, `most` being the usefulness of the space's most useful memory.

    `(0.5 + 0.5 log(1 + usefulness) / log(1 + most)) x 0.5 ** (days since it was fresh / 90)`

    A new memory has 0.5, the most useful one 1.0, and both halve every 90 days without a use. So what never proved
    useful falls below a floor of 0.05 (`min_quality`, pgmemory's) after 299 days, the most useful after 389; returned
    every day, but never used, 333 to 433 days after it was stored. The next use brings it back.

    The logarithm, because the tenth use tells more than the hundredth; `most` is at least 1, so that a single hit does
    not make the best memory. The sum begins at the base, so that a use or a hit never makes a memory worse (pgmemory,
    whose `log(1 + hits) / log(1 + most)` and half-life these are, has no base there: with it one hit in a busy space
    would cost nine tenths).

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
    idle = max(now - fresh_until(memory), timedelta())  # another machine's clock may be ahead
    return float((BASE + (1 - BASE) * share) * 0.5 ** (idle / HALF_LIFE))


class Batch(NamedTuple):
    """Some memories that were scored: how many, how many of them have another quality now, and where to go on (None:
    these were the last).
    """

    memories: int
    changed: int
    cursor: str | None


async def batches(store: Store, space: str, now: datetime, after: str | None = None) -> AsyncIterator[Batch]:
    """Give every memory of a space its quality, or those after an id, some at a time, each batch in a transaction of
    its own, so others go on writing. A quality that somebody gave by hand is overwritten: one number, made one way, can
    be compared.
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
    return abs(one - other) > TELLING * max(one, other)


async def score(store: Store, space: str, now: datetime, on_progress: Callable[[int], None] = lambda _: None) -> Rated:
    """Give every memory of a space its quality now. What is cut off is run again."""
    done = changed = 0
    async for batch in batches(store, space, now):
        done, changed = done + batch.memories, changed + batch.changed
        on_progress(done)
    await store.ledger.note_scoring(space, now)
    return Rated(done, changed)


def weighed(fused: Sequence[Fused], qualities: Mapping[str, float | None], weight: float) -> list[Fused]:
    """Each score times `1 - weight + weight x quality`, best first, equals in the order they had; `why` gets a part of
    that kind.

    What was never scored counts as what scoring would give a new memory. A lift for an exact
    match is taken back first: it is to be given again, in the new order.
    """
    scored = [_weighed(f, qualities.get(f.id), weight) for f in fused]
    scored.sort(key=lambda one: one[0].score, reverse=True)
    return [
        f._replace(parts=(*f.parts, (QUALITY, place, worth, factor, f.score - before, QUALITY)))
        for place, (f, worth, factor, before) in enumerate(scored, start=1)
    ]


def quality_factor(fused: Fused) -> float:
    """What `weighed` has multiplied the score by."""
    return next((part[3] for part in fused.parts if part[5] == QUALITY), 1.0)


def _weighed(fused: Fused, known: float | None, weight: float) -> tuple[Fused, float, float, float]:
    """The hit with its new score, its quality, the factor that this made, and the score before."""
    worth = BASE if known is None else known
    factor = 1 - weight + weight * worth
    before = fused.score - sum(part[4] for part in fused.parts if part[5] == EXACT)
    parts = tuple(part for part in fused.parts if part[5] != EXACT)
    return Fused(fused.id, before * factor, parts), worth, factor, before
