"""The graph leg: what is linked to the memories nearest to the question."""

from __future__ import annotations

from recollect.errors import RecollectError
from recollect.legs.question import Question
from recollect.ports import GraphIndex
from recollect.recipes import Lane
from recollect.types import Ranking, Scored


class GraphLeg:
    """Starts from the question's own nearest memories: by meaning, or by words where there is no vector."""

    def __init__(self, index: GraphIndex) -> None:
        self._index = index

    async def search(self, question: Question, lane: Lane) -> Ranking:
        seeds = await self._seeds(question, lane)
        reached = await self._index.walk(
            question.space, seeds, question.filter_of(lane), depth=lane.depth, limit=question.fanout
        )
        return Ranking(lane.name, tuple(Scored(r.id, r.strength) for r in reached))

    async def _seeds(self, question: Question, lane: Lane) -> list[str]:
        where = question.filter_of(lane)
        try:
            nearest = (await question.nearest(where)).hits
        except RecollectError:
            nearest = await question.wordiest(where, limit=lane.seeds)
        return [hit.id for hit in nearest[: lane.seeds]]
