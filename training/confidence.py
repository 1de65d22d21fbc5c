"""Fits the weights of `recollect.ranking.confidence`: `python training/confidence.py questions.jsonl.xz`.

Material: questions with the passages that answer them and others beside them (BoolQ, HotpotQA), and functions of the
standard library with the first sentence of their docstring as the question. No judged set holds any of it. Each corpus
is asked in three ways: as it is, with the answers left out of the ranking, and with the questions of the others.

The fit is a logistic regression whose weights may not be negative. Corpora weigh the same, whatever their size. Three
sets of weights are printed, by what is known of a hit: with a reranker, with surprisals, with neither. Paste them.

The weights in the package come from 200 questions of BoolQ, 120 of HotpotQA and 150 functions; for READ from 50, 40 and
60 of them. They were fitted on another draw than this file makes, so a run does not print the same ones: measure what
it prints with `recollect eval --confidence` before you paste it. Six of each show that it runs, no more.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import lzma
import random
import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recollect import AsyncRecollect, Draft, Recall
from recollect.engine.confidence import signals
from recollect.ranking.confidence import LEAD, SURPRISE, TYPICAL, Signals, lead_of

GONE, OFF_TOPIC = 0.3, 0.5
"""What a question counts whose answers were removed, and one of another corpus, beside one that is answered."""
FIRST = 3
"""Hits of each answer that are learnt from."""
ASKED_FOR = 20
ELSEWHERE = 30
"""Questions of other corpora that each is asked."""

NAMES = ("similarity", "coverage", "surprise", "lead", "odds")
FITS = (("READ", "careful", range(5)), ("FUSED", "balanced", range(4)), ("PLAIN", "balanced", range(2)))
"""The weights by their name, the recipe that tells what they weigh, and which signals those are."""
RECIPES = ("careful", "balanced")

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Corpus:
    name: str
    texts: list[str]
    questions: list[tuple[str, frozenset[str]]]
    """Each with the texts that answer it."""


class Example(NamedTuple):
    known: Signals
    right: bool
    weight: float


def passages(file: Path, source: str, count: int, extra: int, draw: random.Random) -> Corpus:
    """Some questions of a source, in a corpus of their own passages and of `extra` questions' besides."""
    with lzma.open(file, "rt") as lines:
        rows = [row for row in map(json.loads, lines) if row["source"] == source]
    chosen = draw.sample(rows, count + extra)
    texts = dict.fromkeys(text for row in chosen for text in (*row["gold"], *row["others"]))
    return Corpus(source, list(texts), [(row["question"], frozenset(row["gold"])) for row in chosen[:count]])


