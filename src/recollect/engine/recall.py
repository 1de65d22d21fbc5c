"""recall: a question through the lanes, fused, fetched, diversified, cut, explained."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from recollect.calls.deadline import Deadline, current_deadline, let_go, on_deadline, start, within
from recollect.calls.gate import in_words
from recollect.engine.engines import Engines
from recollect.engine.expect import explain_absence
from recollect.engine.lanes import Answered, longest_deadline, run_lanes
from recollect.engine.quality import quality_factor, weighed
from recollect.engine.query import Query
from recollect.engine.sizes import ROWS_AT_ONCE, by_distance, fitting, full, read_windows
from recollect.engine.visibility import EverySpace, by_space
from recollect.errors import BackendUnavailable, RecallFailed
from recollect.legs.question import Question
from recollect.limits import ANSWER_BYTES
from recollect.ports import Beside
from recollect.ranking.diversity import Sieve, mmr
from recollect.ranking.fusion import fuse, keep_exact
from recollect.ranking.normalise import by_max
from recollect.text.snippets import snippet
from recollect.types import Expectation, Filter, Fused, Hit, LaneReport, Memory, Ranking, Recall

if TYPE_CHECKING:
    from recollect.types import Vector

SPARE = 5
"""Rows fetched beside the limit while filling an answer: some turn out forgotten or near-copies."""


GRACE = 0.06
"""Seconds beyond the deadline for reading what the lanes found from a store outside this process, where the last lane
was just in time. That leaves something for an event loop that is late itself, before a recall has taken 0.1 s more than
it was given.
"""
ROWS_SHARE = 0.5
"""How much of the longest deadline that reading has at least, however often it is begun again."""
COMPARED_AT_ONCE = 10_000
"""Pairs of vectors that are compared before others get their turn: a few milliseconds."""
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
    """An answer's hits, the lanes they are from, what could not be had for them, and where the expected memory went."""

    hits: tuple[Hit, ...]
    lanes: Set[str]
    lost: str = ""
    expected: Expectation | None = None
    truncated: str = ""


class Finding:
    """The way from rankings to hits. When lanes are slow it is gone ahead for those that have answered so far: if the
    others turn out late the answer is there, and its caller is not kept waiting beyond the deadline.
    """

    def __init__(
        self,
        find: Callable[[Mapping[str, Ranking]], Coroutine[Any, Any, Found]],
        deadline: float,
        question: Question,
    ) -> None:
        self._find = find
        self._deadline = deadline
        self._question = question
        self._lanes: Set[str] = frozenset()
        self._task: asyncio.Task[Found] | None = None
        self._earlier: Found | None = None
        self._readings: list[Deadline] = []

    def begin(self, answered: Sequence[Answered]) -> None:
        """Go ahead with what has been answered so far."""
        rankings = rankings_of(answered)
        if rankings and rankings.keys() != self._lanes:
            deadline = self._anew()
            self._lanes = rankings.keys()
            self._task = start(deadline, self._find(rankings))

    async def of(self, rankings: Mapping[str, Ranking]) -> Found:
        """What all lanes found that have answered; where that cannot be read in time, what fewer of them found."""
        try:
            if self._task is not None and self._lanes == rankings.keys() and not failed(self._task):
                return await self._task
            with on_deadline(self._anew()):  # also after a failure: the store may have come back since
                return await self._find(rankings)
        except BackendUnavailable:
            if self._earlier is None:
                raise
            return self._earlier

    def _anew(self) -> Deadline:
        """Keep what was found so far, and be ready for another reading: for how long that may wait for a store."""
        if self._task is not None and self._task.done() and not failed(self._task):
            self._earlier = self._task.result()
        self.close()
        whole, read = self._deadline + GRACE, sum(one.spent for one in self._readings)
        if self._earlier is not None:
            seconds = whole - self._question.waited()
        else:
            seconds = max(whole - took(self._question) / 1000, ROWS_SHARE * self._deadline - read)
        self._readings.append(Deadline(seconds))
        return self._readings[-1]

    def close(self) -> None:
        if self._task is not None:
            let_go(self._task)


