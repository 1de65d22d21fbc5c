"""Tuning: what is proven is taken, what is not is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from recollect import AsyncRecollect, ConfigError, Draft, InvalidRequest
from recollect.engine.query import with_own
from recollect.evaluation.tune import (
    Tuned,
    as_toml,
    candidates,
    choose,
    conformal,
    tune,
    tune_from_use,
    write_recipe,
)
from recollect.recipes import recipe
from recollect.settings import Settings


def noisy(mean: float, count: int, seed: int) -> list[float]:
    draw = random.Random(seed)
    return [min(max(draw.gauss(mean, 0.2), 0.0), 1.0) for _ in range(count)]


def test_a_real_gain_is_found() -> None:
    """One candidate is better on every question: it is chosen, with the gain that unseen questions show."""
    plain = noisy(0.5, 100, 1)
    gain, chosen, said = choose([plain, noisy(0.5, 100, 2), [score + 0.1 for score in plain]])
    assert chosen == 2
    assert gain is not None
    assert gain.difference == pytest.approx(0.1)
    assert "+0.100 nDCG@10 on unseen questions" in said


def test_noise_is_no_gain() -> None:
    """Of many candidates one always looks best; on unseen questions it is not, and nothing changes."""
    gain, chosen, said = choose([noisy(0.5, 100, seed) for seed in range(12)])
    assert chosen == 0
    assert gain is not None
    assert gain.low <= 0
    assert said.startswith("no setting is proven to be better")


def test_too_few_questions_are_refused() -> None:
    """With how many are missing."""
    assert choose([[0.0] * 20, [1.0] * 20]) == (
        None,
        0,
        "20 questions are too few to choose settings by: 10 more are needed",
    )


def test_the_threshold_holds() -> None:
    """Over many draws, the next right answer is below the threshold in a tenth of the cases, as was asked for."""
    draw = random.Random(3)
    missed = 0
    for _ in range(2_000):
        threshold, _ = conformal([draw.betavariate(4, 2) for _ in range(60)], 0.1)
        assert threshold is not None
        missed += draw.betavariate(4, 2) < threshold
    assert missed / 2_000 <= 0.12


def test_a_threshold_takes_fifty_answers() -> None:
    """Fewer prove nothing; a tighter one says how many more it would take."""
    assert conformal([0.5] * 40, 0.1) == (None, "40 right answers are too few for a threshold: 10 more are needed")
    assert conformal([0.5] * 60, 0.1)[1].endswith("for an error of 0.05, 40 more right answers would do")
    assert conformal([0.5] * 60, 0.005)[0] is None


def test_candidates_change_one_thing_each() -> None:
    """Three lanes by four factors; a recipe that reranks also three trusts."""
    assert len(candidates(recipe("balanced"))) == 12
    assert len(candidates(recipe("careful"))) == 15


async def test_what_is_written_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`[recipe.NAME]` in recollect.toml is a recipe like any other."""
    tuned = Tuned("careful", 80, {"rerank": {"turns": 1.5, "rest": 0.05}}, None, 0.21, 0.1, ())
    (tmp_path / "recollect.toml").write_text(as_toml("mine", tuned))
    monkeypatch.chdir(tmp_path)
    mine = with_own(Settings.load(url="sqlite:///:memory:").recipe)["mine"]
    assert mine.rerank is not None
    assert (mine.name, mine.rerank.turns, mine.min_confidence) == ("mine", 1.5, 0.21)
    async with AsyncRecollect("sqlite:///:memory:", embedder="hashing") as client:
        assert (await client.space("work").recall("anything", recipe="mine")).recipe == "mine"


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"balanced": {}}, "name of a built-in recipe"),
        ({"mine": {"base": "none"}}, r"\[recipe.mine\] in recollect.toml: the recipe 'none' does not exist"),
        ({"mine": {"colour": 3}}, "no setting 'colour'"),
        (
            {"mine": {"min_confidence": "a"}},
            r"\[recipe.mine\] in recollect.toml: min_confidence must be a number, not 'a'",
        ),
        ({"mine": {"min_score": -1}}, "min_score is -1"),
        ({"mine": {"min_quality": 2}}, "min_quality is 2"),
        ({"mine": {"quality_weight": []}}, "quality_weight must be a number"),
        ({"mine": {"limit": {"default": "ten"}}}, "default of the limit must be a whole number, not 'ten'"),
        ({"mine": {"limit": 5}}, "limit must be a Limit or a mapping, not 5"),
        ({"mine": {"fanout": {"times": "a"}}}, "times of the fanout must be a whole number, not 'a'"),
        ({"mine": {"rerank": {"count": 0}}}, "count of rerank is 0"),
        ({"mine": {"rerank": {"model": 3}}}, "model of rerank must be a text"),
        ({"mine": {"rerank": {"deadline": "soon"}}}, "deadline of rerank must be a number, not 'soon'"),
        ({"mine": {"weights": {"keyword": "a"}}}, "the weight of 'keyword' is 'a'"),
        ({"mine": {"weights": 3}}, "weights must be a mapping"),
        ({"mine": {"lanes": {"vector": {"kinds": "fact"}}}}, "must be a list of texts, not 'fact'"),
        ({"mine": {"default_namespaces": 3}}, "default namespaces must be a list of texts, not 3"),
        ({"mine": {"include_expired": "yes"}}, "include_expired must be True or False, not 'yes'"),
        ({"mine": {"all_failed": "maybe"}}, "the all_failed is 'maybe'"),
        ({"mine": {"base": "later"}, "later": {}}, "the recipe 'later' does not exist"),
    ],
)
def test_a_wrong_recipe_is_refused_when_opening(table: dict[str, dict[str, object]], reason: str) -> None:
    """With the table's name and what is wrong with it."""
    with pytest.raises(ConfigError, match=reason):
        with_own(table)


