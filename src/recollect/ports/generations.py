"""The models that made a store's vectors, and the way from one to the next while others read and write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from recollect.types import Generation, Memory

if TYPE_CHECKING:
    from recollect.types import Vector


class GenerationState(NamedTuple):
    """A generation, since when it is in its state, and how many vectors it has. The `current` one answers, a `next` one
    is being filled, an `old` one answered before.
    """

    generation: Generation
    state: Literal["current", "next", "old"]
    since: datetime | None
    vectors: int


class Generations(Protocol):
    """Several generations of vectors side by side. Every search is within one of them. A memory that is forgotten, or
    says something else, loses its vectors of all.
    """

    async def all(self) -> Sequence[GenerationState]:
        """Every generation that has vectors or gets them, in the order in which they began."""

    async def begin(self, generation: Generation) -> None:
        """Make a generation the next one. An old one keeps its vectors. Raises InvalidRequest while another is next,
        and for the current one.
        """

    async def unembedded(self, space: str, generation: Generation, *, after: str, limit: int) -> Sequence[Memory]:
        """Memories that have a vector, but none of this generation: in the order of their ids, after one of them."""

    async def put(self, space: str, generation: Generation, embedded: Sequence[tuple[Memory, Vector]]) -> None:
        """Store vectors of the next generation; not where the title or the text changed meanwhile."""

    async def publish(self, generation: Generation, *, without: Mapping[str, Sequence[str]]) -> bool:
        """Let the next generation answer from now on, and the current one become old, in one step. False: memories
        lack its vector, and nothing changes. The ids in `without`, by space, may lack it: they wait for one then.
        """

    async def relink(self) -> bool:
        """After `publish`, delete the links to the nearest that the old vectors made in one space, and let its memories
        wait for new ones. False: no space is left. Cut off, it goes on where it was.
        """

    async def drop(self, generation: Generation) -> None:
        """Delete the vectors of a generation that is old or next. Raises InvalidRequest for the current one."""
