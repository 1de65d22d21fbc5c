"""How a space and its use look on a terminal: what it holds, and a chart of what each leg found, hour by hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.text import Text

from recollect.servers.cli.render import QUIET, WARNING, count, moment, plain_table, sheet, tally
from recollect.servers.slots import slotted
from recollect.servers.why import look
from recollect.types import LEGS, LegUsage, SpaceStats, SpaceUsage, Usage

if TYPE_CHECKING:
    from recollect.engine.quality import Rated

SLOTS = 43
"""Columns of a chart, at most: a week in steps of four hours, and the step that has begun."""


class Columns:
    """Numbers as a row of columns, one sign each, as high as they are against `top`; 0 is a blank."""

    BLOCKS = " ▁▂▃▄▅▆▇█"
    ASCII = " .:-=+*#@"

    def __init__(self, numbers: Sequence[int], top: int, style: str) -> None:
        self._numbers = numbers
        self._top = top
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        signs = self.ASCII if options.ascii_only else self.BLOCKS
        heights = (ceil(number * (len(signs) - 1) / max(self._top, 1)) for number in self._numbers)
        yield Text("".join(signs[height] for height in heights), style=self._style, no_wrap=True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(len(self._numbers), len(self._numbers))


def stats(held: SpaceStats, used: SpaceUsage) -> RenderableType:
    """What a space holds, and how it was used."""
    return Group(holdings(held), Text(), usage(used, datetime.now(UTC)))


def holdings(held: SpaceStats) -> RenderableType:
    return sheet(
        {
            "space": held.space,
            "memories": f"{held.memories:,}",
            "superseded": f"{held.superseded:,}",
            "not yet embedded": f"{held.pending:,}",
            "links": f"{held.edges:,}",
            "kinds": tally(held.kinds),
            "namespaces": tally(held.namespaces),
        }
    )


def usage(used: SpaceUsage, now: datetime) -> RenderableType:
    """Recalls, how many were not whole, and for each leg its hits over time and how it fared."""
    since = "" if used.since is None else f" since {moment(used.since)}"
    if not used.total.recalls:
        return Text(f"no recalls{since}", style=QUIET)
    return Group(recalls(used.total, since), legs(used, now))


def recalls(total: Usage, since: str) -> Text:
    line = Text(f"{count(total.recalls, 'recall')}{since}")
    for number, what in ((total.degraded, "degraded"), (total.failed, "failed")):
        if number:
            line.append(f", {number:,} {what} ({number / total.recalls:.1%})", style=WARNING)
    return line


def legs(used: SpaceUsage, now: datetime) -> RenderableType:
    """One row for each leg; the columns of the charts are comparable from row to row."""
    width, slots = slotted(used, now, SLOTS)
    shown = [*dict.fromkeys((*LEGS, *used.total.legs))]
    charts = {leg: [slot.usage.legs.get(leg, LegUsage()).hits for slot in slots] for leg in shown}
    top = max((number for numbers in charts.values() for number in numbers), default=0)
    table = plain_table("leg", ">hits", f"hits by {span(width)}", ">ms", "not answered")
    for leg in shown:
        did = used.total.legs.get(leg, LegUsage())
        average = "" if did.average is None else f"{did.average:,.1f}"
        style = look(leg).colour
        name = Text(leg, style=style)
        table.add_row(name, f"{did.hits:,}", Columns(charts[leg], top, style), average, unanswered(did))
    return table


def unanswered(did: LegUsage) -> Text:
    """`2 late, 1 failed, 3 skipped of 40`."""
    parts = [f"{number:,} {what}" for what in ("late", "failed", "skipped") if (number := getattr(did, what))]
    return Text(f"{', '.join(parts)} of {did.searches + did.skipped:,}" if parts else "", style=WARNING)


def span(hours: int) -> str:
    """`hour`, `4 hours`, `2 days`."""
    return ("day" if hours == 24 else f"{hours // 24} days") if hours % 24 == 0 else plural(hours)


def plural(hours: int) -> str:
    return "hour" if hours == 1 else f"{hours} hours"


def rated(outcome: Rated) -> RenderableType:
    memories = count(outcome.memories, "memory", "memories")
    return Text(f"scored {memories}, {outcome.changed:,} of them anew")
