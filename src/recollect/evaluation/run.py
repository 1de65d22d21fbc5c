"""Asks every question of a judged set with each recipe, through the public client, and scores the answers."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from recollect.client import AsyncRecollect
from recollect.embedders import configured
from recollect.embedders.disk import DiskCachedEmbedder
from recollect.engine.query import with_own
from recollect.errors import EmbeddingError, InvalidRequest, RecallFailed
from recollect.evaluation.arrangement import Arrangement, arrange, document_of, space_name
from recollect.evaluation.calibration import Judged
from recollect.evaluation.datasets import Dataset, load
from recollect.evaluation.metrics import DEPTH, Grades, is_judged, means, scores
from recollect.evaluation.results import Latency, Result
from recollect.evaluation.sureness import Asked, examine
from recollect.ports import Embedder
from recollect.recipes import Recipe, recipe
from recollect.settings import Settings, cache_folder
from recollect.space import AsyncSpace

if TYPE_CHECKING:
    from recollect.types import Vector

EMBEDDING_SAMPLE = 50
"""How many questions are embedded without a cache, to measure the time."""


class Progress(NamedTuple):
    """`done` of `total` documents or questions; `what` is the recipe while asking, and the set before."""

    stage: Literal["remembering", "linking", "asking"]
    what: str
    done: int
    total: int


OnProgress: TypeAlias = Callable[[Progress], None]


class _Question(NamedTuple):
    """A question, and the grades of the memories that answer it."""

    space: str
    text: str
    grades: Grades


@dataclass(frozen=True, slots=True)
class _Exam:
    """Everything that is the same for each recipe. `embedding_ms` has a sample of the questions."""

    dataset: Dataset
    arrangement: Arrangement
    embedder: str
    questions: Sequence[_Question]
    unjudged: int
    vectors: Sequence[Vector]
    embedding_ms: Mapping[int, float]


class _Answer(NamedTuple):
    """What a recipe found for a question (documents, best first), how long it took, what its failed lanes say, and how
    sure the best hit is.
    """

    ranking: list[str]
    ms: float
    failures: list[str]
    confidence: float


async def evaluate(
    folder: Path | str,
    *,
    recipes: Sequence[str | Recipe] = ("balanced",),
    store_url: str | None = None,
    embedder: str | Embedder | None = None,
    questions: int | None = None,
    off_topic: Sequence[str] | None = None,
    on_progress: OnProgress = lambda _: None,
) -> list[Result]:
    """Remember the set in `folder`, ask its questions by each recipe, and say how good and how fast the answers were.

    Without a `store_url` the store is a temporary file; one that is given must not hold anything in the set's
    spaces yet, and keeps what is remembered. Recipes look at all kinds of memory, because a judged set has none.
    Embeddings are kept in the user's cache folder. `questions` asks only the first so many. With `off_topic`, questions
    that the set does not answer, or none of them, it is also measured whether `confidence` can be relied on.
    """
    known = with_own(Settings.load().recipe)
    chosen = [_of_every_kind(recipe(which, known)) for which in recipes]
    dataset = load(Path(folder))
    arrangement = arrange(dataset)
    judged, unjudged = _judged(dataset, arrangement, questions)
    plain = _embedder(embedder)
    cached = DiskCachedEmbedder(plain, cache_folder() / "eval")
    with _url(store_url) as url:
        async with AsyncRecollect(url, embedder=cached) as recollect:
            await _remember(recollect, dataset.name, arrangement, on_progress)
            vectors = await _vectors(cached, judged)
            times = await _embedding_times(plain, judged)
            exam = _Exam(dataset, arrangement, plain.name, judged, unjudged, vectors, times)
            results = []
            for one in chosen:
                answers = [answer async for answer in _answers(recollect, exam, one, on_progress)]
                asked = [Asked(recollect.space(q.space), q.text, q.grades) for q in judged]
                sureness = None if off_topic is None else await examine(asked, one, off_topic)
                results.append(replace(_result(exam, one.name, answers), sureness=sureness))
            return results


def questions_of(folder: Path) -> list[str]:
    """The questions of a set, as off-topic ones for another."""
    return [question.text for question in load(folder).queries]


def _of_every_kind(recipe: Recipe) -> Recipe:
    return recipe.with_(lanes={lane.name: {"kinds": ()} for lane in recipe.lanes})


def _embedder(which: str | Embedder | None) -> Embedder:
    if which is not None and not isinstance(which, str):
        return which
    settings = Settings.load(embedder=which)
    return configured(settings)


@contextmanager
def _url(given: str | None) -> Iterator[str]:
    """The caller's store, or a temporary one."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="recollect-eval-") as folder:
        yield f"sqlite:///{Path(folder) / 'evaluation.db'}"


