"""recall: a question through the lanes, fused, fetched, diversified, cut, explained."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from recollect.engine.expect import explain_absence
from recollect.engine.guarded import GuardedRows
from recollect.engine.guards import Guards, in_words
from recollect.engine.lanes import Answered, LegSearch, longest_deadline, run_lanes
from recollect.engine.quality import quality_factor, weighed
from recollect.engine.query import Query
from recollect.engine.sizes import by_distance, fitting, full, read_windows
from recollect.engine.visibility import EverySpace, by_space
from recollect.errors import BackendUnavailable, RecallFailed
from recollect.legs.question import Question
from recollect.legs.waiting import let_go, start, time_left, within
from recollect.limits import ANSWER_BYTES
from recollect.ports import Beside, Store, VectorIndex
from recollect.ranking.diversity import mmr, near_copies
from recollect.ranking.fusion import fuse, keep_exact
from recollect.text.snippets import snippet
from recollect.types import Expectation, Filter, Fused, Hit, LaneReport, Memory, Ranking, Recall

if TYPE_CHECKING:
    from recollect.types import Vector

SPARE = 5
"""Rows fetched beside the limit while filling an answer: some turn out forgotten or near-copies."""


GRACE = 0.06
"""Seconds beyond the deadline for reading what the lanes found, where the last of them was just in time. That leaves
something for an event loop that is late itself, before a recall has taken 0.1 s more than it was given.
"""
AT_LEAST = 0.005
"""Seconds for that in any case: what was read ahead is there at once."""
DIVERSITY_SHARE = 0.5
"""How much of the time left the vectors that are compared for diversity may take; the answer can do without."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What became of the fused list: the answer's memories in order, what was passed over on the way, and what could
    not be had for it (in words).
    """

    answer: list[tuple[Fused, Memory]]
    copies: frozenset[str] = frozenset()
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """An answer's hits, what could not be had for them, and where the expected memory went."""

    hits: tuple[Hit, ...]
    lost: str = ""
    expected: Expectation | None = None
    truncated: str = ""


class Finding:
    """The way from rankings to hits. When lanes are slow it is gone ahead for those that have answered so far: if the
    others turn out late the answer is there, and its caller is not kept waiting beyond the deadline.
    """

    def __init__(self, find: Callable[[Mapping[str, Ranking]], Coroutine[Any, Any, Found]], deadline: float) -> None:
        self._find = find
        self._deadline = deadline
        self._lanes: Set[str] = frozenset()
        self._ahead: asyncio.Task[Found] | None = None

    def begin(self, answered: Sequence[Answered]) -> None:
        rankings = rankings_of(answered)
        if rankings.keys() != self._lanes:
            self.close()
            self._lanes = rankings.keys()
            self._ahead = start(self._deadline / 2, self._find(rankings))

    async def of(self, rankings: Mapping[str, Ranking]) -> Found:
        if self._ahead is not None and self._lanes == rankings.keys():
            with suppress(BackendUnavailable):  # it may have come back since
                return await self._ahead
        return await self._find(rankings)

    def close(self) -> None:
        if self._ahead is not None:
            let_go(self._ahead)


