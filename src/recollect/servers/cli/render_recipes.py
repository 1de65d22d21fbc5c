"""How recipes look on a terminal: their lanes as a table, the rest in a line."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recollect.recipes import Diversity, Fanout, Fusion, Lane, Limit, Recipe, Rerank
from recollect.servers.cli.render import QUIET, plain_table
from recollect.servers.why import look


def recipe_sheets(recipes: Iterable[Recipe]) -> RenderableType:
    return Group(*(Padding(recipe_sheet(recipe), (0, 0, 1, 0)) for recipe in recipes))


def recipe_sheet(recipe: Recipe) -> RenderableType:
    head = Text.assemble((recipe.name, "bold"), "  ", (recipe.about, QUIET))
    return Group(head, Padding(Group(lane_table(recipe.lanes), bounds(recipe)), (0, 0, 0, 2)))


def lane_table(lanes: Iterable[Lane]) -> Table:
    table = plain_table("lane", ">weight", "kinds", "settings")
    for lane in lanes:
        kinds = ", ".join(lane.kinds) or "all"
        table.add_row(Text(lane.name, style=look(lane.leg).colour), f"{lane.weight:g}", kinds, lane_settings(lane))
    return table


def lane_settings(lane: Lane) -> str:
    """What matters to the lane's leg."""
    parts = []
    if lane.leg == "keyword":
        parts += [f"{lane.words} words", {"any": "any term"}.get(lane.match, f"{lane.match} (all)"), lane.score]
    if lane.leg == "graph":
        parts += [f"{lane.depth} step{'s'[: lane.depth - 1]}", f"from {lane.seeds} memories"]
    if lane.title_boost:
        parts.append(f"+{lane.title_boost:g} for the title")
    if lane.context:
        parts.append("with thread neighbours")
    if lane.ef_search:
        parts.append(f"ef_search {lane.ef_search}")
    if lane.lowest > -1:
        parts.append(f"scores from {lane.lowest:g}")
    if lane.every_namespace:
        parts.append("every namespace")
    return ", ".join(parts)


def bounds(recipe: Recipe) -> Text:
    """Everything of a recipe that is not a lane."""
    parts = [limit(recipe.limit), fanout(recipe.fanout), fusion(recipe.fusion), diversity(recipe.diversity)]
    parts += [rerank(recipe.rerank)] if recipe.rerank else []
    parts += [f"confidence >= {recipe.min_confidence:g}"] if recipe.min_confidence is not None else []
    parts += [f"score >= {recipe.min_score:g}"] if recipe.min_score is not None else []
    parts += [f"quality >= {recipe.min_quality:g} or unscored"] if recipe.min_quality is not None else []
    parts += [f"weighed by quality {recipe.quality_weight:g}"] if recipe.quality_weight else []
    parts += [f"namespace {' and '.join(recipe.default_namespaces)} unless named"] if recipe.default_namespaces else []
    parts.append("superseded " + ("in" if recipe.include_superseded else "out"))
    parts.append("expired " + ("in" if recipe.include_expired else "out"))
    parts.append("all lanes failed: " + ("an error" if recipe.all_failed == "raise" else "empty"))
    return Text("; ".join(parts))


def limit(bound: Limit) -> str:
    return f"limit {bound.default} in {bound.least}..{bound.most}" + (" (clamped)" if bound.clamp else "")


def fanout(asked: Fanout) -> str:
    return f"fanout max({asked.times} x limit, {asked.at_least})" if asked.at_least else f"fanout {asked.times} x limit"


def fusion(how: Fusion) -> str:
    names = {"rrf": f"RRF k={how.k}", "min_max": "min-max", "calibrated": "calibrated", "raw": "none"}
    return f"fusion {names[how.method]}"


def diversity(how: Diversity) -> str:
    names = {"none": "none", "near_copies": "near-copies", "mmr": f"MMR lambda {how.balance:g}"}
    return f"diversity {names[how.method]}"


def rerank(how: Rerank) -> str:
    model = how.model or "the client's model"
    trust = f"trusted {how.turns:g} with turns, {how.rest:g} with the rest"
    return f"rerank the best {how.count} by {model}, {trust}, within {how.deadline:g} s"
