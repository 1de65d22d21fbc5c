"""A whole evaluation, through the real client and a real store, with the hashing embedder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recollect import AsyncRecollect, EmbeddingError, InvalidRequest
from recollect.embedders import make_embedder
from recollect.evaluation.arrangement import arrange
from recollect.evaluation.datasets import load
from recollect.evaluation.results import to_json
from recollect.evaluation.run import Progress, evaluate
from recollect.ports import Role

if TYPE_CHECKING:
    from recollect.types import Vectors

SHARED = Path(__file__).parents[3] / "shared" / "data"

TURNS = [
    ("a1", "a", "Ann: my passport expires in June"),
    ("a2", "a", "Ben: then renew it before the trip"),
    ("a3", "a", "Ann: the kitchen tap is dripping"),
    ("b1", "b", "Cleo: the kitchen tap was replaced on Monday"),
    ("b2", "b", "Dan: the piano needs tuning"),
    ("b3", "b", "Dan: the piano needs tuning"),
]
QUESTIONS = [
    ("q1", "a", "kitchen tap", {"a3": 1}),
    ("q2", "b", "kitchen tap", {"b1": 1}),
    ("q3", "b", "piano tuning", {"b2": 1, "b3": 2}),
    ("q4", "a", "nobody knows", {}),
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Embeddings are cached in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two conversations that talk about the same tap, one exact copy, one question without an answer."""
    turns = [{"_id": id, "title": "", "text": text, "meta": {"conversation": c}} for id, c, text in TURNS]
    questions = [{"_id": id, "text": text, "meta": {"conversation": c}} for id, c, text, _ in QUESTIONS]
    qrels = "".join(f"{id}\t{turn}\t{grade}\n" for id, *_, grades in QUESTIONS for turn, grade in grades.items())
    return write(tmp_path / "chats", turns, questions, "query-id\tcorpus-id\tscore\n" + qrels)


def write(folder: Path, corpus: list[dict[str, Any]], queries: list[dict[str, Any]], qrels: str) -> Path:
    folder.mkdir()
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return folder


def test_conversations_are_spaces_and_threads(folder: Path) -> None:
    """A conversation is a space and a thread in file order; an exact copy is stood for by the first."""
    arrangement = arrange(load(folder))
    assert {space: [(d.thread, d.place) for d in drafts] for space, drafts in arrangement.drafts.items()} == {
        "chats/a": [("a", 0), ("a", 1), ("a", 2)],
        "chats/b": [("b", 0), ("b", 1)],
    }
    assert arrangement.stands_for["b3"] == "b2"
    assert arrangement.copies == 1


def test_a_memory_has_the_best_grade_of_its_documents(folder: Path) -> None:
    """Copies share one memory, judged by the best; a document that is nowhere stays one that cannot be found."""
    grades = arrange(load(folder)).grades({"b2": 1.0, "b3": 2.0, "b1": 0.0, "elsewhere": 1.0})
    assert grades == {"b2": 2.0, "b1": 0.0, "elsewhere": 1.0}


def test_documents_of_no_conversation_are_in_no_thread(tmp_path: Path) -> None:
    """Without `meta.conversation` all share the set's own space, and nothing stands beside anything."""
    folder = write(tmp_path / "flat", [{"_id": "1", "text": "x"}], [{"_id": "q", "text": "x"}], "q\t1\t1\n")
    (draft,) = arrange(load(folder)).drafts["flat"]
    assert (draft.thread, draft.place) == (None, None)


async def test_questions_are_asked_in_their_own_space(folder: Path) -> None:
    """Each question finds its own conversation's turn first; one without an answer is left out and counted."""
    (result,) = await evaluate(folder, embedder="hashing")
    assert result.metrics["ndcg@10"] == result.metrics["mrr@10"] == 1.0
    assert result.metrics["recall_all@5"] == 1.0
    assert (result.questions, result.unjudged, result.documents, result.copies) == (3, 1, 6, 1)
    assert (result.degraded, dict(result.failures)) == (0, {})
    assert len(result.latency.recall) == len(result.latency.with_embedding) == 3
    assert all(both > alone for both, alone in zip(result.latency.with_embedding, result.latency.recall, strict=True))


async def test_the_report_has_the_promised_shape(folder: Path) -> None:
    """Two recipes give two results and one comparison, each with the names that the documentation promises."""
    report = to_json(await evaluate(folder, recipes=["balanced", "drobek"], embedder="hashing"))
    assert json.loads(json.dumps(report)) == report
    assert list(report) == ["results", "comparisons"]
    assert [(r["dataset"], r["recipe"]) for r in report["results"]] == [("chats", "balanced"), ("chats", "drobek")]
    assert report["results"][0].keys() >= {
        "ndcg@10", "mrr@10", "recall_any@5", "recall_share@10", "recall_all@20", "no_hit", "questions", "documents",
        "p50_ms", "p95_ms", "p50_ms_with_embedding", "p95_ms_with_embedding", "embedding_sample", "degraded",
    }  # fmt: skip
    (comparison,) = report["comparisons"]
    assert (comparison["baseline"], comparison["recipe"]) == ("balanced", "drobek")
    assert comparison["low"] <= comparison["difference"] <= comparison["high"]


async def test_recipes_look_at_every_kind(folder: Path) -> None:
    """A recipe made for kinds that a judged set does not have still finds its documents."""
    for result in await evaluate(folder, recipes=["sci", "polyant_knowledge"], embedder="hashing"):
        assert result.metrics["recall_any@5"] == 1.0