class Recaller:
    """Runs any recipe over a store and its legs."""

    def __init__(
        self, store: Store, vectors: VectorIndex, legs: Mapping[str, LegSearch], guards: Guards | None = None
    ) -> None:
        self._store = store
        self._vectors = vectors
        self._legs = {name: EverySpace(leg) for name, leg in legs.items()}
        self._guard = (guards or Guards()).of_rows(store.name)
        self._rows = GuardedRows(store, self._guard)

    async def recall(self, query: Query, question: Question) -> Recall:
        finding = Finding(partial(self._find, query, question), longest_deadline(query.recipe))
        try:
            answered = await run_lanes(query.recipe, question, self._legs, finding.begin)
            return await self._answer(query, question, answered, finding)
        finally:
            finding.close()

    async def _answer(self, query: Query, question: Question, answered: Sequence[Answered], finding: Finding) -> Recall:
        reports = tuple(report for report, _ in answered)
        rankings = rankings_of(answered)
        if not rankings:
            reasons = "; ".join(f"{r.lane}: {r.reason}" for r in reports if r.missing)
            return nothing(query, question, reports, f"every lane of the recall failed ({reasons})")
        try:
            found = await within(patience(query, question), finding.of(rankings))
        except (BackendUnavailable, TimeoutError) as error:
            reason = f"what the lanes found could not be read from {self._store.name}: {in_words(error)}"
            return nothing(query, question, reports, reason)
        return Recall(
            hits=found.hits,
            degraded=any(report.missing for report in reports) or bool(found.lost),
            lanes=noted(reports, found.lost),
            took=took(question),
            query=query.text,
            recipe=query.recipe.name,
            expected=found.expected,
            truncated=found.truncated,
        )

    async def _find(self, query: Query, question: Question, rankings: Mapping[str, Ranking]) -> Found:
        candidates = await self._weigh(query, question, self._fuse(query, rankings), rankings)
        fused = good_enough(candidates, query.recipe.min_score)
        chosen = await self._choose(query, question, fused, rankings)
        hits, truncated = await self._hits(query, question, chosen.answer)
        if query.expect is None:
            return Found(hits, chosen.lost, truncated=truncated)
        expected = await explain_absence(self._store, question, query, candidates, chosen.copies, hits)
        return Found(hits, chosen.lost, expected, truncated)

    def _fuse(self, query: Query, rankings: Mapping[str, Ranking]) -> list[Fused]:
        return fuse(query.recipe.fusion, [(lane, rankings.get(lane.name)) for lane in query.recipe.lanes])

    async def _weigh(
        self, query: Query, question: Question, fused: list[Fused], rankings: Mapping[str, Ranking]
    ) -> list[Fused]:
        """By quality, where the recipe says so; what holds what the question names keeps its place all the same."""
        if not query.recipe.quality_weight:
            return fused
        rows = await by_space(question.space, [f.id for f in fused], self._rows.get)
        qualities = {id: memory.quality for id, memory in rows.items()}
        ordered = weighed(fused, qualities, query.recipe.quality_weight)
        for ranking in rankings.values() if query.recipe.fusion.method == "calibrated" else ():
            ordered = keep_exact(ordered, ranking)
        return ordered

    async def _choose(
        self, query: Query, question: Question, fused: Sequence[Fused], rankings: Mapping[str, Ranking]
    ) -> Chosen:
        method = query.recipe.diversity.method
        if method == "mmr" and len(fused) > query.limit:
            pool = await self._visible(question, fused)
            order, lost = await self._by_mmr(query, question, [f for f, _ in pool], rankings)
            return Chosen([pool[i] for i in order], lost=lost)
        rows: list[tuple[Fused, Memory]] = []
        kept: Sequence[int] = ()
        copies: Sequence[int] = ()
        for place in range(0, len(fused), query.limit + SPARE):
            rows += await self._visible(question, fused[place : place + query.limit + SPARE])
            kept = range(min(len(rows), query.limit))
            if method == "near_copies":
                kept, copies = near_copies([memory.text for _, memory in rows], count=query.limit)
            if len(kept) == query.limit:
                break
        answer = [*kept, *copies][: query.limit]  # where there are too few others, a near-copy is better than nothing
        return Chosen([rows[i] for i in answer], frozenset(rows[i][0].id for i in copies if i not in answer))

    async def _visible(self, question: Question, fused: Sequence[Fused]) -> list[tuple[Fused, Memory]]:
        """The memories behind fused ids; those forgotten, superseded or expired since the lanes looked drop out."""
        found = await by_space(question.space, [f.id for f in fused], self._rows.get)
        return [(f, found[f.id]) for f in fused if f.id in found and still_visible(found[f.id], question)]

    async def _by_mmr(
        self, query: Query, question: Question, fused: Sequence[Fused], rankings: Mapping[str, Ranking]
    ) -> tuple[list[int], str]:
        """Relevance is the cosine with the question, or the fused score where no vector lane answered, or where the
        vectors cannot be had (why not, in words).
        """
        lost = ""
        wanted: Vector | None = None
        vectors: Mapping[str, Vector] = {}
        if any(lane.leg == "vector" and lane.name in rankings for lane in query.recipe.lanes):
            reading = by_space(question.space, [f.id for f in fused], self._vectors.vectors)
            try:
                vectors = await within(DIVERSITY_SHARE * time_left(), reading)
                wanted = await question.vector()
            except (BackendUnavailable, TimeoutError) as error:
                lost = f"not diversified, for its vectors could not be read: {in_words(error)}"

        def cosine(one: Vector | None, other: Vector | None) -> float:
            return float(one @ other) if one is not None and other is not None else 0.0

        own = [vectors.get(f.id) for f in fused]
        relevance = [
            f.score if wanted is None else cosine(wanted, v) * quality_factor(f)
            for f, v in zip(fused, own, strict=True)
        ]
        balance, count = query.recipe.diversity.balance, query.limit
        return mmr(relevance, lambda a, b: cosine(own[a], own[b]), balance=balance, count=count), lost

    async def _hits(
        self, query: Query, question: Question, answer: Sequence[tuple[Fused, Memory]]
    ) -> tuple[tuple[Hit, ...], str]:
        """As many hits as an answer can hold, the neighbours that fit beside them, and what was left out, in words."""
        terms = frozenset(term.term for term in question.words.terms)
        language = question.words.language
        hits = [Hit(memory, f.score, f.why, partial(snippet, memory.text, terms, language)) for f, memory in answer]
        count, room = fitting((hit.memory for hit in hits), ANSWER_BYTES)
        if count < len(hits):
            return tuple(hits[:count]), f"{full()}: the last {len(hits) - count} hits and all neighbours are left out"
        if not query.window or not hits:
            return tuple(hits), ""
        spaces = {hit.memory.space: [h for h in hits if h.memory.space == hit.memory.space] for hit in hits}
        windows: dict[tuple[str, str], Hit] = {}
        left: int | None = room
        for space, here in spaces.items():
            if left is not None:
                found, left = await self._with_windows(space, here, query.window, question, left)
                windows |= {(space, hit.memory.id): hit for hit in found}
        truncated = f"{full()}: the farthest neighbours are left out" if left is None else ""
        return tuple(windows.get((hit.memory.space, hit.memory.id), hit) for hit in hits), truncated

    async def _with_windows(
        self, space: str, hits: Sequence[Hit], reach: int, question: Question, room: int
    ) -> tuple[list[Hit], int | None]:
        """Hits of one space with those beside them that may be seen and fit; the room that is left, if all did."""
        ids = [hit.memory.id for hit in hits]
        beside = await self._rows.beside(space, ids, reach)
        wanted = [id for b in beside.values() for id in (*b.before, *b.after)]
        seen = await self._rows.visible(space, wanted, company(question.where_in(space)))
        pairs = [pair for pair in by_distance(beside, ids) if pair[1] in seen]
        rows, left = await read_windows(pairs, partial(self._rows.get, space), room)
        return [_with_window(hit, beside, rows) for hit in hits], left