class Recaller:
    """Runs any recipe over a store and its legs."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._legs = {name: EverySpace(leg) for name, leg in engines.legs().items()}
        self._rows = engines.rows
        self._vectors = engines.vectors

    async def recall(self, query: Query, question: Question) -> Recall:
        finding = Finding(partial(self._find, query, question), longest_deadline(query.recipe), question)
        ahead = finding.begin if self._may_be_late(query) else None
        try:
            answered = await run_lanes(query.recipe, question, self._legs, ahead)
            return await self._answer(query, question, answered, finding)
        finally:
            finding.close()

    def _may_be_late(self, query: Query) -> bool:
        return not self._engines.in_process or any(lane.deadline is not None for lane in query.recipe.lanes)

    async def _answer(self, query: Query, question: Question, answered: Sequence[Answered], finding: Finding) -> Recall:
        reports = tuple(report for report, _ in answered)
        rankings = rankings_of(answered)
        if not rankings:
            reasons = "; ".join(f"{r.lane}: {r.reason}" for r in reports if r.missing)
            return nothing(query, question, reports, f"every lane of the recall failed ({reasons})")
        try:
            found = await finding.of(rankings)
        except BackendUnavailable as error:
            reason = f"what the lanes found could not be read from {self._engines.store}: {in_words(error)}"
            return nothing(query, question, reports, reason)
        reports = tuple(unread(report, found) for report in reports)
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
            return Found(hits, rankings.keys(), chosen.lost, truncated=truncated)
        expected = await explain_absence(self._rows, question, query, candidates, chosen.copies, hits)
        return Found(hits, rankings.keys(), chosen.lost, expected, truncated)

    def _fuse(self, query: Query, rankings: Mapping[str, Ranking]) -> list[Fused]:
        return fuse(query.recipe.fusion, [(lane, rankings.get(lane.name)) for lane in query.recipe.lanes])

    async def _weigh(
        self, query: Query, question: Question, fused: list[Fused], rankings: Mapping[str, Ranking]
    ) -> list[Fused]:
        """By quality, where the recipe says so; what holds what the question names keeps its place all the same."""
        if not query.recipe.quality_weight:
            return fused
        qualities: dict[str, float | None] = {}
        for place in range(0, len(fused), ROWS_AT_ONCE):
            some = [f.id for f in fused[place : place + ROWS_AT_ONCE]]
            rows = await by_space(question.space, some, self._rows.get)
            qualities |= {id: memory.quality for id, memory in rows.items()}
        ordered = weighed(fused, qualities, query.recipe.quality_weight)
        for ranking in rankings.values() if query.recipe.fusion.method == "calibrated" else ():
            ordered = keep_exact(ordered, ranking)
        return ordered

    async def _choose(
        self, query: Query, question: Question, fused: Sequence[Fused], rankings: Mapping[str, Ranking]
    ) -> Chosen:
        method = query.recipe.diversity.method
        if method == "mmr":
            pool = [f async for some in self._some_visible(question, fused, ROWS_AT_ONCE) for f, _ in some]
            order, lost = await self._by_mmr(query, question, pool, rankings)
            return Chosen(await self._visible(question, [pool[i] for i in order]), lost=lost)
        sieve = Sieve()
        kept: list[tuple[Fused, Memory]] = []
        spare: list[tuple[Fused, Memory]] = []  # where there are too few others, a near-copy is better than nothing
        copies: list[str] = []
        async for some in self._some_visible(question, fused, query.limit + SPARE):
            for row in some:
                if len(kept) == query.limit:
                    break
                if method != "near_copies" or sieve.lets_through(row[1].text):
                    kept.append(row)
                else:
                    copies.append(row[0].id)
                    spare += [row] if len(spare) < query.limit else []
            if len(kept) == query.limit:
                break
        answer = [*kept, *spare][: query.limit]
        return Chosen(answer, frozenset(copies).difference(f.id for f, _ in answer))

    async def _some_visible(
        self, question: Question, fused: Sequence[Fused], count: int
    ) -> AsyncIterator[list[tuple[Fused, Memory]]]:
        """So many at a time: each may be large, and most of them are not for the answer."""
        for place in range(0, len(fused), count):
            yield await self._visible(question, fused[place : place + count])

    async def _visible(self, question: Question, fused: Sequence[Fused]) -> list[tuple[Fused, Memory]]:
        """The memories behind fused ids; those forgotten, superseded or expired since the lanes looked drop out."""
        found = await by_space(question.space, [f.id for f in fused], self._rows.get)
        return [(f, found[f.id]) for f in fused if f.id in found and still_visible(found[f.id], question)]

    async def _by_mmr(
        self, query: Query, question: Question, fused: Sequence[Fused], rankings: Mapping[str, Ranking]
    ) -> tuple[list[int], str]:
        """Similarity is that of the memories' vectors. Where no vector lane answered, or the vectors cannot be had (why
        not, in words), the order stays that of the fused scores.
        """
        lost = ""
        wanted: Vector | None = None
        how = query.recipe.diversity
        vectors: Mapping[str, Vector] = {}
        if any(lane.leg == "vector" and lane.name in rankings for lane in query.recipe.lanes):
            reading = by_space(question.space, [f.id for f in fused], self._vectors.vectors)
            try:
                vectors = await within(DIVERSITY_SHARE * current_deadline().left, reading)
                wanted = await question.vector() if how.relevance == "cosine" else None
            except BackendUnavailable as error:
                lost = f"not diversified, for its vectors could not be read: {in_words(error)}"

        def cosine(one: Vector | None, other: Vector | None) -> float | None:
            return float(one @ other) if one is not None and other is not None else None

        own = [vectors.get(f.id) for f in fused]
        relevance = by_max([f.score for f in fused])
        if wanted is not None:
            relevance = [
                share if v is None else float(wanted @ v) * quality_factor(f)
                for f, v, share in zip(fused, own, relevance, strict=True)
            ]
        pick = partial(mmr, relevance, lambda a, b: cosine(own[a], own[b]), balance=how.balance, count=query.limit)
        large = len(fused) * query.limit > COMPARED_AT_ONCE
        return await asyncio.to_thread(pick) if large else pick(), lost

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


def unread(report: LaneReport, found: Found) -> LaneReport:
    """The report, of a lane that answered too late for what it found to be read."""
    if report.status != "ok" or report.lane in found.lanes:
        return report
    return replace(report, status="late", reason="what it found could not be read in time")


def failed(task: asyncio.Task[Any]) -> bool:
    """Whether it ended without an answer."""
    return task.done() and (task.cancelled() or task.exception() is not None)


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