def test_a_recipe_may_start_from_one_further_up() -> None:
    """So that a tuned recipe can be tuned again."""
    again = with_own({"mine": {"base": "careful", "min_confidence": 0.2}, "again": {"base": "mine", "min_score": 0.1}})
    assert (again["again"].min_confidence, again["again"].min_score) == (0.2, 0.1)


def test_a_recipe_is_written_once(tmp_path: Path) -> None:
    """The same name again replaces its table with the tables inside it, wherever it stands; the rest stays."""
    file = tmp_path / "recollect.toml"
    file.write_text(
        "url = 'x'\n[recipe.mine]\nbase = 'sci'\n[recipe.mine.rerank]\ncount = 3\n[recipe.mine2]\n[postgres]\n"
    )
    for least in (0.1, 0.2):
        write_recipe(file, "mine", f"[recipe.mine]\nmin_confidence = {least}")
    assert file.read_text() == "url = 'x'\n[recipe.mine]\nmin_confidence = 0.2\n[recipe.mine2]\n[postgres]\n"
    new = tmp_path / "new.toml"
    write_recipe(new, "mine", "[recipe.mine]")
    assert new.read_text() == "[recipe.mine]\n"


def test_a_file_that_cannot_take_a_recipe_stays_as_it_is(tmp_path: Path) -> None:
    """An inline table cannot be replaced line by line."""
    file = tmp_path / "recollect.toml"
    file.write_text("recipe = { mine = { base = 'sci' } }\n")
    with pytest.raises(ConfigError, match="write it there yourself"):
        write_recipe(file, "mine", "[recipe.mine]")
    assert file.read_text() == "recipe = { mine = { base = 'sci' } }\n"


async def test_a_whole_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the real client: every question is answered already, so nothing is proven to be better, and the threshold
    is one that the answers reach.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = [f"{first}{second}" for first in ("red", "blue", "old", "new", "wet", "dry") for second in "abcdefghij"]
    lines = [{"_id": word, "text": f"the {word} house by the sea"} for word in words]
    asked = [{"_id": f"q{word}", "text": f"which house is {word}?"} for word in words]
    for name, rows in (("corpus", lines), ("queries", asked)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "qrels.tsv").write_text("\n".join(f"q{word}\t{word}\t1" for word in words))
    tuned = await tune(tmp_path, embedder="hashing")
    assert tuned.changes == {}
    assert tuned.threshold is not None
    assert tuned.said[0].startswith("no setting is proven to be better")
    assert 0 < tuned.threshold < 1


WORDS = [f"{first}{second}" for first in ("red", "blue", "old", "new", "wet", "dry") for second in "abcdefghij"]


async def asked_and_used(url: str, words: Sequence[str], embedder: str = "hashing") -> None:
    """A space in which each question led to one memory."""
    async with AsyncRecollect(url, embedder=embedder) as r:
        work = r.space("work")
        await work.remember_many(Draft(f"the {word} house by the sea", id=word) for word in WORDS)
        for word in words:
            await work.used(word, query=f"which house is {word}?")


async def test_what_was_used_judges_the_recipes(tmp_path: Path) -> None:
    """The same proofs as by a folder, with one question for each that led to a use; the space itself counts nothing."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    await asked_and_used(url, [*WORDS, *WORDS])
    tuned = await tune_from_use("work", embedder="hashing", store_url=url)
    assert (tuned.questions, tuned.changes) == (len(WORDS), {})
    assert tuned.threshold is not None
    assert 0 < tuned.threshold < 1
    async with AsyncRecollect(url, embedder="hashing") as r:
        assert (await r.space("work").usage()).total.recalls == 0
        assert (await r.space("work").get(WORDS[0])).hits == 0


async def test_a_few_uses_prove_nothing(tmp_path: Path) -> None:
    """As few judged questions do; without any, it says how to note them."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    await asked_and_used(url, WORDS[:2])
    tuned = await tune_from_use("work", embedder="hashing", store_url=url)
    assert (tuned.changes, tuned.gain, tuned.threshold) == ({}, None, None)
    assert tuned.said[0] == "2 questions are too few to choose settings by: 28 more are needed"
    with pytest.raises(InvalidRequest, match="recollect used ID --query"):
        await tune_from_use("another", embedder="hashing", store_url=url)


async def test_a_recipe_that_misses_what_was_used_is_bettered(tmp_path: Path) -> None:
    """A recipe that hardly looks at words is told to look at them more, by questions that only words can answer."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    await asked_and_used(url, WORDS, "hashing:8")
    deaf = recipe("balanced").with_(weights={"vector": 1.0, "keyword": 0.1, "graph": 0.0})
    tuned = await tune_from_use("work", base=deaf, embedder="hashing:8", store_url=url)
    assert tuned.gain is not None
    assert tuned.gain.low > 0
    assert tuned.changes in ({"weights": {"keyword": 0.2}}, {"weights": {"vector": 0.5}})