def rankings_of(answered: Sequence[Answered]) -> dict[str, Ranking]:
    """What the lanes found that answered, by lane."""
    return {report.lane: ranking for report, ranking in answered if ranking is not None}


def noted(reports: tuple[LaneReport, ...], lost: str) -> tuple[LaneReport, ...]:
    """The reports, with what the vector lanes owed to the answer after they had searched."""
    return tuple(replace(r, reason=lost) if lost and r.leg == "vector" and r.status == "ok" else r for r in reports)


def patience(query: Query, question: Question) -> float:
    """Seconds for reading what the lanes found: what is left of the longest deadline, and then a little."""
    return max(longest_deadline(query.recipe) + GRACE - took(question) / 1000, AT_LEAST)


def nothing(query: Query, question: Question, reports: tuple[LaneReport, ...], why: str) -> Recall:
    """No answer: an error, or an empty answer where the recipe says so."""
    if query.recipe.all_failed == "raise":
        raise RecallFailed(why, lanes=reports)
    return Recall((), True, reports, took(question), query.text, query.recipe.name)


def took(question: Question) -> float:
    """Milliseconds since the question was asked."""
    return (time.monotonic() - question.started) * 1000


def _with_window(hit: Hit, beside: Mapping[str, Beside], rows: Mapping[tuple[str, str], Memory]) -> Hit:
    id = hit.memory.id
    if id not in beside:
        return hit
    before, after = beside[id]
    return replace(
        hit,
        before=tuple(rows[id, other] for other in reversed(before) if (id, other) in rows),
        after=tuple(rows[id, other] for other in after if (id, other) in rows),
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


def still_visible(memory: Memory, question: Question) -> bool:
    """Whether a memory is neither superseded nor expired, unless such ones were asked for, and where it may be seen."""
    where = question.where_in(memory.space)
    if memory.space != question.space and memory.namespace not in where.namespaces:
        return False
    now = where.now or datetime.now(UTC)
    if memory.superseded_by is not None and not where.include_superseded:
        return False
    return where.include_expired or memory.expires_at is None or memory.expires_at > now
