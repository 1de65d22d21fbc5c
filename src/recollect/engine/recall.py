"""recall: the path of one call, from the question to the counted answer.

query      parsed and checked (query.py), then admitted (calls/deadline.py)
known      the store's vector dimensions, and what other spaces share with this one (sharing.py)
question   its vector and its words, which the lanes share (legs/question.py)
lanes      run concurrently, each with its own deadline, over every visible space (lanes.py)
ahead      if some are slow, the answer of the others is prepared (ahead.py)
found      fused, weighed by quality, reranked (rerank.py), read, near-copies left out, cut (finding.py), neighbours
           added (windows.py); the confidence of a hit (confidence.py) is computed when first read
expected   why an expected memory is missing (expect.py)
Recall     the hits and a report for each lane; without any answer RecallFailed, or what the recipe says
counted    once, by leg and by memory (usage.py); then the listeners are called
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, TypeAlias

from recollect.calls.deadline import Admission, within
from recollect.calls.gate import ROOM, Gate, in_words
from recollect.calls.shared import SharedWork
from recollect.embedders.cache import QueryCache
from recollect.engine.ahead import ReadAhead
from recollect.engine.embedding import Embedding
from recollect.engine.engines import Engines
from recollect.engine.finding import Found, find
from recollect.engine.lanes import longest_deadline, rankings_of, run_lanes
from recollect.engine.query import Query
from recollect.engine.sharing import FindVisible, Sharing
from recollect.engine.usage import HitCounter
from recollect.errors import BackendUnavailable, EmbeddingMismatch, RecallFailed
from recollect.legs.question import Question
from recollect.limits import check_vector
from recollect.types import LaneReport, Recall

if TYPE_CHECKING:
    from recollect.types import Vector

RecallListener: TypeAlias = Callable[[str, str, Recall | RecallFailed], None]
"""Called after each recall with its space, the name of its recipe, and the answer or the RecallFailed."""

_DEADLINE, _INCOMPLETE, _REPORT = attrgetter("deadline"), attrgetter("incomplete"), itemgetter(0)


class Recaller:
    """Answers questions with any recipe. `rows` is the gate for what is read from the store before the lanes start."""

    def __init__(
        self,
        engines: Engines,
        embedding: Embedding,
        questions: QueryCache,
        sharing: Sharing,
        rows: Gate,
        hits: HitCounter,
    ) -> None:
        self._engines = engines
        self._embedding = embedding
        self._questions = questions
        self._sharing = sharing
        self._rows = rows
        self.hits = hits
        self.listeners: list[RecallListener] = []
        self._admission = Admission(ROOM)

    async def recall(self, space: str, query: Query, given: Sequence[float] | Vector | None = None) -> Recall:
        """The answer to a question of a space. `given` is the question's vector, if the caller already has it."""
        async with self._admission:
            started = time.monotonic()
            outcome = await self._answer(space, query, given, started)
        self.hits.count(space, query.recipe, outcome)
        for listener in self.listeners:
            listener(space, query.recipe.name, outcome)
        if isinstance(outcome, Recall):
            return outcome
        if query.recipe.all_failed == "raise":
            raise outcome
        took = 1000 * (time.monotonic() - started)
        return Recall((), True, outcome.lanes, took, query.text, query.recipe.name)

    async def _answer(
        self, space: str, query: Query, given: Sequence[float] | Vector | None, started: float
    ) -> Recall | RecallFailed:
        granted = bool(query.shared)
        if query.shared is None:
            granted = self._sharing.no_grants_until.get(space, 0.0) <= started
        dimensions: int | None = None
        shared: FindVisible = None
        if granted or self._embedding.settled_until <= started:
            try:
                reading = self._known_first(space, query, granted)
                dimensions, shared = await within(longest_deadline(query.recipe), reading)
            except BackendUnavailable as error:
                why = f"vector dimensions and grants could not be read from {self._engines.store}: {in_words(error)}"
                reports = [LaneReport(lane.name, lane.leg, "skipped", why) for lane in query.recipe.lanes]
                return _because(error, RecallFailed(why, lanes=reports))
            self._embedding.look_now_and_then()
        # No wait from here on: the question's vector and what it is compared with are of one generation.
        generation, embedder = self._embedding.generation, self._questions.embedder
        if generation is not None:
            dimensions = generation.dimensions
        question = Question(
            space,
            query.text,
            query.where,
            query.fanout,
            partial(self._questions.embed_query, query.text, space=space, embedder=embedder),
            self._engines.vectors,
            self._engines.words,
            shared=shared,
            own_space=query.own_space,
            given=None if given is None else check_vector(given, dimensions),
            generation=generation,
            started=started,
            together=SharedWork(self._engines.outside),
        )
        outcome = await answer(self._engines, query, question)
        if self._embedding.settled_until > started:
            return outcome
        return _by_old_vectors(outcome, self._embedding.outdated)

    async def _known_first(self, space: str, query: Query, granted: bool) -> tuple[int | None, FindVisible]:
        """The dimensions of the store's vectors, and how to read what other spaces share, if something is granted."""
        asked, known = self._embedding.dimensions, self._embedding.generation is not None
        dimensions = await (asked() if known else self._rows.call(asked, space))
        return dimensions, await self._sharing.visible_to(space, query.shared) if granted else None


