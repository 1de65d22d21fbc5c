"""The keyword leg: which memories hold the question's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.legs.question import Question
from recollect.ports import WordHits, WordSearch
from recollect.recipes import Lane
from recollect.types import Ranking

if TYPE_CHECKING:
    from recollect.legs import LegEngines

SINGLED_OUT = 3
"""An identifier that more memories hold does not name one of them: it is a topic."""


class KeywordLeg:
    def __init__(self, engines: LegEngines) -> None:
        self._index = engines.words

    async def search(self, question: Question, lane: Lane) -> Ranking:
        analyzed = lane.match == "any"
        search = WordSearch(
            text=question.text,
            terms=question.words.terms if analyzed else (),
            phrases=question.words.phrases if analyzed else (),
            words=lane.words,
            match=lane.match,
            score=lane.score,
            title_boost=lane.title_boost,
            context=lane.context,
            within=question.within,
        )
        found = await self._index.search_words(question.space, search, question.filter_of(lane), limit=question.fanout)
        exact = exact_hits(question.words.phrases, found)
        return Ranking(lane.name, "keyword", tuple(found.hits), found.background, exact, "exponential")


def exact_hits(phrases: Sequence[tuple[str, ...]], found: WordHits) -> frozenset[str]:
    """The hits that hold what the question names: a quoted phrase, or an identifier that few memories hold."""
    quoted = {" ".join(phrase) for phrase in phrases}
    named = [ids for name, ids in found.holders.items() if name in quoted or len(ids) <= SINGLED_OUT]
    return frozenset().union(*named)
