"""How long each lane takes: counted in memory, by space and recipe, while a server runs. The store keeps it by leg."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from recollect.client import AsyncRecollect
from recollect.engine.usage import lane_usage
from recollect.errors import RecallFailed
from recollect.servers.labels import lane_label, recipe_label
from recollect.types import Leg, LegUsage, Recall

SPACES = 1_000
"""Spaces that are remembered: those that were asked last."""


class LaneRow(NamedTuple):
    """What a lane of a recipe did."""

    recipe: str
    lane: str
    leg: Leg
    did: LegUsage


Lane: TypeAlias = tuple[str, str, Leg]


class LaneMeter:
    """Hears of every recall of a client, by whichever door."""

    def __init__(self, client: AsyncRecollect) -> None:
        self.since = datetime.now(UTC)
        self._spaces: OrderedDict[str, dict[Lane, LegUsage]] = OrderedDict()
        client.on_recall(self.recalled)

    def recalled(self, space: str, recipe: str, outcome: Recall | RecallFailed) -> None:
        """Count the lanes of a recall that were wanted."""
        lanes = self._spaces.setdefault(space, {})
        self._spaces.move_to_end(space)
        if len(self._spaces) > SPACES:
            self._spaces.popitem(last=False)
        for report in outcome.lanes:
            if report.wanted:
                lane = (recipe_label(recipe), lane_label(recipe, report.lane, report.leg), report.leg)
                lanes[lane] = lanes.get(lane, LegUsage()) + lane_usage(report)

    def rows(self, space: str) -> list[LaneRow]:
        """What each lane did in a space, recipe by recipe, in the recipe's order."""
        found = self._spaces.get(space, {})
        return sorted((LaneRow(*lane, did) for lane, did in found.items()), key=lambda row: row.recipe)
