"""What recalls are counted under: names of a closed set. A caller may call a lane or a recipe anything, and each new
name would be one more counter that the server keeps.
"""

from __future__ import annotations

from typing import Final

from recollect.recipes import RECIPES
from recollect.types import Leg

CUSTOM: Final = "custom"
LANES: Final = {name: frozenset(lane.name for lane in recipe.lanes) for name, recipe in RECIPES.items()}


def recipe_label(recipe: str) -> str:
    """The name of a built-in recipe; `custom` for any other.

    >>> [recipe_label(name) for name in ("balanced", "mine")]
    ['balanced', 'custom']
    """
    return recipe if recipe in RECIPES else CUSTOM


def lane_label(recipe: str, lane: str, leg: Leg) -> str:
    """The name of a lane of a built-in recipe; for any other its leg's.

    >>> [lane_label("balanced", name, "vector") for name in ("vector", "mine")]
    ['vector', 'vector']
    """
    return lane if lane in LANES.get(recipe, ()) else leg
