"""Judged sets are read as they are meant, and a broken one says where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import InvalidRequest
from recollect.evaluation.datasets import Document, Question, load

SHARED = Path(__file__).parents[3] / "shared" / "data"


def write(
    folder: Path,
    *,
    corpus: list[dict[str, Any] | str] | None = None,
    queries: list[dict[str, Any] | str] | None = None,
    qrels: str = "q1\td1\t1\n",
) -> Path:
    def lines(rows: list[dict[str, Any] | str]) -> str:
        return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)

    (folder / "corpus.jsonl").write_text(lines(corpus or [{"_id": "d1", "text": "one"}]), encoding="utf-8")
    (folder / "queries.jsonl").write_text(lines(queries or [{"_id": "q1", "text": "what?"}]), encoding="utf-8")
    (folder / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return folder


def test_a_set_holds_what_its_files_say(tmp_path: Path) -> None:
    """Ids, titles, texts and conversations come from the files; the set is called like its folder."""
    folder = write(
        tmp_path,
        corpus=[
            {"_id": "d1", "title": "T", "text": "one", "meta": {"conversation": "c1", "speaker": "Ann"}},
            {"_id": 2, "title": "", "text": "two", "meta": {}},
        ],
        queries=[{"_id": "q1", "text": "what?", "meta": {"conversation": "c1"}}, {"_id": "q2", "text": "who?"}],
        qrels="q1\td1\t2\nq1\t2\t0\n",
    )
    dataset = load(folder)
    assert dataset.name == tmp_path.name
    assert dataset.documents == (Document("d1", "one", "T", "c1"), Document("2", "two"))
    assert dataset.queries == (Question("q1", "what?", "c1"), Question("q2", "who?"))
    assert dataset.qrels == {"q1": {"d1": 2.0, "2": 0.0}}
    assert dataset.skipped == 0


@pytest.mark.parametrize("header", ["", "query-id\tcorpus-id\tscore\n"])
def test_judgements_may_have_a_header(tmp_path: Path, header: str) -> None:
    """A first line whose grade is no number is a header; without one nothing is lost."""
    assert load(write(tmp_path, qrels=f"{header}q1\td1\t1\n")).qrels == {"q1": {"d1": 1.0}}


def test_a_document_without_text_is_its_title(tmp_path: Path) -> None:
    """The title stands in for a missing text; with neither, the document is skipped and counted."""
    corpus: list[dict[str, Any] | str] = [
        {"_id": "d1", "title": "only a title", "text": " "},
        {"_id": "d2", "title": "", "text": ""},
        {"_id": "d3", "title": None, "text": None},
    ]
    dataset = load(write(tmp_path, corpus=corpus))
    assert dataset.documents == (Document("d1", "only a title"),)
    assert dataset.skipped == 2


def test_blank_lines_and_a_byte_order_mark_are_no_content(tmp_path: Path) -> None:
    """Files as editors and spreadsheets leave them are read: BOM, CRLF, blank lines."""
    write(tmp_path)
    (tmp_path / "corpus.jsonl").write_bytes(b'\xef\xbb\xbf{"_id": "d1", "text": "one"}\r\n\r\n')
    (tmp_path / "qrels.tsv").write_bytes(b"q1\td1\t1\r\n\r\n")
    dataset = load(tmp_path)
    assert dataset.documents == (Document("d1", "one"),)
    assert dataset.qrels == {"q1": {"d1": 1.0}}


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"corpus": [{"_id": "d1", "text": "one"}, "{not json"]}, r"corpus\.jsonl, line 2: this is not JSON"),
        ({"corpus": ["[1]"]}, r"corpus\.jsonl, line 1: this is not an object with an `_id`"),
        ({"corpus": [{"text": "one"}]}, r"corpus\.jsonl, line 1: .*`_id`"),
        ({"corpus": [{"_id": "d1", "text": 7}]}, r"line 1: `text` is 7, and must be a string"),
        ({"corpus": [{"_id": "d1", "text": "a", "meta": "x"}]}, r'line 1: `meta` is "x", and must be an object'),
        ({"corpus": [{"_id": "d", "text": "a"}, "", {"_id": "d", "text": "b"}]}, r"line 3: the id 'd' .* on line 1"),
        ({"corpus": [{"_id": "d1", "text": "a\0b"}]}, r"line 1: `text` holds a NUL"),
        ({"corpus": [{"_id": "d1", "text": "a", "title": "t" * 1001}]}, r"line 1: `title` has 1,001 characters"),
        ({"corpus": ['{"_id": "d1", "text": "\\ud800"}']}, r"line 1: `text` holds a lone surrogate"),
        ({"corpus": [{"_id": "d1", "text": ""}]}, r"corpus\.jsonl has no document with a text"),
        ({"queries": [{"_id": "q1", "text": " "}]}, r"queries\.jsonl, line 1: question 'q1' has no `text`"),
        ({"queries": [{"_id": "q1", "text": "a" * 8193}]}, r"queries\.jsonl, line 1: `text` has 8,193 bytes"),
        ({"qrels": "q1\td1\t1\nq1 d1 1\n"}, r"qrels\.tsv, line 2: it has 1 columns, not 3"),
        ({"qrels": "q1\td1\t1\nq1\td2\tgood\n"}, r"qrels\.tsv, line 2: the grade 'good' is not a number"),
        ({"qrels": "q1\td1\t1\nq1\td2\tnan\n"}, r"qrels\.tsv, line 2: the grade 'nan' is not a number"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, broken: dict[str, Any], says: str) -> None:
    """The refusal names the file and the line, and what is wrong there."""
    with pytest.raises(InvalidRequest, match=says):
        load(write(tmp_path, **broken))


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    """A file in another encoding is refused at the first line that shows it."""
    write(tmp_path)
    (tmp_path / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "ok"}\n{"_id": "q2", "text": "caf\xe9"}\n')
    with pytest.raises(InvalidRequest, match=r"queries\.jsonl, line 2: this is not UTF-8"):
        load(tmp_path)


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    """Each of the three files is needed, and the one that is not there is named."""
    (write(tmp_path) / missing).unlink()
    with pytest.raises(InvalidRequest, match=rf"{missing} cannot be read \(No such file"):
        load(tmp_path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the judged sets are not beside this checkout (../shared/data)")
@pytest.mark.parametrize(
    ("name", "documents", "queries", "skipped"),
    [("locomo", 5882, 1986, 0), ("cranfield", 1398, 225, 2), ("scifact", 5183, 300, 0)],
)
def test_real_sets_are_read_whole(name: str, documents: int, queries: int, skipped: int) -> None:
    """The judged sets of the project have the sizes their sources say."""
    dataset = load(SHARED / name)
    assert (len(dataset.documents), len(dataset.queries), dataset.skipped) == (documents, queries, skipped)
