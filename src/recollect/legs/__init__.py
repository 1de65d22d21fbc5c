"""Legs: ways to search. Each turns a question into a ranking, and knows nothing of the others.

`LEGS` is the one table of them. Another package adds a leg as an entry point of the group `recollect.legs`: something
that makes a `LegSearch` out of `LegEngines`. A lane then names it: `Lane("mine", "myleg")`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from recollect.parts import Parts

if TYPE_CHECKING:
    from recollect.legs.graph import Edges, Links
    from recollect.legs.question import Question
    from recollect.legs.vector import Threads
    from recollect.ports import VectorIndex, WordIndex
    from recollect.recipes import Lane
    from recollect.types import Ranking


class LegSearch(Protocol):
    """A leg: it answers a question for one lane."""

    async def search(self, question: Question, lane: Lane) -> Ranking: ...


class LegEngines(Protocol):
    """What legs are made of, each engine behind its gate."""

    @property
    def vectors(self) -> VectorIndex: ...
    @property
    def words(self) -> WordIndex: ...
    @property
    def links(self) -> Links: ...
    @property
    def rows(self) -> Threads: ...
    @property
    def edges(self) -> Edges: ...


LegFactory: TypeAlias = Callable[[LegEngines], LegSearch]

LEGS: Parts[LegFactory] = Parts(
    "recollect.legs",
    {
        "vector": "recollect.legs.vector:VectorLeg",
        "keyword": "recollect.legs.keyword:KeywordLeg",
        "graph": "recollect.legs.graph:GraphLeg",
    },
)
