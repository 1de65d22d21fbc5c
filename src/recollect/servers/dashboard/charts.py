"""Usage and reasons as shapes: plain numbers that a template draws as SVG. Nothing here does I/O.

A chart of time has one unit of width for each slot and `HEIGHT` units of height; the page stretches it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recollect.servers.dashboard.wording import count, moment
from recollect.servers.slots import Slot
from recollect.servers.why import label
from recollect.types import LEGS, Contribution, Hit, Leg, LegUsage, Usage, Why

SLOTS = 48
"""Columns of a chart, at most."""
HEIGHT = 40.0
GAP = 0.16
"""The part of a slot that is left free between two columns."""
BAR = 1000.0
"""The width of the bar of the best hit."""
LEAST = 4.0
"""The width that the smallest share is drawn with, so that it shows."""


class Column(NamedTuple):
    """A rectangle of a chart, what it is part of, and what it says."""

    x: float
    y: float
    width: float
    height: float
    tone: str
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Columns over time, and the highest value there is."""

    columns: tuple[Column, ...]
    slots: int
    top: float


@dataclass(frozen=True, slots=True)
class LegRow:
    """One leg over time: its hits, how long it took, and how often it did not answer."""

    leg: Leg
    did: LegUsage
    hits: Chart
    latency: Chart


class Segment(NamedTuple):
    """What one part gave to a hit's score, on its bar; `taken` is what was taken off again."""

    label: str
    tone: str
    x: float
    width: float
    taken: bool


def leg_rows(used: Usage, slots: Sequence[Slot]) -> list[LegRow]:
    """A row for each leg; the columns of one kind are comparable from row to row."""
    shown = [*dict.fromkeys((*LEGS, *used.legs))]
    did = {leg: [slot.usage.legs.get(leg, LegUsage()) for slot in slots] for leg in shown}
    most = max((one.hits for row in did.values() for one in row), default=0)
    slowest = max((one.average or 0.0 for row in did.values() for one in row), default=0.0)
    return [
        LegRow(
            leg,
            used.legs.get(leg, LegUsage()),
            _chart(slots, leg, most, [(float(one.hits), count(one.hits, "hit")) for one in did[leg]]),
            _chart(slots, leg, slowest, [(one.average or 0.0, f"{one.average or 0.0:.1f} ms") for one in did[leg]]),
        )
        for leg in shown
    ]


def answers(slots: Sequence[Slot]) -> Chart:
    """Recalls over time: whole, degraded and failed ones on top of each other."""
    top = max((slot.usage.recalls for slot in slots), default=0)
    columns = []
    for at, (start, usage) in enumerate(slots):
        whole = usage.recalls - usage.degraded - usage.failed
        below = 0.0
        for tone, number in (("whole", whole), ("degraded", usage.degraded), ("failed", usage.failed)):
            if number:
                height = _height(number, top)
                columns.append(_column(at, below, height, tone, f"{moment(start)}: {number:,} {tone}"))
                below += height
    return Chart(tuple(columns), max(len(slots), 1), top)


def bar(why: Iterable[Contribution], full: float) -> list[Segment]:
    """The shares of a score from left to right, in the order of `why`; `full` is as wide as the bar."""
    at, segments = 0.0, []
    for part in sorted(why, key=lambda part: part.contribution < 0):
        if not part.contribution:
            continue
        width = max(abs(part.contribution) / (full or 1.0) * BAR, LEAST)
        taken = part.contribution < 0
        segments.append(Segment(label(part), part.kind, max(at - width, 0) if taken else at, width, taken))
        at += -width if taken else width
    return segments


def fullest(hits: Iterable[Hit]) -> float:
    """What the lanes gave to the hit that they gave the most."""
    return max((given(hit.why) for hit in hits), default=0.0)


def given(why: Why) -> float:
    return sum(max(part.contribution, 0.0) for part in why)


def _chart(slots: Sequence[Slot], tone: str, top: float, values: Sequence[tuple[float, str]]) -> Chart:
    columns = tuple(
        _column(at, 0.0, _height(value, top), tone, f"{moment(slot.start)}: {said}")
        for at, (slot, (value, said)) in enumerate(zip(slots, values, strict=True))
        if value > 0
    )
    return Chart(columns, max(len(slots), 1), top)


def _column(at: int, below: float, height: float, tone: str, title: str) -> Column:
    return Column(at + GAP / 2, HEIGHT - below - height, 1 - GAP, height, tone, title)


def _height(value: float, top: float) -> float:
    return value / top * HEIGHT if top else 0.0
