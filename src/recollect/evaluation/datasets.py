"""Judged sets: documents, questions, and which documents answer which question.

A set is a folder with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`, the layout of the BEIR benchmark.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from recollect.errors import InvalidRequest
from recollect.limits import QUERY_BYTES, TEXT_BYTES, TITLE_CHARACTERS, check_characters

Qrels: TypeAlias = Mapping[str, Mapping[str, float]]
"""Question id -> document id -> grade; above 0 is relevant."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document. Those of one conversation share a space and a thread, in file order."""

    id: str
    text: str
    title: str = ""
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question, asked in the space of its conversation."""

    id: str
    text: str
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """One judged set. `skipped` counts the documents that had neither text nor title."""

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Question, ...]
    qrels: Qrels
    skipped: int = 0


def load(folder: Path) -> Dataset:
    """Read a set from its folder; raises InvalidRequest that names the file and line at fault."""
    found = [_document(row) for row in _rows(folder / "corpus.jsonl")]
    documents = tuple(document for document in found if document.text)
    queries = tuple(_question(row) for row in _rows(folder / "queries.jsonl"))
    if not documents:
        raise InvalidRequest(f"{folder / 'corpus.jsonl'} has no document with a text: add one")
    if not queries:
        raise InvalidRequest(f"{folder / 'queries.jsonl'} has no question: add one")
    return Dataset(folder.resolve().name, documents, queries, _qrels(folder / "qrels.tsv"), len(found) - len(documents))


class _Line(NamedTuple):
    """One line of a file."""

    file: Path
    number: int
    text: str

    def error(self, problem: str) -> InvalidRequest:
        return InvalidRequest(f"{self.file}, line {self.number}: {problem}")


class _Row(NamedTuple):
    """One parsed line of a JSON Lines file."""

    line: _Line
    id: str
    fields: Mapping[str, Any]

    def string(self, name: str, most_bytes: int = TEXT_BYTES) -> str:
        """The field, or "" if it is absent or blank. Raises InvalidRequest if a store could not hold it."""
        value = self.fields.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.line.error(f"`{name}` is {json.dumps(value)[:60]}, and must be a string")
        try:
            check_characters(f"`{name}`", value, most_bytes)
        except InvalidRequest as error:
            raise self.line.error(str(error)) from None
        return value if value.strip() else ""

    def conversation(self) -> str | None:
        meta = self.fields.get("meta") or {}
        if not isinstance(meta, dict):
            raise self.line.error(f"`meta` is {json.dumps(meta)[:60]}, and must be an object")
        name = meta.get("conversation")
        return None if name is None else str(name)


def _document(row: _Row) -> Document:
    """The title replaces a missing text. Without either, the text is empty."""
    title, text = row.string("title"), row.string("text")
    if text and len(title) > TITLE_CHARACTERS:
        raise row.line.error(f"`title` has {len(title):,} characters, more than the {TITLE_CHARACTERS:,} allowed")
    return Document(row.id, text or title, title if text else "", row.conversation())


def _question(row: _Row) -> Question:
    text = row.string("text", QUERY_BYTES)
    if not text:
        raise row.line.error(f"question {row.id!r} has no `text`")
    return Question(row.id, text, row.conversation())


def _rows(file: Path) -> Iterator[_Row]:
    """The objects of a JSON Lines file, each with a unique `_id`."""
    first_lines: dict[str, int] = {}
    for line in _lines(file):
        try:
            fields = json.loads(line.text)
        except ValueError as error:
            raise line.error(f"this is not JSON ({error})") from error
        if not isinstance(fields, dict) or not isinstance(fields.get("_id"), str | int):
            raise line.error("this is not an object with an `_id`")
        row = _Row(line, str(fields["_id"]), fields)
        if row.id in first_lines:
            raise line.error(f"the id {row.id!r} is already used on line {first_lines[row.id]}: use another")
        first_lines[row.id] = line.number
        yield row


def _qrels(file: Path) -> Qrels:
    """Question, document and grade, separated by tabs. The first line may be a header."""
    qrels: dict[str, dict[str, float]] = {}
    for line in _lines(file):
        columns = [column.strip() for column in line.text.split("\t")]
        if len(columns) != 3:
            raise line.error(f"it has {len(columns)} columns, not 3: question, document and grade, separated by tabs")
        question, document, written = columns
        grade = _number(written)
        if grade is not None:
            qrels.setdefault(question, {})[document] = grade
        elif line.number > 1:
            raise line.error(f"the grade {written!r} is not a number")
    return qrels


def _number(written: str) -> float | None:
    try:
        number = float(written)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _lines(file: Path) -> Iterator[_Line]:
    """The lines of a file that are not blank."""
    try:
        with file.open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                try:
                    line = _Line(file, number, raw.decode("utf-8-sig").rstrip("\r\n"))
                except UnicodeDecodeError as error:
                    raise _Line(file, number, "").error("this is not UTF-8 text: convert the file") from error
                if line.text.strip():
                    yield line
    except OSError as error:
        raise InvalidRequest(
            f"{file} cannot be read ({error.strerror}): a judged set is a folder with corpus.jsonl, queries.jsonl "
            "and qrels.tsv"
        ) from error
