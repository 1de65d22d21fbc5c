"""The graph leg: what is linked to the memories nearest to the question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from recollect.legs.question import Question
from recollect.ports import Reached
from recollect.recipes import Lane
from recollect.types import Filter, Ranking, Scored

MEANING_SHARE = 0.5
"""How much of its patience the lane waits for the nearest by meaning. The rest is enough to start from words instead
and to walk: both take a healthy engine a small part of it.
"""


class Links(Protocol):
    """What the leg needs of a graph index."""

    async def walk(
        self, space: str, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]: ...


class GraphLeg:
    """Starts from the question's own nearest memories: by meaning, or by words where meaning is not to be had."""

    def __init__(self, index: Links) -> None:
        self._index = index

    async def search(self, question: Question, lane: Lane) -> Ranking:
        seeds = await self._seeds(question, lane)
        reached = await self._index.walk(
            question.space, seeds, question.filter_of(lane), depth=lane.depth, limit=question.fanout
        )
        return Ranking(lane.name, "graph", tuple(Scored(r.id, r.strength) for r in reached))

    async def _seeds(self, question: Question, lane: Lane) -> list[str]:
        where = question.filter_of(lane)
        try:
            nearest = (await question.nearest(where, lane.ef_search, share=MEANING_SHARE)).hits
        except Exception:  # noqa: BLE001  # whatever ails the embedder or the vector index, their own lane reports it
            nearest = await question.wordiest(where, limit=lane.seeds)
        return [hit.id for hit in nearest[: lane.seeds]]
