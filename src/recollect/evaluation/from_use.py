"""Judged questions made of what was used: each question that led to a use, with the memories that were of use.

They are asked of a copy of the space, so that nothing of it is counted there and nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from recollect.client import AsyncRecollect
from recollect.errors import InvalidRequest, RecallFailed
from recollect.evaluation.calibration import Judged
from recollect.evaluation.metrics import DEPTH, Grades, ndcg
from recollect.evaluation.run import OnProgress, Progress
from recollect.recipes import Recipe
from recollect.settings import Settings
from recollect.space import AsyncSpace
from recollect.types import Use


class Trial(NamedTuple):
    """How a recipe answered: nDCG@10 of each question, and whether its best hit was right."""

    ndcg: list[float]
    best: list[Judged]


def judged(uses: Sequence[Use]) -> dict[str, Grades]:
    """Each question with the memories that it led to, all of them equally relevant. A question that is spelt in other
    cases or with other spaces is the same one.

    >>> from datetime import datetime
    >>> judged([Use("Who paid?", "a", datetime.min), Use("who  paid?", "b", datetime.min)])
    {'Who paid?': {'a': 1.0, 'b': 1.0}}
    """
    spelt: dict[str, str] = {}
    grades: dict[str, dict[str, float]] = {}
    for use in uses:
        question = spelt.setdefault(" ".join(use.question.casefold().split()), use.question)
        grades.setdefault(question, {})[use.id] = 1.0
    return dict(grades)


async def ask_again(
    space: str, recipes: Sequence[Recipe], *, store_url: str | None, embedder: str | None, on_progress: OnProgress
) -> list[Trial]:
    """Ask what led to a use once more, by each recipe. Raises InvalidRequest if no question was noted."""
    settings = Settings.load(url=store_url, embedder=embedder)
    async with AsyncRecollect(settings=settings, create=False) as recollect:
        questions = judged(await recollect.space(space).uses())
    if not questions:
        raise InvalidRequest(
            f"space {space!r} has no question that led to a use: note them with `recollect used ID --query QUESTION`"
        )
    with TemporaryDirectory(prefix="recollect-tune-") as folder:
        copy = f"sqlite:///{Path(folder) / 'copy.db'}"
        await AsyncRecollect.copy(settings.url, copy, spaces=[space])
        inside = replace(settings, url=copy, vectors=None, graph=None)
        async with AsyncRecollect(settings=inside) as recollect:
            trials = [Trial([], []) for _ in recipes]
            for number, (question, grades) in enumerate(questions.items(), start=1):
                for recipe, trial in zip(recipes, trials, strict=True):  # each question is embedded once
                    await _try(recollect.space(space), question, grades, recipe, trial)
                on_progress(Progress("asking", space, number, len(questions)))
            return trials


async def _try(space: AsyncSpace, question: str, grades: Grades, recipe: Recipe, trial: Trial) -> None:
    """A question on which every lane failed has an empty answer."""
    try:
        hits = (await space.recall(question, recipe=recipe, limit=DEPTH)).hits
    except RecallFailed:
        hits = ()
    trial.ndcg.append(ndcg([hit.memory.id for hit in hits], grades, 10))
    trial.best.append(Judged(hits[0].confidence, hits[0].memory.id in grades) if hits else Judged(0.0, False))
