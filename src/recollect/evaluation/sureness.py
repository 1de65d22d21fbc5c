"""Whether `confidence` can be relied on: on a judged set as it is, with its answers taken away, and off topic."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from recollect.evaluation.arrangement import document_of
from recollect.evaluation.calibration import Bin, Judged, auroc, calibration_error, reliability
from recollect.evaluation.metrics import Grades
from recollect.recipes import Recipe
from recollect.space import AsyncSpace

T = TypeVar("T")

SHOWN = 10
"""Hits of an answer whose confidence is judged."""
SAMPLE = 100
"""Questions that are also asked with their answers taken away, and off-topic questions that are asked, at most."""
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class Asked(NamedTuple):
    """A judged question, where it is asked."""

    space: AsyncSpace
    text: str
    grades: Grades


@dataclass(frozen=True, slots=True)
class Sureness:
    """How sure answers were, and whether they were right.

    `best` and `hits` are the best hit and the first ten of each question. `present`, `removed` and `off_topic` are the
    confidences of best hits: of questions as they are, of some of them with every answer taken away, and of questions
    that belong to another set.
    """

    best: Sequence[Judged]
    hits: Sequence[Judged]
    present: Sequence[float]
    removed: Sequence[float]
    off_topic: Sequence[float]

    @property
    def diagram(self) -> list[Bin]:
        return reliability(self.best)

    def to_json(self) -> dict[str, Any]:
        return {
            "calibration_error": round(calibration_error(self.best), 6),
            "calibration_error_of_10": round(calibration_error(self.hits), 6),
            "auroc_removed": auroc(self.present, self.removed),
            "auroc_off_topic": auroc(self.present, self.off_topic),
            "reliability": [one._asdict() for one in self.diagram],
        }


async def examine(questions: Sequence[Asked], recipe: Recipe, off_topic: Sequence[str]) -> Sureness:
    """Ask by one recipe. Answers are taken away by letting them expire for the time of the question."""
    best: list[Judged] = []
    hits: list[Judged] = []
    for question in questions:
        found = await _judged(question, recipe)
        hits += found
        best += found[:1]
    ids = {space.name: await _ids(space) for space in {one.space.name: one.space for one in questions}.values()}
    removed = [await _without_answers(one, recipe, ids[one.space.name]) for one in _some(questions)]
    spaces = [one.space for one in questions]
    off = [await _surest(spaces[number % len(spaces)], text, recipe) for number, text in enumerate(_some(off_topic))]
    return Sureness(best, hits, [one.confidence for one in best], removed, off)


async def _judged(question: Asked, recipe: Recipe) -> list[Judged]:
    answer = await question.space.recall(question.text, recipe=recipe, limit=SHOWN)
    return [Judged(hit.confidence, question.grades.get(document_of(hit.memory), 0) > 0) for hit in answer]


async def _surest(space: AsyncSpace, text: str, recipe: Recipe) -> float:
    """The confidence of the best hit; 0 where nothing was found."""
    answer = await space.recall(text, recipe=recipe, limit=SHOWN)
    return answer[0].confidence if answer.hits else 0.0


async def _without_answers(question: Asked, recipe: Recipe, ids: Mapping[str, str]) -> float:
    right = [ids[document] for document, grade in question.grades.items() if grade > 0 and document in ids]
    for id in right:
        await question.space.update(id, expires_at=LONG_AGO)
    try:
        return await _surest(question.space, question.text, recipe)
    finally:
        for id in right:
            await question.space.update(id, expires_at=None)


async def _ids(space: AsyncSpace) -> dict[str, str]:
    """The memory that stands for each document of a space."""
    return {document: id async for document, id in _documents(space)}


async def _documents(space: AsyncSpace) -> AsyncIterator[tuple[str, str]]:
    after: str | None = None
    while True:
        page = await space.list(limit=1000, after=after)
        for memory in page.memories:
            yield document_of(memory), memory.id
        if (after := page.cursor) is None:
            return


def _some(things: Sequence[T]) -> Sequence[T]:
    """As many as are asked, spread over all."""
    return things[:: -(-len(things) // SAMPLE)] if things else things