def functions(count: int, most: int, draw: random.Random) -> Corpus:
    """Functions without their docstring; the question is its first sentence as people type it."""
    pairs = dict(pair for file in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")) for pair in _pairs(file))
    chosen = draw.sample(sorted(pairs.items()), most)
    asked = [(said.rstrip(".").lower(), frozenset([code])) for said, code in chosen[:count]]
    return Corpus("functions", [code for _, code in chosen], asked)


def _pairs(file: Path) -> Iterator[tuple[str, str]]:
    if {"site-packages", "test", "tests", "idlelib"} & {*file.parts}:
        return
    try:
        source = file.read_text()
        nodes, lines = ast.walk(ast.parse(source)), source.splitlines()
    except (SyntaxError, UnicodeDecodeError, ValueError):
        return
    for node in nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or len(node.body) < 2:
            continue
        if not (said := ast.get_docstring(node)):
            continue
        quoted = node.body[0]
        code = "\n".join([*lines[node.lineno - 1 : quoted.lineno - 1], *lines[quoted.end_lineno : node.end_lineno]])
        first = " ".join(re.split(r"(?<=[.!?])\s|\n\n", said.strip())[0].split())
        if 80 < len(code) < 3_000 and 15 < len(first) < 150:
            yield first, code


async def examples(corpus: Corpus, off_topic: Sequence[str]) -> dict[str, list[Example]]:
    """By recipe: what is known of the first hits of each question, and whether they are right."""
    found: dict[str, list[Example]] = {recipe: [] for recipe in RECIPES}
    async with AsyncRecollect("sqlite:///:memory:") as client:
        space = client.space("training")
        await space.remember_many([Draft(text) for text in corpus.texts])
        await space.settle()
        for recipe, some in found.items():
            for question, gold in corpus.questions:
                answer = await space.recall(question, recipe=recipe, limit=ASKED_FOR)
                some += known(answer, gold, 1.0)
                some += known(answer, gold, GONE, without=gold)
            for question in off_topic:
                some += known(await space.recall(question, recipe=recipe, limit=ASKED_FOR), frozenset(), OFF_TOPIC)
    totals = {recipe: sum(one.weight for one in some) for recipe, some in found.items()}
    return {
        recipe: [one._replace(weight=one.weight / totals[recipe]) for one in some] for recipe, some in found.items()
    }


def known(
    answer: Recall, gold: frozenset[str], weight: float, without: frozenset[str] = frozenset()
) -> Iterator[Example]:
    """The first hits of an answer, or of what is left of it without some texts: their lead is another one then."""
    left = [hit for hit in answer if hit.memory.text not in without]
    scores = [hit.score for hit in left]
    for place, hit in enumerate(left[:FIRST]):
        recipe, question, embedder, fused, memory, *_ = hit.make_confidence.args  # type: ignore[attr-defined]
        told = signals(recipe, question, embedder, fused, memory, lead_of(scores, place))
        yield Example(told, memory.text in gold, weight)


def columns(known: Signals) -> list[float]:
    """The signals as the regression sees them: bounded as `confidence` bounds them."""
    similarity = TYPICAL * known.coverage if known.similarity is None else known.similarity
    return [
        min(max(similarity, 0.0), 1.0),
        known.coverage,
        min(max(known.surprise or 0.0, 0.0), SURPRISE),
        min(max(known.lead or 0.0, -LEAD), LEAD),
        known.odds or 0.0,
    ]


def fit(found: Sequence[Example], used: Sequence[int], steps: int = 4_000) -> tuple[Array, float]:
    """Weights, none below 0, and the bias, by projected gradient descent on standardised columns."""
    x = np.array([columns(one.known) for one in found])[:, list(used)]
    right = np.array([one.right for one in found], float)
    weight = np.array([one.weight for one in found])
    mean, deviation = x.mean(0), x.std(0) + 1e-9
    z, bias, learnt = (x - mean) / deviation, 0.0, np.zeros(len(used))
    for _ in range(steps):
        error = weight * (1 / (1 + np.exp(-(z @ learnt + bias))) - right) / weight.sum()
        learnt = np.maximum(learnt - 0.5 * (z.T @ error + 1e-3 * learnt), 0)
        bias -= 0.5 * float(error.sum())
    return learnt / deviation, float(bias - (learnt / deviation * mean).sum())


async def main(file: Path, questions: int) -> None:
    draw = random.Random(7)  # the same sample each time
    corpora = [
        passages(file, "boolq", questions, 4 * questions, draw),
        passages(file, "hotpotqa", questions, 0, draw),
        functions(questions, 8 * questions, draw),
    ]
    found: dict[str, list[Example]] = {recipe: [] for recipe in RECIPES}
    for corpus in corpora:
        others = [text for other in corpora if other is not corpus for text, _ in other.questions]
        for recipe, some in (await examples(corpus, draw.sample(others, min(ELSEWHERE, len(others))))).items():
            found[recipe] += some
    for name, recipe, used in FITS:
        weights, bias = fit(found[recipe], used)
        said = ", ".join(f"{NAMES[at]}={value:.3g}" for at, value in zip(used, weights, strict=True))
        print(f"{name} = Weights(bias={bias:.3g}, {said})  # {len(found[recipe]):,} hits")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--questions", type=int, default=150)
    given = parser.parse_args()
    asyncio.run(main(given.file, given.questions))
