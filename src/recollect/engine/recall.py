"""recall: a question through the lanes, fused, fetched, diversified, cut, explained."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from recollect.engine.expect import explain_absence
from recollect.engine.lanes import LegSearch, run_lanes
from recollect.engine.query import Query
from recollect.errors import RecallFailed
from recollect.legs.question import Question
from recollect.ports import Store, VectorIndex
from recollect.ranking.diversity import mmr, near_copies
from recollect.ranking.fusion import fuse
from recollect.text.snippets import snippet
from recollect.types import Filter, Fused, Hit, LaneReport, Memory, Ranking, Recall

if TYPE_CHECKING:
    from recollect.types import Vector

SPARE = 5
"""Rows fetched beside the limit while filling an answer: some turn out forgotten or near-copies."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What became of the fused list: the answer's memories in order, and what was passed over on the way."""

    answer: list[tuple[Fused, Memory]]
    copies: frozenset[str] = frozenset()


class Recaller:
    """Runs any recipe over a store and its legs."""

    def __init__(self, store: Store, vectors: VectorIndex, legs: Mapping[str, LegSearch]) -> None:
        self._store = store
        self._vectors = vectors
        self._legs = legs

    async def recall(self, query: Query, question: Question) -> Recall:
        started = time.perf_counter()
        answered = await run_lanes(query.recipe, question, self._legs)
        reports = tuple(report for report, _ in answered)
        rankings = {report.lane: ranking for report, ranking in answered if ranking is not None}
        if not rankings and any(report.status != "skipped" for report in reports):
            return self._all_failed(query, reports, started)
        fused = good_enough(self._fuse(query, rankings), query.recipe.min_score)
        chosen = await self._choose(query, question, fused, rankings)
        hits = await self._hits(query, question, chosen.answer)
        expected = None
        if query.expect is not None:
            candidates = self._fuse(query, rankings)
            expected = await explain_absence(self._store, question, query, candidates, chosen.copies, hits)
        return Recall(
            hits=hits,
            degraded=any(report.status in ("late", "failed") for report in reports),
            lanes=reports,
            took=(time.perf_counter() - started) * 1000,
            query=query.text,
            recipe=query.recipe.name,
            expected=expected,
        )

    def _all_failed(self, query: Query, reports: tuple[LaneReport, ...], started: float) -> Recall:
        if query.recipe.all_failed == "raise":
            reasons = "; ".join(f"{r.lane}: {r.reason}" for r in reports if r.status != "skipped")
            raise RecallFailed(f"every lane of the recall failed ({reasons})", lanes=reports)
        took = (time.perf_counter() - started) * 1000
        return Recall((), True, reports, took, query.text, query.recipe.name)

    def _fuse(self, query: Query, rankings: Mapping[str, Ranking]) -> list[Fused]:
        lanes = [lane for lane in query.recipe.lanes if lane.name in rankings]
        return fuse(query.recipe.fusion, [(lane, rankings[lane.name]) for lane in lanes])

    async def _choose(
        self, query: Query, question: Question, fused: Sequence[Fused], rankings: Mapping[str, Ranking]
    ) -> Chosen:
        method = query.recipe.diversity.method
        if method == "mmr" and len(fused) > query.limit:
            pool = await self._rows(question, fused)
            order = await self._by_mmr(query, question, [f for f, _ in pool], rankings)
            return Chosen([pool[i] for i in order])
        rows: list[tuple[Fused, Memory]] = []
        kept: Sequence[int] = ()
        copies: Sequence[int] = ()
        for start in range(0, len(fused), query.limit + SPARE):
            rows += await self._rows(question, fused[start : start + query.limit + SPARE])
            kept = range(min(len(rows), query.limit))
            if method == "near_copies":
                kept, copies = near_copies([memory.text for _, memory in rows], count=query.limit)
            if len(kept) == query.limit:
                break
        answer = [*kept, *copies][: query.limit]  # where there are too few others, a near-copy is better than nothing
        return Chosen([rows[i] for i in answer], frozenset(rows[i][0].id for i in copies if i not in answer))

    async def _rows(self, question: Question, fused: Sequence[Fused]) -> list[tuple[Fused, Memory]]:
        """The memories behind fused ids; those forgotten, superseded or expired since the lanes looked drop out."""
        found = await self._store.get(question.space, [f.id for f in fused])
        where = question.where
        return [(f, found[f.id]) for f in fused if f.id in found and still_visible(found[f.id], where)]

    async def _by_mmr(
        self, query: Query, question: Question, fused: Sequence[Fused], rankings: Mapping[str, Ranking]
    ) -> list[int]:
        """Relevance is the cosine with the question, or the fused score where no vector lane answered."""
        by_meaning = any(lane.leg == "vector" and lane.name in rankings for lane in query.recipe.lanes)
        vectors = await self._vectors.vectors(question.space, [f.id for f in fused]) if by_meaning else {}
        wanted = await question.vector() if by_meaning else None

        def cosine(one: Vector | None, other: Vector | None) -> float:
            return float(one @ other) if one is not None and other is not None else 0.0

        own = [vectors.get(f.id) for f in fused]
        relevance = [f.score if wanted is None else cosine(wanted, v) for f, v in zip(fused, own, strict=True)]
        return mmr(
            relevance,
            lambda a, b: cosine(own[a], own[b]),
            balance=query.recipe.diversity.balance,
            count=query.limit,
        )

    async def _hits(self, query: Query, question: Question, answer: Sequence[tuple[Fused, Memory]]) -> tuple[Hit, ...]:
        terms = frozenset(term.term for term in question.words.terms)
        language = question.words.language
        hits = [Hit(memory, f.score, f.why, partial(snippet, memory.text, terms, language)) for f, memory in answer]
        if not query.window or not hits:
            return tuple(hits)
        beside = await self._store.beside(question.space, [hit.memory.id for hit in hits], query.window)
        wanted = [id for b in beside.values() for id in (*b.before, *b.after)]
        seen = await self._store.visible(question.space, wanted, company(question.where))
        rows = await self._store.get(question.space, list(seen))
        return tuple(_with_window(hit, beside.get(hit.memory.id), rows) for hit in hits)


def _with_window(hit: Hit, beside: tuple[tuple[str, ...], tuple[str, ...]] | None, rows: Mapping[str, Memory]) -> Hit:
    if beside is None:
        return hit
    before, after = beside
    return replace(
        hit,
        before=tuple(rows[id] for id in reversed(before) if id in rows),
        after=tuple(rows[id] for id in after if id in rows),
    )


def company(where: Filter) -> Filter:
    """What of a filter holds for the neighbours that come with a hit: where one may look, and what still holds."""
    return Filter(
        namespaces=where.namespaces,
        include_superseded=where.include_superseded,
        include_expired=where.include_expired,
        now=where.now,
    )


def good_enough(fused: Sequence[Fused], least: float | None) -> Sequence[Fused]:
    """Those with at least the least score wanted."""
    return fused if least is None else [f for f in fused if f.score >= least]


def still_visible(memory: Memory, where: Filter) -> bool:
    """Whether a memory is neither superseded nor expired, unless such ones were asked for."""
    now = where.now or datetime.now(UTC)
    if memory.superseded_by is not None and not where.include_superseded:
        return False
    return where.include_expired or memory.expires_at is None or memory.expires_at > now
