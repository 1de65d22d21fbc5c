"""BM25 for one space, computed by Postgres over the rows that its GIN index finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from recollect.ports import WordHits, WordSearch
from recollect.stores import bm25
from recollect.stores.bm25 import Counted, Part
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.filters import is_unfiltered, rows_query, where_clause
from recollect.stores.postgres.lexemes import expression
from recollect.stores.postgres.rows import firsts, rows_of
from recollect.stores.postgres.word_counts import Counts, Frequencies, FrequenciesWithin
from recollect.types import Filter, Scored

__all__ = ["Counts", "search"]

PART_BUDGETS: Final = 3
"""At most this many budgets of rows are scored per part. Only questions of very common words alone have more."""

Q = load(__name__, "words.sql")


async def search(db: Database, space: int, search: WordSearch, where: Filter, limit: int, counts: Counts) -> WordHits:
    """The memories with the best BM25, ties by id."""
    frequencies = await _frequencies(db, space, search, counts)
    task = _Search(db, space, search, where, limit, frequencies)
    parts, more = await task.choose(bm25.BUDGET)
    if not parts:
        return WordHits([], bm25.background([], frequencies.size.memories))
    passing = await _passing(db, space, where)
    hits = await task.best(parts, bm25.BUDGET, passing)
    if more and bm25.is_too_little(hits, limit, filtered=not is_unfiltered(where)):
        parts, _ = await task.choose(bm25.WIDE_BUDGET)
        hits = await task.best(parts, bm25.WIDE_BUDGET, passing)
    background = bm25.background(parts, frequencies.size.memories)
    return WordHits(hits, background, await task.holders(hits) if hits else {})


@dataclass(frozen=True, slots=True)
class _Search:
    db: Database
    space: int
    search: WordSearch
    where: Filter
    limit: int
    frequencies: Frequencies

    async def choose(self, budget: int) -> tuple[list[Part], bool]:
        """The question's rarest parts within a budget, and whether others that this space holds were left out."""
        wanted = _terms(self.space, self.search) + [(phrase, 1.0) for phrase in await self._phrases()]
        rows = await self.frequencies.rows([each for each, _ in wanted], budget)
        size = self.frequencies.size.memories
        counted = (Counted(*part, min(count, size)) for part, count in zip(wanted, rows, strict=True))
        chosen, more = bm25.choose(counted, budget)
        return [bm25.weighed(await self._exact(one, budget), size) for one in chosen], more

    async def best(self, parts: Sequence[Part], budget: int, passing: list[int] | None) -> list[Scored]:
        """The best rows that pass the filter. If few pass, only they are scored."""
        values: dict[str, object]
        if passing is not None:
            statement = Q["best_among"].format(share=Q["share"])
            values = {"rows": passing}
        else:
            condition, values = where_clause(self.space, self.where)
            statement = Q["best_within" if self.search.within else "best"].format(share=Q["share"], where=condition)
            values |= {"part_rows": PART_BUDGETS * budget, "namespaces": [*self.search.within]}
        values |= {"space": self.space, "limit": self.limit, **self._formula(parts)}
        found = await rows_of(self.db, statement, **values)
        return [Scored(*hit) for hit in found]

    async def holders(self, hits: Sequence[Scored]) -> dict[str, frozenset[str]]:
        """Which hits hold, in their own words, each term that names one thing and each phrase."""
        names = _names(self.space, self.search)
        rows = await self.frequencies.rows([own for _, own in names], bm25.BUDGET)
        asked = {name: own for (name, own), count in zip(names, rows, strict=True) if count <= bm25.MOST_HOLDERS}
        for phrase in self.search.phrases:
            asked[" ".join(phrase)] = expression(self.space, phrase, context=False)
        if not asked:
            return {}
        ids = [hit.id for hit in hits]
        found = await rows_of(self.db, Q["holders"], space=self.space, ids=ids, queries=[*asked.values()])
        return {name: frozenset(id for id, holds in found if holds[at]) for at, name in enumerate(asked)}

    async def _phrases(self) -> list[str]:
        """The phrases whose rarest term is rare enough to look up."""
        looked_up = []
        for phrase in self.search.phrases:
            singles = [expression(self.space, [term], context=self.search.context) for term in phrase]
            if min(await self.frequencies.rows(singles, bm25.PHRASE_BUDGET)) <= bm25.PHRASE_BUDGET:
                looked_up.append(expression(self.space, phrase, context=self.search.context))
        return looked_up

    async def _exact(self, one: Counted, budget: int) -> Counted:
        """A part with its full count, also beyond the budget."""
        if one.rows <= budget:
            return one
        rows = await self.frequencies.all_rows(one.expression)
        return one._replace(rows=min(rows, self.frequencies.size.memories))

    def _formula(self, parts: Sequence[Part]) -> dict[str, object]:
        """The parameters of BM25: the parts, the value of an occurrence by its weight (D to A), and the length norm."""
        size = self.frequencies.size
        average = size.length / max(size.memories, 1)
        return {
            "queries": [part.expression for part in parts],
            "worths": [(bm25.K1 + 1) * part.worth for part in parts],
            "weights": [0.0, bm25.CONTEXT if self.search.context else 0.0, bm25.TEXT, bm25.TITLE],
            "base": bm25.K1 * (1 - bm25.B),
            "slope": bm25.K1 * bm25.B / (average or 1.0),
        }


async def _frequencies(db: Database, space: int, search: WordSearch, counts: Counts) -> Frequencies:
    if search.within:
        return await FrequenciesWithin.counted(db, space, search.within)
    asked = [part for part, _ in _terms(space, search)] + [own for _, own in _names(space, search)]
    return await Frequencies.read(db, space, counts, asked, bm25.BUDGET)


async def _passing(db: Database, space: int, where: Filter) -> list[int] | None:
    """The rows that pass a filter, or None if they are many."""
    if is_unfiltered(where):
        return None
    rows, values = rows_query(space, where)
    passing = await firsts(db, Q["passing"].format(rows=rows), **values, most=bm25.FEW + 1)
    return passing if len(passing) <= bm25.FEW else None


def _terms(space: int, search: WordSearch) -> list[tuple[str, float]]:
    """Each term of a question as a tsquery, and its weight."""
    return [(expression(space, [term.term], context=search.context), term.weight) for term in search.terms]


def _names(space: int, search: WordSearch) -> list[tuple[str, str]]:
    """Each term that names one thing, and the tsquery for memories that hold it in their own words."""
    return [(term.term, expression(space, [term.term], context=False)) for term in search.terms if term.names]
