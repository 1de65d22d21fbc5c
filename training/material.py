"""What the student reads: pairs of a question and a text, cut and dressed as memories are.

Questions with passages come from `questions.jsonl.xz` (`source`, `question`, `gold`, `others`). Memories are short, so
a passage is mostly cut into one sentence or a few, and sometimes spoken by somebody. Functions with the first sentence
of their docstring come from packages under permissive licences: the teacher never saw code, so real pairs teach it.
"""

from __future__ import annotations

import ast
import json
import lzma
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Ids: TypeAlias = NDArray[np.int32]

SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
PERMISSIVE = ("MIT", "BSD", "Apache", "ISC", "PSF", "Python Software Foundation")
SPEAKERS = "Anna Ben Carla David Elena Frank Giulia Hannah Ivan Jonas Kate Luca Maria Nora Omar Rosa Sam User Assistant"
MOST_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and passages as lists of sentences: those that answer it, and those beside them."""

    question: Ids
    gold: Sequence[Sequence[Ids]]
    others: Sequence[Sequence[Ids]]


def read_questions(path: Path, tokenizer: Tokenizer) -> list[Asked]:
    with lzma.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    texts: dict[str, Ids] = {}
    wanted = {row["question"] for row in rows}
    wanted |= {s for row in rows for passage in (*row["gold"], *row["others"]) for s in SENTENCE.split(passage)}
    ordered = sorted(wanted)
    for place in range(0, len(ordered), 50_000):
        some = ordered[place : place + 50_000]
        encoded = tokenizer.encode_batch(some, add_special_tokens=False)
        texts |= {text: np.array(one.ids, np.int32) for text, one in zip(some, encoded, strict=True)}

    def cut(passage: str) -> list[Ids]:
        return [texts[sentence] for sentence in SENTENCE.split(passage)]

    return [
        Asked(texts[row["question"]], [cut(p) for p in row["gold"]], [cut(p) for p in row["others"]]) for row in rows
    ]


class Pairs:
    """Draws lists of texts for questions: those that answer, those beside them, and those of other questions."""

    def __init__(self, asked: Sequence[Asked], tokenizer: Tokenizer, seed: int) -> None:
        self._asked = asked
        self._random: Generator = np.random.default_rng(seed)
        self._speakers = [
            np.array(tokenizer.encode(f"{name}:", add_special_tokens=False).ids, np.int32) for name in SPEAKERS.split()
        ]

    def draw(self, count: int) -> Iterator[tuple[Ids, Ids]]:
        """Pairs of token ids, ten for each question."""
        for _ in range(count // 10):
            one = self._asked[self._random.integers(len(self._asked))]
            near = one.others or one.gold
            passages = [self._one(one.gold) for _ in range(3)] + [self._one(near) for _ in range(4)]
            for _ in range(3):
                stranger = self._asked[self._random.integers(len(self._asked))]
                passages.append(self._one(stranger.gold))
            yield from ((one.question, self._dressed(passage)) for passage in passages)

    def _one(self, passages: Sequence[Sequence[Ids]]) -> Sequence[Ids]:
        return passages[self._random.integers(len(passages))]

    def _dressed(self, sentences: Sequence[Ids]) -> Ids:
        """A sentence, two, a window, or all of it; as said by somebody, every third time."""
        size = (1, 1, 1, 2, 2, 3, 4, len(sentences), len(sentences))[self._random.integers(9)]
        start = self._random.integers(max(1, len(sentences) - size + 1))
        parts = list(sentences[start : start + size])
        if self._random.random() < 1 / 3:
            parts.insert(0, self._speakers[self._random.integers(len(self._speakers))])
        return np.concatenate(parts)[:MOST_TOKENS]


@dataclass(frozen=True, slots=True)
class Function:
    """What a function says it does, and its code without that; `home` is its package."""

    says: str
    code: str
    home: str


def read_functions(path: Path) -> list[Function]:
    with lzma.open(path, "rt") as lines:
        return [Function(**json.loads(line)) for line in lines]


def collect_functions(site_packages: Path, known: Iterable[str]) -> Iterator[Function]:
    """Documented functions of permissively licensed packages; none whose docstring is in a judged set (`known`)."""
    judged = {_plain(text) for text in known}
    for package in distributions(path=[str(site_packages)]):
        if not _is_permissive(package):
            continue
        for file in package.files or ():
            if file.suffix == ".py" and "test" not in str(file):
                yield from (
                    f for f in _functions(Path(str(file.locate())), package.name) if _plain(f.says) not in judged
                )


def _is_permissive(package: Distribution) -> bool:
    meta: Any = package.metadata
    said = [meta.get("License-Expression") or "", *(meta.get_all("Classifier") or []), (meta.get("License") or "")[:80]]
    licence = " ".join(line for line in said if not line.startswith("Programming") and not line.startswith("Topic"))
    return any(name in licence for name in PERMISSIVE) and "GPL" not in licence


def _functions(path: Path, home: str) -> Iterator[Function]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, OSError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        says = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ").split(". ")[0].strip(" .")
        if 3 <= len(says.split()) <= 30 and len(node.body) > 1:
            node.body = node.body[1:]
            yield Function(says, ast.unparse(node)[:2000], home)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))
