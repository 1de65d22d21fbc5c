"""recall: the way from a question to the counted answer.

query      parsed and bounded (query.py); it waits for its turn (calls/admission.py)
known      the dimensions of a vector, and what others share with the space (sharing.py)
question   what the lanes ask together: its vector, its words (legs/question.py)
lanes      side by side, each on its own deadline (lanes.py), each in every space it may see (visibility.py)
ahead      if some are slow: the answer of the others, so that it is there in time (ahead.py)
found      fused, weighed by quality, reranked (rerank.py), read, freed of near-copies, cut (finding.py), given
           neighbours (windows.py); how sure each hit is (confidence.py) is worked out when somebody looks
expected   where a memory was lost that the caller expected (expect.py)
Recall     the hits, and for each lane how it fared; no answer at all: RecallFailed, or what the recipe says
counted    once: by leg and by memory (usage.py), then told to whoever listens
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from recollect.calls.admission import Admission
from recollect.calls.deadline import within
from recollect.calls.gate import Gate, in_words
from recollect.calls.shared import SharedWork
from recollect.embedders.cache import QueryCache
from recollect.engine.ahead import ReadAhead
from recollect.engine.embedding import Embedding
from recollect.engine.engines import Engines
from recollect.engine.finding import Found, find
from recollect.engine.lanes import longest_deadline, rankings_of, run_lanes
from recollect.engine.query import Query
from recollect.engine.sharing import Looking, Sharing
from recollect.engine.usage import HitCounter
from recollect.errors import BackendUnavailable, RecallFailed
from recollect.legs.question import Question
from recollect.limits import check_vector
from recollect.types import LaneReport, Recall

if TYPE_CHECKING:
    from recollect.types import Vector

RecallListener: TypeAlias = Callable[[str, str, Recall | RecallFailed], None]
"""Is told, after each recall, its space, the name of its recipe, and the answer or why there was none."""


class Recaller:
    """Answers questions by any recipe. `rows` is the gate of what is read from the store before the lanes start."""

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
        self._admission = Admission()

    async def recall(self, space: str, query: Query, given: Sequence[float] | Vector | None = None) -> Recall:
        """The answer to a question of a space; `given` is the question's vector where the caller has it already."""
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
        try:
            dimensions, shared = await within(longest_deadline(query.recipe), self._known_first(space, query))
        except BackendUnavailable as error:
            why = f"what a recall must know first could not be read from {self._engines.store}: {in_words(error)}"
            reports = [LaneReport(lane.name, lane.leg, "skipped", why) for lane in query.recipe.lanes]
            return _because(error, RecallFailed(why, lanes=reports))
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
            at_home=query.at_home,
            given=None if given is None else check_vector(given, dimensions),
            generation=generation,
            started=started,
            together=SharedWork(self._engines.outside),
        )
        return await answer(self._engines, query, question)

    async def _known_first(self, space: str, query: Query) -> tuple[int | None, Looking]:
        """What the store's vectors are like, and how the recall learns what it may see of others'."""
        asked = self._embedding.dimensions
        dimensions = await (asked() if self._embedding.is_known else self._rows.call(asked, space))
        return dimensions, await self._sharing.looking(space, query.shared)


async def answer(engines: Engines, query: Query, question: Question) -> Recall | RecallFailed:
    """What the lanes of a recipe find, as an answer; or why there is none."""
    ahead: ReadAhead | None = None
    if not engines.in_process or any(lane.deadline is not None for lane in query.recipe.lanes):  # some may be late
        ahead = ReadAhead(partial(find, engines, query, question), longest_deadline(query.recipe), question)
    try:
        answered = await run_lanes(query.recipe, question, engines.leg, ahead.begin if ahead else None)
        reports, rankings = [report for report, _ in answered], rankings_of(answered)
        if not rankings:
            reasons = "; ".join(f"{r.lane}: {r.reason}" for r in reports if r.missing)
            return RecallFailed(f"every lane of the recall failed ({reasons})", lanes=reports)
        try:
            found = await (ahead.of(rankings) if ahead else find(engines, query, question, rankings))
        except BackendUnavailable as error:
            why = f"what the lanes found could not be read from {engines.store}: {in_words(error)}"
            return _because(error, RecallFailed(why, lanes=reports))
    finally:
        if ahead:
            ahead.close()
    reports = [*(_as_read(report, found) for report in reports), *found.stages]
    return Recall(
        hits=found.hits,
        degraded=bool(found.lost) or any(report.missing for report in reports),
        lanes=tuple(reports),
        took=1000 * (time.monotonic() - question.started),
        query=query.text,
        recipe=query.recipe.name,
        expected=found.expected,
        truncated=found.truncated,
        nearest_miss=found.miss,
    )


def _because(cause: Exception, failed: RecallFailed) -> RecallFailed:
    failed.__cause__ = cause
    return failed


def _as_read(report: LaneReport, found: Found) -> LaneReport:
    """The report of a lane, with what became of it while its hits were read: too late, or not diversified."""
    if report.status != "ok":
        return report
    if report.lane not in found.lanes:
        return replace(report, status="late", reason="what it found could not be read in time")
    return replace(report, reason=found.lost) if found.lost and report.leg == "vector" else report
