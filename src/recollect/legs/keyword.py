"""The keyword leg: which memories hold the question's words."""

from __future__ import annotations

from recollect.legs.question import Question
from recollect.ports import WordHits, WordIndex, WordSearch
from recollect.ranking.fusion import singled_out
from recollect.recipes import Lane
from recollect.text.query import QueryWords
from recollect.types import Ranking


class KeywordLeg:
    def __init__(self, index: WordIndex) -> None:
        self._index = index

    async def search(self, question: Question, lane: Lane) -> Ranking:
        analyzed = lane.match == "any"
        search = WordSearch(
            text=question.text,
            terms=question.terms if analyzed else (),
            phrases=question.words.phrases if analyzed else (),
            words=lane.words,
            match=lane.match,
            score=lane.score,
            title_boost=lane.title_boost,
            context=lane.context,
        )
        found = await self._index.search_words(question.space, search, question.filter_of(lane), limit=question.fanout)
        return Ranking(lane.name, tuple(found.hits), exact=exact_hits(question.words, found))


def exact_hits(words: QueryWords, found: WordHits) -> frozenset[str]:
    """The hits that hold what the question names: an identifier that few memories hold, or a quoted phrase."""
    identifiers = sum(1 << bit for bit, term in enumerate(words.terms) if term.exact)
    phrases = ((1 << len(words.phrases)) - 1) << len(words.terms)
    return singled_out(found.matched, identifiers, phrases) if found.matched else frozenset()