async def test_progress_is_told(folder: Path) -> None:
    """Every stage counts up to its total."""
    told: list[Progress] = []
    await evaluate(folder, embedder="hashing", on_progress=told.append)
    assert told[-1] == ("asking", "balanced", 3, 3)
    assert [p for p in told if p.stage == "remembering"][-1] == ("remembering", "chats", 5, 5)
    assert [p for p in told if p.stage == "linking"][-1] == ("linking", "chats", 5, 5)


async def test_questions_can_be_cut_short(folder: Path) -> None:
    """`questions` asks the first so many only."""
    (result,) = await evaluate(folder, embedder="hashing", questions=1)
    assert (result.questions, result.unjudged) == (1, 0)


async def test_a_store_that_is_given_is_used_once(folder: Path, tmp_path: Path) -> None:
    """The set stays in the caller's store, and is not mixed with what is there already."""
    url = f"sqlite:///{tmp_path / 'mine.db'}"
    async with AsyncRecollect(url, embedder="hashing") as recollect:
        await recollect.space("other").remember("not part of the set")
    await evaluate(folder, store_url=url, embedder="hashing")
    async with AsyncRecollect(url, embedder="hashing") as recollect:
        assert sorted(await recollect.spaces()) == ["chats/a", "chats/b", "other"]
    with pytest.raises(InvalidRequest, match="already has the space 'chats/a'"):
        await evaluate(folder, store_url=url, embedder="hashing")


async def test_a_set_without_any_answer_is_refused(tmp_path: Path) -> None:
    """Judgements that fit no question leave nothing to measure, and say so."""
    folder = write(tmp_path / "flat", [{"_id": "1", "text": "x"}], [{"_id": "q", "text": "x"}], "other\t1\t1\n")
    with pytest.raises(InvalidRequest, match="none of the 1 questions of 'flat' has a relevant document"):
        await evaluate(folder, embedder="hashing")


class Failing:
    """An embedder whose service is down."""

    name = "failing"
    dimensions = 8
    in_process = False

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        raise EmbeddingError("the service is down")

    async def close(self) -> None: ...


async def test_documents_without_vectors_stop_the_evaluation(folder: Path) -> None:
    """Half an index must not be measured as if it were whole."""
    with pytest.raises(EmbeddingError, match="3 of the 3 documents in 'chats/a' could not be embedded"):
        await evaluate(folder, embedder=Failing())


class Counting:
    """The hashing embedder, counting what it is asked for."""

    dimensions: int | None
    in_process = True

    def __init__(self) -> None:
        self._inner = make_embedder("hashing")
        self.name, self.dimensions = self._inner.name, self._inner.dimensions
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        self.texts += texts
        return await self._inner.embed(texts, space=space, role=role)

    async def close(self) -> None:
        await self._inner.close()


async def test_an_unknown_recipe_is_refused_before_any_work(folder: Path) -> None:
    """A wrong name costs nothing: it is refused before the first text is embedded."""
    counting = Counting()
    with pytest.raises(InvalidRequest, match="the recipe 'nonsense' does not exist"):
        await evaluate(folder, recipes=["balanced", "nonsense"], embedder=counting)
    assert counting.texts == []


async def test_a_second_run_embeds_only_its_sample(folder: Path) -> None:
    """Documents and questions come from the cache; what embedding takes is measured without it, each time."""
    first, second = Counting(), Counting()
    await evaluate(folder, embedder=first)
    await evaluate(folder, embedder=second)
    turns = [text for _, _, text in TURNS]
    questions = [text for *_, text, grades in QUESTIONS if grades]
    assert set(turns) <= set(first.texts)
    assert second.texts == ["warm up", *questions]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the judged sets are not beside this checkout (../shared/data)")
async def test_a_part_of_a_real_set(tmp_path: Path) -> None:
    """The first abstracts of SciFact, each asked for by its own title, are found by their words."""
    with (SHARED / "scifact" / "corpus.jsonl").open(encoding="utf-8") as lines:
        abstracts = [json.loads(line) for line in islice(lines, 60)]
    questions = [{"_id": a["_id"], "text": a["title"]} for a in abstracts]
    qrels = "".join(f"{a['_id']}\t{a['_id']}\t1\n" for a in abstracts)
    (result,) = await evaluate(write(tmp_path / "part", abstracts, questions, qrels), embedder="hashing")
    assert result.metrics["recall_any@5"] == 1.0
    assert result.metrics["mrr@10"] > 0.95
    assert result.degraded == 0


async def test_confidence_is_measured_where_it_is_asked_for(folder: Path) -> None:
    """As the set is, with answers removed, and off topic; nothing of that is left behind in the store."""
    (result,) = await evaluate(folder, embedder="hashing", off_topic=["plate tectonics", "the moons of Jupiter"])
    (again,) = await evaluate(folder, embedder="hashing")
    assert result.metrics == again.metrics
    assert again.sureness is None
    assert result.sureness is not None
    assert len(result.sureness.best) == len(result.sureness.removed) == 3
    assert len(result.sureness.off_topic) == 2
    assert all(judged.right for judged in result.sureness.best)
    found = result.to_json()["confidence"]
    assert found["auroc_removed"] == found["auroc_off_topic"] == 1.0
    assert sum(one["predictions"] for one in found["reliability"]) == 3