async def answer(engines: Engines, query: Query, question: Question) -> Recall | RecallFailed:
    """The answer that the lanes of a recipe find, or why there is none."""
    ahead: ReadAhead | None = None
    if not engines.in_process or {*map(_DEADLINE, query.recipe.lanes)} != {None}:  # some lanes may be late
        ahead = ReadAhead(partial(find, engines, query, question), longest_deadline(query.recipe), question)
    try:
        answered = await run_lanes(query.recipe, question, engines.leg, ahead.begin if ahead else None)
        reports, rankings = [*map(_REPORT, answered)], rankings_of(answered)
        if not rankings:
            reasons = "; ".join(f"{r.lane}: {r.reason}" for r in reports if r.missing)
            return RecallFailed(f"every lane of the recall failed ({reasons})", lanes=reports)
        try:
            found = await (ahead.of(rankings) if ahead else find(engines, query, question, rankings))
        except BackendUnavailable as error:
            why = f"the hits could not be read from {engines.store}: {in_words(error)}"
            return _because(error, RecallFailed(why, lanes=reports))
    finally:
        if ahead:
            ahead.close()
    if found.lost or found.lanes != rankings.keys():
        reports = [_as_read(report, found) for report in reports]
    reports += found.stages
    return Recall(
        hits=found.hits,
        degraded=any(map(_INCOMPLETE, reports)),
        lanes=tuple(reports),
        took=1000 * (time.monotonic() - question.started),
        query=query.text,
        recipe=query.recipe.name,
        expected=found.expected,
        truncated=found.truncated,
        nearest_miss=found.miss,
    )


def _by_old_vectors(outcome: Recall | RecallFailed, why: EmbeddingMismatch | None) -> Recall | RecallFailed:
    """An answer whose vector lanes looked, or could not look, at what the store had before it changed its model."""
    if why is None or isinstance(outcome, RecallFailed):
        return outcome
    lanes = [replace(lane, reason=str(why)) if lane.leg == "vector" and lane.wanted else lane for lane in outcome.lanes]
    return replace(outcome, lanes=tuple(lanes), degraded=any(lane.incomplete for lane in lanes))


def _because(cause: Exception, failed: RecallFailed) -> RecallFailed:
    failed.__cause__ = cause
    return failed


def _as_read(report: LaneReport, found: Found) -> LaneReport:
    """The report of a lane after its hits were read: late if they could not be read, or not diversified."""
    if report.status != "ok":
        return report
    if report.lane not in found.lanes:
        return replace(report, status="late", reason="its hits could not be read in time")
    return replace(report, reason=found.lost) if found.lost and report.leg == "vector" else report