async def _remember(recollect: AsyncRecollect, name: str, arrangement: Arrangement, on_progress: OnProgress) -> None:
    """Store every document, then wait for the links. Raises EmbeddingError if a document has no vector."""
    taken = sorted(set(await recollect.spaces()).intersection(arrangement.drafts))
    if taken:
        raise InvalidRequest(f"the store already has the space {taken[0]!r}, which must be empty: use another store")
    total = sum(map(len, arrangement.drafts.values()))
    done = 0

    def remembered(seen: int) -> None:
        on_progress(Progress("remembering", name, done + seen, total))

    for space, drafts in arrangement.drafts.items():
        await recollect.space(space).remember_many(drafts, on_progress=remembered)
        done += len(drafts)
    done = 0
    for space, drafts in arrangement.drafts.items():
        await recollect.space(space).settle()
        done += len(drafts)
        on_progress(Progress("linking", name, done, total))
        if pending := (await recollect.space(space).stats()).pending:
            raise EmbeddingError(f"{pending} of the {len(drafts)} documents in {space!r} could not be embedded")


def _judged(dataset: Dataset, arrangement: Arrangement, most: int | None) -> tuple[list[_Question], int]:
    """The questions with a relevant document, and how many have none."""
    asked = dataset.queries[:most]
    questions = []
    for question in asked:
        grades = arrangement.grades(dataset.qrels.get(question.id, {}))
        if is_judged(grades):
            questions.append(_Question(space_name(dataset, question.conversation), question.text, grades))
    if not questions:
        raise InvalidRequest(
            f"none of the {len(asked)} questions of {dataset.name!r} has a relevant document in qrels.tsv"
        )
    return questions, len(asked) - len(questions)


async def _vectors(embedder: Embedder, questions: Sequence[_Question]) -> list[Vector]:
    """Embedded per space, because an embedder may have a key for each."""
    vectors: dict[int, Vector] = {}
    for space in dict.fromkeys(question.space for question in questions):
        numbers = [number for number, question in enumerate(questions) if question.space == space]
        texts = [questions[number].text for number in numbers]
        vectors.update(zip(numbers, await embedder.embed(texts, space=space, role="query"), strict=True))
    return [vectors[number] for number in range(len(questions))]


async def _embedding_times(embedder: Embedder, questions: Sequence[_Question]) -> dict[int, float]:
    """Milliseconds to embed some of the questions, one at a time, spread over the set."""
    sample = range(0, len(questions), -(-len(questions) // EMBEDDING_SAMPLE))
    await embedder.embed(["warm up"], space=questions[0].space, role="query")  # loading is not embedding a question
    times = {}
    for number in sample:
        started = perf_counter()
        await embedder.embed([questions[number].text], space=questions[number].space, role="query")
        times[number] = (perf_counter() - started) * 1000
    return times


async def _answers(
    recollect: AsyncRecollect, exam: _Exam, recipe: Recipe, on_progress: OnProgress
) -> AsyncIterator[_Answer]:
    """Ask one question at a time, so that each is timed alone."""
    for number, (question, vector) in enumerate(zip(exam.questions, exam.vectors, strict=True), start=1):
        yield await _answer(recollect.space(question.space), question, vector, recipe)
        on_progress(Progress("asking", recipe.name, number, len(exam.questions)))


async def _answer(space: AsyncSpace, question: _Question, vector: Vector, recipe: Recipe) -> _Answer:
    """A question whose lanes all failed has an empty answer, and counts as degraded."""
    started = perf_counter()
    try:
        recall = await space.recall(question.text, recipe=recipe, limit=DEPTH, vector=vector)
        hits, lanes = recall.hits, recall.lanes
    except RecallFailed as error:
        hits, lanes = (), error.lanes
    ms = (perf_counter() - started) * 1000
    failures = [f"{lane.lane} {lane.status}: {lane.reason}" for lane in lanes if lane.missing]
    return _Answer([document_of(hit.memory) for hit in hits], ms, failures, hits[0].confidence if hits else 0.0)


def _result(exam: _Exam, recipe: str, answers: Sequence[_Answer]) -> Result:
    scored = [scores(answer.ranking, question.grades) for answer, question in zip(answers, exam.questions, strict=True)]
    return Result(
        dataset=exam.dataset.name,
        recipe=recipe,
        embedder=exam.embedder,
        documents=len(exam.dataset.documents),
        skipped=exam.dataset.skipped,
        copies=exam.arrangement.copies,
        questions=len(exam.questions),
        unjudged=exam.unjudged,
        metrics=means(scored),
        ndcg=tuple(score["ndcg@10"] for score in scored),
        latency=Latency(
            recall=tuple(answer.ms for answer in answers),
            with_embedding=tuple(answers[number].ms + ms for number, ms in exam.embedding_ms.items()),
        ),
        degraded=sum(bool(answer.failures) for answer in answers),
        failures=Counter(failure for answer in answers for failure in answer.failures),
        best=tuple(
            Judged(answer.confidence, question.grades.get(answer.ranking[0], 0) > 0 if answer.ranking else False)
            for answer, question in zip(answers, exam.questions, strict=True)
        ),
    )
