"""`recollect eval`: the report, for people and for programs. What it measures is tested with the evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.cli_runner import Cli


@pytest.fixture
def judged(tmp_path: Path) -> str:
    """A judged set of three documents and two questions."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(
        '{"_id": "a", "title": "", "text": "The walrus paid the invoice"}\n'
        '{"_id": "b", "title": "", "text": "The carpenter wept"}\n'
        '{"_id": "c", "title": "", "text": "Oysters follow in a row"}\n'
    )
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "walrus invoice"}\n{"_id": "2", "text": "oysters"}\n')
    (folder / "qrels.tsv").write_text("1\ta\t1\n2\tc\t1\n")
    return str(folder)


def test_eval_json(cli: Cli, judged: str) -> None:
    """`--json` prints a result for each recipe, and a comparison with the first."""
    report = cli.json("eval", judged, "--recipe", "balanced", "--recipe", "pgmemory", "--embedder", "hashing")
    assert [(r["dataset"], r["recipe"], r["questions"]) for r in report["results"]] == [
        ("tiny", "balanced", 2),
        ("tiny", "pgmemory", 2),
    ]
    assert report["results"][0]["ndcg@10"] == 1.0
    assert [(c["baseline"], c["recipe"]) for c in report["comparisons"]] == [("balanced", "pgmemory")]


def test_eval_table(cli: Cli, judged: str) -> None:
    """People get a table, and a sentence for each comparison."""
    result = cli("eval", judged, "--recipe", "balanced", "--recipe", "pgmemory", "--embedder", "hashing")
    assert result.exit_code == 0, result.stderr
    for part in ("nDCG@10", "no hit", "p95 ms", "tiny", "1.000", "against balanced", "could be chance"):
        assert part in result.stdout


def test_eval_of_a_folder_that_is_no_set(cli: Cli, tmp_path: Path) -> None:
    """A folder without the three files is refused in a sentence that names what is missing."""
    result = cli("eval", str(tmp_path), "--embedder", "hashing")
    assert result.exit_code == 2
    assert "corpus.jsonl" in result.stderr


def test_tune_by_what_was_used(cli: Cli) -> None:
    """`--from-use` takes the questions that led to a use; few of them prove nothing, and that is said."""
    id = cli.remember("The red door")
    cli("used", id, "--query", "which door is red?")
    told = cli.json("tune", "--from-use")
    assert (told["questions"], told["changes"], told["min_confidence"]) == (1, {}, None)
    assert "1 questions are too few" in cli("tune", "--from-use").stdout
    none = cli("tune", "--from-use", "--space", "another")
    assert none.exit_code == 2
    assert "has no question that led to a use" in none.stderr


def test_tune_takes_a_folder_or_what_was_used(cli: Cli, judged: str) -> None:
    """One of them."""
    for given in ((), (judged, "--from-use")):
        result = cli("tune", *given)
        assert result.exit_code == 2
        assert "either a folder" in result.stderr
