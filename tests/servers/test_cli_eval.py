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
