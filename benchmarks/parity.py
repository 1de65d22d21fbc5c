"""Do SQLite and Postgres give the same answers? Both remember the same documents and are asked the same questions.

    python benchmarks/parity.py
    python benchmarks/parity.py --set locomo --show 5

For each judged set: how many questions have the same ten best memories in both stores by `balanced`, in the same order
and in any, and how good the answers are. Of the questions that differ, each lane is asked alone: that says which of
them differs. Nothing is asserted: the goals are printed beside.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.table import Table

from recollect import RECIPES, AsyncRecollect, Draft, Hit
from recollect.embedders import make_embedder
from recollect.embedders.disk import DiskCachedEmbedder
from recollect.evaluation.arrangement import Arrangement, arrange, space_name
from recollect.evaluation.datasets import Dataset, load
from recollect.evaluation.metrics import Grades, is_judged, ndcg
from recollect.ports import Embedder
from recollect.settings import cache_folder

if TYPE_CHECKING:
    from recollect.types import Vector

SETS = Path(__file__).parents[2] / "shared" / "data"
TOP = 10
LANES = tuple(lane.name for lane in RECIPES["balanced"].lanes)


class Question(NamedTuple):
    space: str
    text: str
    vector: Vector
    grades: Grades


@dataclass(frozen=True, slots=True)
class Material:
    """What is remembered and asked."""

    name: str
    drafts: Mapping[str, Sequence[Draft]]
    questions: Sequence[Question]


Answer = tuple[tuple[str, float], ...]
"""The ten best memories with their scores."""
Both = tuple[Answer, Answer]
"""By SQLite and by Postgres."""


class Asked(NamedTuple):
    """One question's answers, and, where these differ, those of each lane alone."""

    question: Question
    answers: Both
    lanes: Mapping[str, Both]


async def material_of(folder: Path, embedder: Embedder) -> Material:
    """A set whose memories have the same ids in every store: those of the documents."""
    dataset = load(folder)
    arrangement = arrange(dataset)
    drafts = {
        space: [replace(draft, id=str(draft.metadata["document"])) for draft in some]
        for space, some in arrangement.drafts.items()
    }
    return Material(dataset.name, drafts, await questions_of(dataset, arrangement, embedder))


async def questions_of(dataset: Dataset, arrangement: Arrangement, embedder: Embedder) -> list[Question]:
    texts = [question.text for question in dataset.queries]
    vectors = await embedder.embed(texts, space=dataset.name, role="query")
    return [
        Question(
            space_name(dataset, question.conversation),
            question.text,
            vector,
            arrangement.grades(dataset.qrels.get(question.id, {})),
        )
        for question, vector in zip(dataset.queries, vectors, strict=True)
    ]


async def remember(recollect: AsyncRecollect, material: Material) -> None:
    for space, drafts in material.drafts.items():
        await recollect.space(space).remember_many(drafts)
        await recollect.space(space).settle()


async def ask(recollect: AsyncRecollect, question: Question, lane: str | None = None) -> Answer:
    """By all lanes, or by one alone."""
    weights = {} if lane is None else {other: 0.0 for other in LANES if other != lane}
    recall = await recollect.space(question.space).recall(
        question.text, vector=question.vector, limit=TOP, weights=weights
    )
    if recall.degraded:
        sys.exit(f"{question.text!r} was answered without some lane: {recall.lanes}")
    return tuple((hit.memory.id, _score(hit, lane)) for hit in recall)


def _score(hit: Hit, lane: str | None) -> float:
    """The fused score, or a lane's own."""
    return hit.score if lane is None else hit.why[0].raw


def ids(answer: Answer) -> list[str]:
    return [id for id, _ in answer]


def differ(both: Both) -> bool:
    one, other = both
    return ids(one) != ids(other)


async def ask_both(stores: tuple[AsyncRecollect, AsyncRecollect], question: Question, lane: str | None = None) -> Both:
    return await ask(stores[0], question, lane), await ask(stores[1], question, lane)


async def compare(material: Material, stores: tuple[AsyncRecollect, AsyncRecollect]) -> list[Asked]:
    asked = []
    for question in material.questions:
        answers = await ask_both(stores, question)
        lanes = {lane: await ask_both(stores, question, lane) for lane in LANES} if differ(answers) else {}
        asked.append(Asked(question, answers, lanes))
    return asked


def add_row(table: Table, name: str, asked: Sequence[Asked]) -> None:
    differing = [one for one in asked if one.lanes]
    other_sets = sum({*ids(one.answers[0])} != {*ids(one.answers[1])} for one in differing)
    judged = [one for one in asked if is_judged(one.question.grades)]
    means = [fmean(ndcg(ids(one.answers[at]), one.question.grades, TOP) for one in judged) for at in (0, 1)]
    table.add_row(
        name,
        f"{len(asked):,}",
        f"{1 - len(differing) / len(asked):.1%}",
        f"{1 - other_sets / len(asked):.1%}",
        *(f"{mean:.4f}" for mean in means),
        f"{means[1] - means[0]:+.4f}",
        *(str(sum(differ(one.lanes[lane]) for one in differing)) for lane in LANES),
    )


def show_answers(console: Console, asked: Asked) -> None:
    """A question that differs: both answers side by side, and each lane's own where it differs."""
    console.print(f"[{asked.question.space}] {asked.question.text}", markup=False, style="bold")
    for what, both in {"all": asked.answers, **asked.lanes}.items():
        for rank, pair in enumerate(zip(*both, strict=False), start=1) if differ(both) else ():
            mark = " " if pair[0][0] == pair[1][0] else "*"
            shown = (f"{id[:24]:24} {score:<20.15g}" for id, score in pair)
            console.print(f"  {what:8} {rank:2} {mark} {'  '.join(shown)}", markup=False, highlight=False)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SETS, help="folder of judged sets")
    parser.add_argument("--set", action="append", metavar="NAME", help="only this one; repeatable")
    parser.add_argument("--postgres", metavar="URL", help="an empty store to use instead of an embedded Postgres")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="questions that differ to show of each set")
    options = parser.parse_args()
    folders = [path.parent for path in sorted(options.data.glob("*/corpus.jsonl"))]
    folders = [folder for folder in folders if not options.set or folder.name in options.set]
    if not folders:
        sys.exit(f"{options.data} holds no such judged sets: name a folder that does with --data")
    console = Console(width=150)
    columns = ("set", "questions", "same order", "same ten", "nDCG SQLite", "nDCG Postgres", "difference")
    table = Table(*columns, *(f"{lane} alone" for lane in LANES), title="top ten by balanced, SQLite and Postgres")
    embedder = DiskCachedEmbedder(make_embedder("local"), cache_folder() / "eval")
    with tempfile.TemporaryDirectory(prefix="recollect-parity-") as folder:
        for place in folders:
            material = await material_of(place, embedder)
            urls = (
                f"sqlite:///{folder}/{material.name}.db",
                options.postgres or f"embedded-postgres:///{folder}/postgres",
            )
            async with (
                AsyncRecollect(urls[0], embedder=embedder) as sqlite,
                AsyncRecollect(urls[1], embedder=embedder) as postgres,
            ):
                for store in (sqlite, postgres):
                    await remember(store, material)
                asked = await compare(material, (sqlite, postgres))
            add_row(table, material.name, asked)
            for one in [one for one in asked if one.lanes][: options.show]:
                show_answers(console, one)
    await embedder.close()
    console.print(table, "goals: same order >= 95 %, difference within 0.005")
    console.print("the last columns count the differing questions whose lane, asked alone, has another top ten")


if __name__ == "__main__":
    asyncio.run(main())
