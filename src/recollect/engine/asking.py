"""The way of a recall, from a parsed query to the counted answer.

its turn (calls/admission.py) -> what must be known first: the dimensions of a vector, what others share (sharing.py)
-> the lanes, fused, with their rows (recall.py) -> usage is counted, listeners are told
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from recollect.calls.admission import Admission
from recollect.calls.deadline import within
from recollect.calls.gate import Gate, in_words
from recollect.calls.shared import SharedWork
from recollect.embedders.cache import QueryCache
from recollect.engine.embedding import Embedding
from recollect.engine.engines import Engines
from recollect.engine.lanes import longest_deadline
from recollect.engine.query import Query
from recollect.engine.recall import Recaller
from recollect.engine.sharing import Looking, Sharing
from recollect.engine.usage import HitCounter
from recollect.errors import BackendUnavailable, RecallFailed
from recollect.legs.question import Question
from recollect.limits import check_vector
from recollect.recipes import Recipe
from recollect.types import LaneReport, Recall

if TYPE_CHECKING:
    from recollect.types import Vector

RecallListener: TypeAlias = Callable[[str, str, Recall | RecallFailed], None]
"""Called after each recall with its space, the name of its recipe, and the answer or the RecallFailed."""


class Asking:
    """Answers questions. `rows` is the gate of what is read from the store before the lanes start."""

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
        self._recaller = Recaller(engines)

    async def ask(self, space: str, query: Query, given: Sequence[float] | Vector | None) -> Recall:
        """The answer to a question of a space; `given` is the question's vector where the caller has it already."""
        async with self._admission:
            started = time.monotonic()
            try:
                dimensions, shared = await within(longest_deadline(query.recipe), self._known_first(space, query))
            except BackendUnavailable as error:
                return self._unanswered(space, query, error)
            vector: Vector | None = None if given is None else check_vector(given, dimensions)
            try:
                recall = await self._recaller.recall(query, self._question(space, query, shared, vector, started))
            except RecallFailed as failed:
                self._count_failed(space, query.recipe, failed)
                raise
        self.hits.count(space, query.recipe, recall)
        self._tell(space, query.recipe, recall)
        return recall

    async def _known_first(self, space: str, query: Query) -> tuple[int | None, Looking]:
        """What the store's vectors are like, and how the recall learns what it may see of others'."""
        asked = self._embedding.dimensions
        dimensions = await (asked() if self._embedding.is_known else self._rows.call(asked, space))
        return dimensions, await self._sharing.looking(space, query.shared)

    def _unanswered(self, space: str, query: Query, error: BackendUnavailable) -> Recall:
        """The empty answer of a recipe that allows it; raises RecallFailed for any other."""
        why = f"what a recall must know first could not be read from {self._engines.store}: {in_words(error)}"
        reports = tuple(LaneReport(lane.name, lane.leg, "skipped", why) for lane in query.recipe.lanes)
        failed = RecallFailed(why, lanes=reports)
        self._count_failed(space, query.recipe, failed)
        if query.recipe.all_failed == "empty":
            return Recall((), True, reports, 0.0, query.text, query.recipe.name)
        raise failed from error

    def _question(self, space: str, query: Query, shared: Looking, given: Vector | None, started: float) -> Question:
        async def embed() -> Vector:
            return await self._questions.embed_query(query.text, space=space)

        return Question(
            space,
            query.text,
            query.where,
            query.fanout,
            embed,
            self._engines.vectors,
            self._engines.words,
            shared=shared,
            at_home=query.at_home,
            given=given,
            started=started,
            together=SharedWork(self._engines.outside),
        )

    def _count_failed(self, space: str, recipe: Recipe, failed: RecallFailed) -> None:
        self.hits.count_failed(space, recipe, failed.lanes)
        self._tell(space, recipe, failed)

    def _tell(self, space: str, recipe: Recipe, outcome: Recall | RecallFailed) -> None:
        for listener in self.listeners:
            listener(space, recipe.name, outcome)
