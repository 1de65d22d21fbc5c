"""A memory and what is around it as a drawing: where each circle and each line goes. Nothing here does I/O.

What is linked to the memory stands on an ellipse around it; what is linked to those stands farther out, on their side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import NamedTuple

from recollect.servers.dashboard.wording import label
from recollect.types import Memory, Neighbor

WIDTH, HEIGHT = 640.0, 440.0
CENTRE = (WIDTH / 2, HEIGHT / 2)
RINGS = ((0.0, 0.0), (190.0, 118.0), (292.0, 192.0))
"""Half the width and half the height of each ellipse."""
RADII = (22.0, 15.0, 9.0)
SECTOR = 0.7
"""How much of its part of the circle a memory's own neighbours may take."""
LABEL_CHARACTERS = 20
STROKE = (0.75, 4.0)
"""How thick the weakest and the strongest line are."""


class Node(NamedTuple):
    """A memory in the drawing: its place, which ring it stands on, and its number in the list beside."""

    memory: Memory
    x: float
    y: float
    ring: int
    number: int

    @property
    def radius(self) -> float:
        return RADII[self.ring]

    @property
    def short(self) -> str:
        return label(self.memory, LABEL_CHARACTERS)

    @property
    def label_y(self) -> float:
        """Above the circle in the upper half, else below it: away from the lines to the middle."""
        return self.y - self.radius - 7 if self.y < CENTRE[1] - 1 else self.y + self.radius + 15


class Line(NamedTuple):
    """A link in the drawing, as thick as it is strong."""

    start: Node
    end: Node
    strength: float
    relation: str

    @property
    def stroke(self) -> float:
        thin, thick = STROKE
        return thin + (thick - thin) * self.strength


@dataclass(frozen=True, slots=True)
class Drawing:
    """Circles and lines; the first circle is the memory itself."""

    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]


def draw(memory: Memory, around: Sequence[Neighbor], beyond: Mapping[str, Sequence[Neighbor]]) -> Drawing:
    """The memory, what is linked to it, and what is linked to those (by their ids)."""
    centre = Node(memory, *CENTRE, 0, 0)
    placed = {memory.id: centre}
    angles = {}
    for at, neighbor in enumerate(around):
        angles[neighbor.memory.id] = angle = 2 * pi * at / len(around) - pi / 2
        placed[neighbor.memory.id] = _node(neighbor.memory, angle, 1, len(placed))
    lines = {
        frozenset((memory.id, one.memory.id)): Line(centre, placed[one.memory.id], one.strength, one.relation)
        for one in around
    }
    for id, angle in angles.items():
        _place_beyond(placed, beyond.get(id, ()), angle, SECTOR * 2 * pi / len(angles))
        for one in beyond.get(id, ()):
            ends = frozenset((id, one.memory.id))
            if len(ends) == 2 and ends not in lines:
                lines[ends] = Line(placed[id], placed[one.memory.id], one.strength, one.relation)
    return Drawing(tuple(placed.values()), tuple(lines.values()))


def _place_beyond(placed: dict[str, Node], reached: Sequence[Neighbor], angle: float, sector: float) -> None:
    """Those that are not in the drawing yet, fanned out on their neighbour's side."""
    new = [one for one in reached if one.memory.id not in placed]
    for at, one in enumerate(new, 1):
        placed[one.memory.id] = _node(one.memory, angle + sector * (at / (len(new) + 1) - 0.5), 2, len(placed))


def _node(memory: Memory, angle: float, ring: int, number: int) -> Node:
    across, down = RINGS[ring]
    x, y = CENTRE[0] + across * cos(angle), CENTRE[1] + down * sin(angle)
    return Node(memory, round(x, 1), round(y, 1), ring, number)
