"""`recollect eval`: the report, for people and for programs. What it measures is tested with the evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.evaluation.tune import Tuned
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


@pytest.mark.parametrize("name", ["balanced", "my recipe", "a.b", "", "é", "-" * 65])
def test_tune_refuses_a_name_that_cannot_be_written(cli: Cli, name: str) -> None:
    """Before anything is asked: the folder is not even looked for."""
    result = cli("tune", "nowhere", "--name", name, "--write")
    assert result.exit_code == 2
    assert "recipe" in result.stderr
    assert "nowhere" not in result.stderr


def test_tune_says_what_it_wrote(cli: Cli, judged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or that it wrote nothing."""
    monkeypatch.chdir(tmp_path)
    told = cli("tune", judged, "--embedder", "hashing", "--write")
    assert told.stdout.rstrip().endswith("nothing is proven, so nothing was written")
    assert not (tmp_path / "recollect.toml").exists()

    async def tuned(*_: object, **__: object) -> Tuned:
        return Tuned("balanced", 80, {}, None, 0.21, 0.1, ())

    monkeypatch.setattr("recollect.evaluation.tune.tune", tuned)
    said = " ".join(cli("tune", judged, "--name", "mine", "--write").stdout.split())
    assert "wrote [recipe.mine] to" in said
    assert "[recipe.mine]" in (tmp_path / "recollect.toml").read_text()
    assert cli.json("tune", judged, "--name", "mine", "--write")["written"] == str(tmp_path / "recollect.toml")


def test_recipes_of_ones_own_are_known(cli: Cli, judged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To `eval`, and to `recipes`, which also shows how they rerank."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recollect.toml").write_text(
        '[recipe.mine]\nbase = "careful"\nmin_confidence = 0.25\nrerank = { count=7 }\n[recipe.plain]\nmin_score = 0.1'
    )
    said = " ".join(cli("recipes").stdout.split())
    assert "rerank the best 7 by the client's model, trusted 3 with turns, 0.1 with the rest, within 2 s" in said
    assert "confidence >= 0.25" in said
    report = cli.json("eval", judged, "--recipe", "plain", "--embedder", "hashing")
    assert [one["recipe"] for one in report["results"]] == ["plain"]


def test_confidence_of_one_folder(cli: Cli, judged: str) -> None:
    """Off-topic questions come from other folders, and that is said where there is none."""
    said = " ".join(cli("eval", judged, "--confidence", "--embedder", "hashing").stdout.split())
    assert "off-topic questions need a second folder" in said
