"""Puts the documents of a judged set into spaces and threads, and maps documents to memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.evaluation.datasets import Dataset
from recollect.evaluation.metrics import Grades
from recollect.types import Draft, Memory

_DOCUMENT = "document"  # the key in a memory's metadata that says which document it is


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A set as drafts by space.

    `stands_for` maps each document to the one that is stored: itself, or the first exact copy of it in its space.
    """

    drafts: Mapping[str, Sequence[Draft]]
    stands_for: Mapping[str, str]

    @property
    def copies(self) -> int:
        return sum(document != first for document, first in self.stands_for.items())

    def grades(self, judged: Mapping[str, float]) -> Grades:
        """The grades of memories: the best grade of all documents that a memory stands for.

        A document that is not in the corpus keeps its grade, and cannot be found.
        """
        best: dict[str, float] = {}
        for document, grade in judged.items():
            first = self.stands_for.get(document, document)
            best[first] = max(best.get(first, grade), grade)
        return best


def arrange(dataset: Dataset) -> Arrangement:
    """Each conversation is a space with one thread, in file order. All other documents share a space."""
    drafts: dict[str, list[Draft]] = {}
    firsts: dict[tuple[str, str], str] = {}
    stands_for: dict[str, str] = {}
    places: dict[str, int] = {}
    for document in dataset.documents:
        space = space_name(dataset, document.conversation)
        place = places[space] = places.get(space, -1) + 1
        first = stands_for[document.id] = firsts.setdefault((space, document.text), document.id)
        if first != document.id:
            continue
        in_thread = document.conversation is not None
        drafts.setdefault(space, []).append(
            Draft(
                text=document.text,
                title=document.title,
                thread=document.conversation,
                place=place if in_thread else None,
                metadata={_DOCUMENT: document.id},
            )
        )
    return Arrangement(drafts, stands_for)


def space_name(dataset: Dataset, conversation: str | None) -> str:
    return dataset.name if conversation is None else f"{dataset.name}/{conversation}"


def document_of(memory: Memory) -> str:
    return str(memory.metadata[_DOCUMENT])
