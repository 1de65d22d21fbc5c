"""Quality: what a memory is worth by how often and how recently it proved useful, and what that does to a ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log1p
from typing import TYPE_CHECKING, Final

from recollect.types import Filter, Fused

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.ports import Store

BASE: Final = 0.5
"""The quality of a memory that was never asked for: nobody knows."""
HALF_LIFE: Final = timedelta(days=90)
DIGITS: Final = 4
"""What is stored is rounded: a difference that nobody could tell is not worth writing a row for."""
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


def quality(hits: int, last_hit_at: datetime | None, most: int, now: datetime) -> float:
    """From 0 to 1, `most` being the hits of the space's most asked memory.

    `(0.5 + 0.5 log(1 + hits) / log(1 + most)) x 0.5 ** (days since the last hit / 90)`, and 0.5 for the never asked.

    The logarithm, because the tenth hit tells more than the hundredth. The sum begins at the base, so that a hit never
    makes a memory worse than one that nobody asked for (pgmemory, whose `log(1 + hits) / log(1 + most)` and half-life
    these are, has no base there: with it one hit in a busy space would cost nine tenths). Decay goes on below the base,
    towards 0: what was of use once and is not any more is known to be stale, which the never asked is not, and a floor
    (`min_quality`) leaves it out in the end: one of 0.05 after 299 to 389 days. The next hit brings it back.

    >>> now = datetime(2026, 1, 1)
    >>> quality(0, None, 100, now), quality(100, now, 100, now), quality(100, now - HALF_LIFE, 100, now)
    (0.5, 1.0, 0.5)
    """
    if hits <= 0 or last_hit_at is None:
        return BASE
    share = min(log1p(hits) / log1p(max(most, 1)), 1.0)  # it may have been hit again since `most` was read
    idle = max(now - last_hit_at, timedelta())  # another machine's clock may be ahead
    return float((BASE + (1 - BASE) * share) * 0.5 ** (idle / HALF_LIFE))


async def score(store: Store, space: str, now: datetime, on_progress: Callable[[int], None] = lambda _: None) -> Rated:
    """Give every memory of a space its quality, in batches by id, each in a transaction of its own. Whoever writes
    meanwhile goes on; what is cut off is run again. A quality that somebody gave by hand is overwritten: one number,
    made one way, can be compared.
    """
    most = await store.most_hits(space)
    after: str | None = None
    done = changed = 0
    while True:
        page = await store.list(space, EVERYTHING, limit=BATCH, after=after)
        rated = {m.id: round(quality(m.hits, m.last_hit_at, most, now), DIGITS) for m in page.memories}
        new = {m.id: rated[m.id] for m in page.memories if m.quality != rated[m.id]}
        if new:
            changed += await store.set_qualities(space, new)
        done += len(rated)
        on_progress(done)
        if page.cursor is None:
            return Rated(done, changed)
        after = page.cursor


def weighed(fused: Sequence[Fused], qualities: Mapping[str, float | None], weight: float) -> list[Fused]:
    """Each score times `1 - weight + weight x quality`, best first, equals in the order they had; `why` gets a part of
    that kind.

    What was never scored counts as what scoring would give a memory that nobody has asked for yet. A lift for an exact
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
