"""The graph leg: what is linked to the memories nearest to the question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from recollect.legs.question import Question
from recollect.ports import Reached
from recollect.recipes import Lane
from recollect.types import SIMILAR, Edge, Filter, Ranking, Scored

if TYPE_CHECKING:
    from recollect.legs import LegEngines

MEANING_SHARE = 0.5
"""How much of its patience the lane waits for the nearest by meaning. The rest is enough to start from words instead
and to walk: both take a healthy engine a small part of it.
"""


class Links(Protocol):
    """What the leg needs of a graph index."""

    async def walk(
        self, space: str, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]: ...


Edges: TypeAlias = Callable[[str, Sequence[str]], Awaitable[Sequence[Edge]]]
"""The links that touch some memories of a space, as a store holds them."""


class Visible(Protocol):
    """What is needed of a store to show a guest the links of another's space."""

    async def visible(self, space: str, ids: Sequence[str], where: Filter) -> set[str]: ...


class GraphLeg:
    """Starts from the question's own nearest memories: by meaning, or by words where meaning is not to be had. For a
    guest it follows the links of the store itself.
    """

    def __init__(self, engines: LegEngines) -> None:
        self._index = engines.links
        self._store = engines.rows
        self._edges = engines.edges

    async def search(self, question: Question, lane: Lane) -> Ranking:
        seeds = await self._seeds(question, lane)
        where = question.filter_of(lane)
        reached: Sequence[Reached]
        if question.guest:
            edges = await self._edges(question.space, seeds) if seeds else ()
            reached = await made_links(self._store, edges, question.space, seeds, where, limit=question.fanout)
        else:
            reached = await self._index.walk(question.space, seeds, where, depth=lane.depth, limit=question.fanout)
        return Ranking(lane.name, "graph", tuple(Scored(r.id, r.strength) for r in reached))

    async def _seeds(self, question: Question, lane: Lane) -> list[str]:
        where = question.filter_of(lane)
        try:
            nearest = (await question.nearest(where, lane.ef_search, share=MEANING_SHARE)).hits
        except Exception:  # noqa: BLE001  # whatever ails the embedder or the vector index, their own lane reports it
            nearest = await question.best_by_words(where, limit=lane.seeds)
        return [hit.id for hit in nearest[: lane.seeds]]


async def made_links(
    store: Visible, edges: Sequence[Edge], space: str, seeds: Sequence[str], where: Filter, *, limit: int
) -> Sequence[Reached]:
    """What a guest may see one step away from these memories, strongest first, by links that a person or agent made.
    Automatic links lead to the nearest memories of the whole space, and so would reveal what else it holds.
    """
    reached = strongest([edge for edge in edges if edge.relation != SIMILAR], seeds)
    seen = await store.visible(space, [one.id for one in reached], where)
    return [one for one in reached if one.id in seen][:limit]


def strongest(edges: Iterable[Edge], seeds: Iterable[str]) -> list[Reached]:
    """What edges lead to from some seeds, by the strongest edge to each, ties by id."""
    best: dict[str, Reached] = {}
    begin = set(seeds)
    for edge in edges:
        for near, far in ((edge.source, edge.target), (edge.target, edge.source)):
            one = Reached(far, edge.strength, 1, edge.relation)
            if near in begin and (far not in best or _rank(one) < _rank(best[far])):
                best[far] = one
    return sorted(best.values(), key=_rank)


def _rank(one: Reached) -> tuple[float, str, str]:
    return -one.strength, one.id, one.relation
