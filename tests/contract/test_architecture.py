"""The picture of the house agrees with the house: with the layers of the import contract, and with the imports."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import grimp
import pytest

from recollect.composition import INDEXES, STORES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PICTURE, *WAYS = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)
ROOMS = re.findall(r"^ +(\w+)\[\"", PICTURE, re.MULTILINE)
ARROWS = re.findall(r"^ +(\w+) (-->|-\.->) (\w+)$", PICTURE, re.MULTILINE)


def contract(name: str) -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, Any] = next(c for c in project["tool"]["importlinter"]["contracts"] if c["name"] == name)
    return found


LAYERS = [re.findall(r"\w+", layer) for layer in contract("Imports go one way")["layers"]]
DEPTH = {room: depth for depth, layer in enumerate(LAYERS) for room in layer}


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("recollect", exclude_type_checking_imports=True)


def test_every_room_is_drawn_once() -> None:
    """The picture has the rooms of the import contract, which is exhaustive, and no others."""
    assert sorted(ROOMS) == sorted(DEPTH)
    assert contract("Imports go one way")["exhaustive"]


def test_every_room_has_an_arrow() -> None:
    """No room stands alone, but the settings, which nearly every room reads."""
    drawn = {room for one, _, other in ARROWS for room in (one, other)}
    assert set(ROOMS) - drawn == {"settings"}


def test_arrows_point_down() -> None:
    """An arrow goes from a higher layer to a lower one."""
    upward = [(one, other) for one, _, other in ARROWS if DEPTH[one] >= DEPTH[other]]
    assert upward == []


def test_arrows_are_imports(imports: grimp.ImportGraph) -> None:
    """A plain arrow is an import that there is."""
    idle = [
        f"{one} --> {other}"
        for one, kind, other in ARROWS
        if kind == "-->"
        and not imports.direct_import_exists(
            importer=f"recollect.{one}", imported=f"recollect.{other}", as_packages=True
        )
    ]
    assert idle == [], f"take these out of docs/architecture.md: {idle}"


def test_dotted_arrows_are_tables() -> None:
    """A dotted arrow leads where the composition root's tables lead."""
    dotted = {other for one, kind, other in ARROWS if kind == "-.->" and one == "composition"}
    named = {place.split(".")[1] for parts in (STORES, INDEXES) for place in parts.ours.values()}
    assert dotted == named


@pytest.mark.parametrize("way", WAYS, ids=["recall", "remember"])
def test_ways_go_through_rooms(way: str) -> None:
    """Whoever takes part in a recall or a remember is a room, and every message is between two of them."""
    participants = re.findall(r"participant (\w+)", way)
    assert set(participants) <= set(ROOMS)
    messages = re.findall(r"^ +(\w+)--?>>(\w+):", way, re.MULTILINE)
    assert {room for message in messages for room in message} == set(participants)


def test_paths_exist() -> None:
    """A file or folder that the text names is there."""
    named = set(re.findall(r"(?:`|\*\*)(\w+(?:/\w+)*(?:/|\.py))(?:`|\*\*)", PAGE))
    places = (ROOT, ROOT / "src" / "recollect")
    assert [name for name in named if not any((place / name).exists() for place in places)] == []
