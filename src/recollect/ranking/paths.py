"""The best paths of a walk along links, whatever holds the links: pure, one step at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, TypeVar

from recollect.errors import InvalidRequest

DEPTHS: Final = (1, 2, 3)
LINKS_PER_STEP: Final = 1_000
"""A step of a walk looks at no more links than these, those of the best memories first."""
LINKS_PER_MEMORY: Final = 50
"""Beyond the first step, only so many of a memory's strongest links in each direction are followed: what everything
is linked to says little about any of it, and must not slow a recall down."""

Key = TypeVar("Key", bound=int | str)
"""What names a memory where the links are."""


class Label(NamedTuple, Generic[Key]):
    """How well one seed reaches one memory. Labels sort best first: stronger, then nearer."""

    weakness: float
    """The strength, negative."""
    steps: int
    seed: Key
    relation: str


class Link(NamedTuple, Generic[Key]):
    """A link as a walk meets it: from a memory it has reached to another, whichever way the link points."""

    near: Key
    far: Key
    relation: str
    strength: float


class Paths(Generic[Key]):
    """The best paths from some seeds, as far as they were followed.

    A memory may be reached on a weaker but shorter path first, so all paths grow by a step at once; what is neither
    better nor shorter than before is not followed again.
    """

    def __init__(self, seeds: Iterable[Key]) -> None:
        self._reached: dict[Key, list[Label[Key]]] = {}
        self._frontier: dict[Key, list[Label[Key]]] = {seed: [Label(-1.0, 0, seed, "")] for seed in seeds}

    @property
    def frontier(self) -> list[Key]:
        """The memories whose links come next, best first."""
        return sorted(self._frontier, key=lambda key: (self._frontier[key][0].weakness, key))

    @property
    def best(self) -> dict[Key, Label[Key]]:
        """The best path to every memory that was reached."""
        return {key: labels[0] for key, labels in self._reached.items()}

    def follow(self, links: Iterable[Link[Key]]) -> None:
        """Take one step along these links of the frontier."""
        frontier, self._frontier = self._frontier, {}
        for near, far, relation, strength in links:
            for weakness, steps, seed, _ in frontier[near]:
                if seed != far:
                    self._enter(far, Label(weakness * strength, steps + 1, seed, relation))

    def _enter(self, key: Key, label: Label[Key]) -> None:
        if _keep(self._reached.setdefault(key, []), label):
            _keep(self._frontier.setdefault(key, []), label)


def check_depth(depth: int) -> None:
    if depth not in DEPTHS:
        raise InvalidRequest(f"a walk goes {DEPTHS[0]} to {DEPTHS[-1]} steps, not {depth}")


def _keep(labels: list[Label[Key]], label: Label[Key]) -> bool:
    """Keep a label if it is one of the best two of different seeds; whether it is.

    Two, because a path back to a seed counts only when another seed began it, and of two different seeds one always
    is another.
    """
    if len(labels) == 2 and labels[1] <= label:
        return False
    if any(known.seed == label.seed and known <= label for known in labels):
        return False
    labels[:] = sorted([label, *(known for known in labels if known.seed != label.seed)])[:2]
    return True
