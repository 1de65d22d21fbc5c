"""recall: answers that explain themselves and admit what failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from recollect import AsyncRecollect, AsyncSpace, Draft, Fanout, InvalidRequest, Lane, RecallFailed, Recipe
from recollect.ports import Role
from recollect.recipes import RECIPES
from recollect.stores.sqlite.store import SqliteStore
from tests.conftest import FlakyEmbedder

if TYPE_CHECKING:
    from recollect.types import Vectors


class SlowEmbedder:
    """Another embedder, which takes its time."""

    def __init__(self, inner: FlakyEmbedder) -> None:
        self._inner = inner
        self.name, self.dimensions, self.in_process = inner.name, inner.dimensions, False

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        await asyncio.sleep(0.5)
        return await self._inner.embed(texts, space=space, role=role)

    async def close(self) -> None:
        await self._inner.close()


async def remember(space: AsyncSpace, *texts: str, **fields: object) -> list[str]:
    return [(await space.remember(text, **fields)).memory.id for text in texts]  # type: ignore[arg-type]


async def test_ef_search_is_for_every_lane_that_asks_a_vector_index(
    work: AsyncSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One search serves the vector lane and the graph lane, with the effort that was asked for. drobek's bounds are
    those of the others, but it takes what is beyond them as the nearest within.
    """
    asked: list[int | None] = []
    search = SqliteStore.search_vectors

    async def recorded(self: SqliteStore, *given: Any, **how: Any) -> Any:
        asked.append(how["ef_search"])
        return await search(self, *given, **how)

    await remember(work, "Invoice 12345 was paid on 3 May", "The cat sleeps")
    monkeypatch.setattr(SqliteStore, "search_vectors", recorded)
    usual = await work.recall("invoice")
    careful = await work.recall("invoice", ef_search=150)
    assert [(hit.memory.id, hit.score) for hit in usual] == [(hit.memory.id, hit.score) for hit in careful]
    for options in ({}, {"ef_search": 100}, {"ef_search": 9_999}, {"lanes": {"vector": {"ef_search": 5}}}):
        await work.recall("invoice", recipe="drobek", **options)
    assert asked == [None, 150, 64, 100, 200, 5]


async def test_every_hit_says_why(work: AsyncSpace) -> None:
    """Lanes, ranks from 1, raw and normalised scores; the contributions add up to the score."""
    await remember(work, "Invoice 12345 was paid on 3 May", "Invoice 12346 is open", "The cat sleeps")
    answer = await work.recall("invoice 12345")
    best = answer[0]
    assert best.memory.text == "Invoice 12345 was paid on 3 May"
    assert {part.lane for part in best.why} >= {"vector", "keyword"}
    assert {part.rank for part in best.why if part.lane == "keyword"} == {1}
    assert sum(part.contribution for part in best.why) == pytest.approx(best.score)
    assert "keyword #1" in str(best.why)
    assert [report.status for report in answer.lanes] == ["ok", "ok", "ok"]
    assert all(report.ms >= 0 for report in answer.lanes)
    assert not answer.degraded
    assert (answer.recipe, answer.query) == ("balanced", "invoice 12345")
    assert best.snippet.text[slice(*best.snippet.marks[0])] == "Invoice"


@pytest.mark.parametrize(
    ("template", "wanted", "question"),
    [
        ("Invoice {} was paid by bank transfer", "12346", "was invoice 12346 paid?"),
        ("The build stopped with error E0{} in module core", "308", "what about E0308"),
        ("Ticket ERR_CONN_{} was seen in the proxy log", "REFUSED", "ERR_CONN_REFUSED"),
        ("We upgraded the gateway to v1.2.{} last week", "3", "when did we go to v1.2.3?"),
    ],
)
async def test_an_exact_identifier_comes_first_among_a_hundred_lookalikes(
    work: AsyncSpace, template: str, wanted: str, question: str
) -> None:
    """Whatever the vectors say: the memory with that very identifier is the first hit."""
    others = [template.format(n) for n in range(12300 if wanted.isdigit() and len(wanted) == 5 else 400, 12300 + 9000)]
    others = [text for text in others if wanted not in text][:100]
    await work.remember_many(Draft(text) for text in [*others[:50], template.format(wanted), *others[50:]])
    answer = await work.recall(question)
    assert answer[0].memory.text == template.format(wanted)


async def test_an_identifier_wins_even_when_the_vectors_say_otherwise(
    work: AsyncSpace, embedder: FlakyEmbedder
) -> None:
    """The lookalike has exactly the question's vector, the right one an opposite vector."""
    north = [1.0] + [0.0] * (embedder.dimensions - 1)
    south = [-1.0] + [0.0] * (embedder.dimensions - 1)
    drafts = [Draft(f"Invoice {n} was paid", vector=north) for n in range(12300, 12400) if n != 12346]
    await work.remember_many([*drafts, Draft("Invoice 12346 was paid", vector=south)])
    answer = await work.recall("invoice 12346", vector=north)
    assert answer[0].memory.text == "Invoice 12346 was paid"


async def test_a_dead_embedder_is_admitted_and_the_words_still_answer(
    work: AsyncSpace, embedder: FlakyEmbedder
) -> None:
    """One failed lane is data, not an exception."""
    (id,) = await remember(work, "The boiler was serviced in March")
    embedder.down = True
    answer = await work.recall("boiler")
    assert answer.degraded
    assert [hit.memory.id for hit in answer] == [id]
    (failed,) = [report for report in answer.lanes if report.lane == "vector"]
    assert (failed.status, failed.reason) == ("failed", "the embedding service is down")


async def test_every_lane_failing_is_an_error_or_an_empty_answer_as_the_recipe_says(
    work: AsyncSpace, embedder: FlakyEmbedder
) -> None:
    """The default raises and names the lanes; Polyant's recipe answers with nothing."""
    await remember(work, "something")
    embedder.down = True
    with pytest.raises(RecallFailed, match="the embedding service is down") as caught:
        await work.recall("something", weights={"keyword": 0, "graph": 0})
    assert caught.value.lanes[0].status == "failed"
    answer = await work.recall("something", recipe="polyant", weights={"keyword": 0})
    assert (len(answer), answer.degraded) == (0, True)


@pytest.mark.parametrize("recipe", ["pgmemory", "balanced", "sci", "novamem"])
async def test_every_recipe_survives_a_dead_embedder(work: AsyncSpace, embedder: FlakyEmbedder, recipe: str) -> None:
    """The words still answer, more than fit, so that the recipe's diversity has something to do."""
    await work.remember_many(Draft(f"blue whale number {n}", kind="semantic") for n in range(20))
    embedder.down = True
    answer = await work.recall("blue whale", recipe=recipe, limit=3)
    assert (len(answer), answer.degraded) == (3, True)


async def test_a_late_vector_lane_leaves_the_rest_to_answer(
    url: str, work: AsyncSpace, embedder: FlakyEmbedder
) -> None:
    """Also where the recipe would compare vectors afterwards."""
    await work.remember_many(Draft(f"blue whale number {n}") for n in range(20))
    async with AsyncRecollect(url, embedder=SlowEmbedder(embedder)) as r:
        answer = await r.space("work").recall("blue whale", recipe="pgmemory", lanes={"vector": {"deadline": 0.05}})
    assert [report.status for report in answer.lanes] == ["late", "ok"]
    assert len(answer) == 5


async def test_every_recipe_answers(work: AsyncSpace) -> None:
    """All run, and find what their lanes look at."""
    for kind in ("fact", "message", "episodic", "semantic", "identity", "knowledge", "chunk"):
        await work.remember(f"The red bicycle stands in the cellar ({kind})", kind=kind, title="Red bicycle")
    found = {}
    for recipe in RECIPES:
        answer = await work.recall("red bicycle", recipe=recipe)
        assert not answer.degraded
        found[recipe] = {hit.memory.kind for hit in answer}
    assert found["polyant"] == {"fact", "message"}
    assert found["polyant_knowledge"] == {"chunk"}
    assert found["sci"] == {"episodic", "semantic", "identity"}
    assert found["drobek"] == {"knowledge"}
    assert len(found["pgmemory"]) == 5
    assert len(found["balanced"]) == len(found["novamem"]) == 7


async def test_rrf_gives_the_seeds_numbers(work: AsyncSpace) -> None:
    """First in both lanes: 1/61 + 1/61; first in one: 1/61, not rounded ("a document ranked first in a list contributes
    1 / 61 ≈ 0.0164")."""
    await remember(work, "alpha beta", kind="knowledge")
    assert (await work.recall("alpha beta", recipe="drobek"))[0].score == pytest.approx(2 / 61)
    await remember(work, "gamma delta")
    assert (await work.recall("gamma delta", recipe="polyant"))[0].score == 1 / 61


async def test_identity_is_shared_by_all_profiles_in_sci(work: AsyncSpace) -> None:
    """A profile is a namespace; identity ignores it, the other kinds keep to it."""
    await work.remember("I am called Ada Lovelace", kind="identity", namespace="home")
    await work.remember("Ada met Charles", kind="episodic", namespace="home")
    answer = await work.recall("Ada", recipe="sci", namespaces=["office"])
    assert [hit.memory.kind for hit in answer] == ["identity"]


async def test_quality_floor_and_source_prefix_of_pgmemory(work: AsyncSpace) -> None:
    """Below 0.05 is out in every lane, unscored is kept; wildcards in a prefix are text."""
    low, kept = await remember(work, "blue whale one", "blue whale two", source="docs_a/1")
    (other,) = await remember(work, "blue whale three", source="docsXa/2")
    await work.update(low, quality=0.04)
    found = {hit.memory.id for hit in await work.recall("blue whale", recipe="pgmemory", source_prefix="docs_a")}
    assert found == {kept}
    assert other not in found


async def test_filters_apply_before_ranking(work: AsyncSpace) -> None:
    """One right memory among many that the filter leaves out is found in every leg, whatever the fanout."""
    await work.remember_many(Draft(f"the weather report number {n}", kind="noise") for n in range(150))
    (id,) = await remember(work, "the weather report", tags=["a", "b"], kind="signal")
    await work.settle()
    assert [h.memory.id for h in await work.recall("the weather report", kinds=["signal"])] == [id]
    assert [h.memory.id for h in await work.recall("the weather report", tags=["a", "b"])] == [id]
    assert len(await work.recall("the weather report", tags=["a", "c"])) == 0


async def test_time_range_and_expiry(work: AsyncSpace) -> None:
    """`since` is inclusive, `until` exclusive; what has expired is not recalled unless asked for."""
    await work.remember("met Anna in spring", occurred_at="2026-04-01")
    await work.remember("met Anna in summer", occurred_at="2026-07-01")
    found = await work.recall("met Anna", since="2026-04-01", until="2026-07-01")
    assert [h.memory.text for h in found] == ["met Anna in spring"]
    await work.remember("met Anna on trial", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert "met Anna on trial" not in [h.memory.text for h in await work.recall("met Anna")]
    assert "met Anna on trial" in [h.memory.text for h in await work.recall("met Anna", include_expired=True)]


async def test_expect_says_where_a_memory_was_lost(client: AsyncRecollect, work: AsyncSpace) -> None:
    """Each stage has its name and a reason."""
    found, copy = await remember(work, "the zebra crossing is closed", "The zebra crossing is closed!")
    (elsewhere,) = await remember(client.space("elsewhere"), "zebra")
    old, expired = await remember(work, "zebra one", "zebra two")
    await work.supersede(old, "zebra three")
    await work.update(expired, expires_at="2001-01-01")
    (tagged,) = await remember(work, "a zebra with a tag", namespace="other")
    (far,) = await remember(work, "completely different matter")

    async def stage(id: str, **options: object) -> str:
        answer = await work.recall("zebra crossing closed", expect=id, **options)  # type: ignore[arg-type]
        assert answer.expected is not None
        assert answer.expected.reason
        return answer.expected.stage

    assert await stage(found) == "found"
    assert await stage(elsewhere) == "not stored"
    assert await stage(old) == "superseded"
    assert await stage(expired) == "expired"
    assert await stage(tagged, namespaces=["default"]) == "filtered"
    assert await stage(copy, limit=2) == "near-copy"
    assert await stage(far, weights={"vector": 0, "graph": 0}) == "not a candidate"
    assert await stage(far, limit=1) == "below the cut"
    assert await stage(far, min_score=1e6) == "below the cut"
    (episode,) = await remember(work, "zebra crossing in a dream", kind="episodic")
    assert await stage(episode, recipe="polyant") == "filtered"


async def test_a_turn_is_found_by_what_stands_beside_it(work: AsyncSpace) -> None:
    """The answer to a question holds none of its words; its neighbour does. Seeds search the plain turns."""
    turns = ["Did you book the flight to Lisbon?", "Yes, for the ninth.", "And the hotel?", "Not yet."]
    ids = await remember(work, *turns, kind="message", thread="chat")
    only_words = {"vector": 0, "graph": 0}
    found = [h.memory.id for h in await work.recall("flight Lisbon", weights=only_words)]
    assert found[0] == ids[0]
    assert ids[1] in found
    plain = await work.recall("flight Lisbon", weights=only_words, lanes={"keyword": {"context": False}})
    assert [h.memory.id for h in plain] == [ids[0]]


async def test_window_brings_the_neighbours(work: AsyncSpace) -> None:
    """In the thread's order, cut at its ends, in whatever order they were remembered."""
    ids = {}
    for place in (3, 1, 2, 5, 4):
        ids[place] = (await work.remember(f"turn number{place}", thread="t", place=place)).memory.id
    hit = (await work.recall("number2", window=2, weights={"vector": 0, "graph": 0}))[0]
    assert hit.memory.id == ids[2]
    assert [m.place for m in hit.before] == [1]
    assert [m.place for m in hit.after] == [3, 4]


async def test_a_window_shows_only_what_one_may_see(work: AsyncSpace) -> None:
    """Not the same thread's name in another namespace, not what was superseded; other kinds and tags, yes."""
    (old,) = await remember(work, "we meet at nine", thread="t", place=1)
    (_,) = await remember(work, "where do we meet?", thread="t", place=2, kind="message", tags=["asked"])
    await remember(work, "the salary list", thread="t", place=3, namespace="hr")
    await remember(work, "at the station", thread="t", place=4)
    await work.supersede(old, "we meet at ten")
    hit = (await work.recall("where do we meet?", window=2, tags=["asked"], namespaces=["default"]))[0]
    assert [m.text for m in (*hit.before, *hit.after)] == ["at the station"]


async def test_near_copies_do_not_crowd_the_top(work: AsyncSpace) -> None:
    """The same sentence in ten spellings takes one place, unless there is nothing else."""
    copies = [f"Lunch is at noon in the garden{mark}" for mark in ("", ".", "!", "?", " .", " !", " ?")]
    await remember(work, *copies)
    (other,) = await remember(work, "Lunch was late on Tuesday")
    found = [h.memory.id for h in await work.recall("when is lunch", limit=2)]
    assert other in found
    assert len(await work.recall("when is lunch", limit=8)) == 8


async def test_every_value_of_a_recipe_can_be_overridden(work: AsyncSpace) -> None:
    """Weights, fanout, fusion, limit and floors; and a recipe of one's own."""
    await remember(work, "alpha beta", "alpha", "beta")
    one = await work.recall("alpha beta", fanout=1, weights={"graph": 0})
    assert [report.candidates for report in one.lanes if report.status == "ok"] == [1, 1]
    rrf = await work.recall("alpha beta", fusion={"method": "rrf", "k": 9}, weights={"graph": 0}, limit=1)
    assert rrf[0].score <= 2 / 10
    assert len(await work.recall("alpha beta", recipe="drobek", kinds=["fact"], min_score=0.9)) == 0
    own = Recipe("mine", lanes=(Lane("words", "keyword"),))
    assert [report.lane for report in (await work.recall("alpha", recipe=own)).lanes] == ["words"]


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        ("", {}, "the query is empty"),
        ("x" * 8193, {}, "8,193 bytes"),
        ("a\x00", {}, "NUL"),
        ("\ud800", {}, "surrogate"),
        ("x", {"limit": 0}, "limit is 0"),
        ("x", {"limit": -1}, "limit is -1"),
        ("x", {"limit": 10**9}, "from 1 to 100"),
        ("x", {"recipe": "best"}, "the recipe 'best' does not exist"),
        ("x", {"weights": {"vector": float("nan")}}, "weight"),
        ("x", {"weights": {"vector": -1}}, "weight"),
        ("x", {"weights": {"smell": 1}}, "no lane 'smell'"),
        ("x", {"weights": {"vector": 0, "keyword": 0, "graph": 0}}, "every lane has weight 0"),
        ("x", {"colour": "red"}, "no setting 'colour'"),
        ("x", {"lanes": {"vector": {"volume": 11}}}, "no setting 'volume'"),
        ("x", {"lanes": {"graph": {"depth": 9}}}, "depth"),
        ("x", {"lanes": {"vector": {"ef_search": 0}}}, "ef_search"),
        ("x", {"ef_search": 0}, "ef_search of lane 'vector' is 0"),
        ("x", {"ef_search": 201}, "1 to 200"),
        ("x", {"recipe": "drobek", "lanes": {"vector": {"ef_search": "x"}}}, "ef_search"),
        ("x", {"fanout": 0}, "fanout"),
        ("x", {"window": -1}, "window"),
        ("x", {"kinds": "fact"}, "list"),
        ("x", {"since": "soon"}, "since"),
        ("x", {"min_quality": 2}, "min_quality"),
        ("x", {"vector": [1, 2]}, "dimensions"),
        ("x", {"namespaces": [str(n) for n in range(17)]}, "17 namespaces"),
        ("x", {"recipe": []}, "does not exist: use one of"),
        ("x", {"lanes": {"vector": 5}}, "mapping"),
        ("x", {"lanes": {"vector": {"weight": float("nan")}}}, "weight"),
        ("x", {"lanes": {"vector": {"weight": -5}}}, "weight"),
        ("x", {"lanes": {"vector": {"leg": "nose"}}}, "must be one of: vector, keyword, graph"),
        ("x", {"lanes": {"keyword": {"match": "some"}}}, "must be one of: any, plain, websearch"),
        ("x", {"lanes": {"keyword": {"words": "Eng'lish"}}}, "must be analyzed, or a text-search configuration"),
        ("x", {"lanes": {"keyword": {"match": "plain"}}}, "needs words such as 'simple' or 'english'"),
        ("x", {"fusion": {"method": "magic"}}, "must be one of: rrf"),
        ("x", {"fusion": {"k": -30}}, "k of the fusion"),
        ("x", {"renormalise": "yes"}, "renormalise must be True or False, not 'yes'"),
        ("x", {"diversity": {"method": "mmr", "balance": float("nan")}}, "balance"),
        ("x", {"fanout": Fanout(0)}, "fanout"),
        ("x", {"fanout": Fanout(10**9)}, "fanout"),
    ],
)
async def test_a_bad_question_gets_a_clear_sentence(
    work: AsyncSpace, query: str, options: dict[str, object], said: str
) -> None:
    """One sentence that names what was wrong; nothing is searched."""
    await work.remember("something")
    with pytest.raises(InvalidRequest, match=said):
        await work.recall(query, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ['"', "*", "NEAR(a b)", "title:x", "'; drop table memories; --", "a AND", "(", "^a", "-a", "{a b} : c", "%", "\\"],
)
async def test_query_syntax_is_only_text(work: AsyncSpace, text: str) -> None:
    """As memory, question, tag, name of a kind, namespace, thread or source: stored and found as it is."""
    made = await work.remember(
        f"about {text} here", tags=[text], kind=text, namespace=text, thread=text, source=text, title=text
    )
    for recipe in ("balanced", "polyant", "pgmemory", "novamem"):
        answer = await work.recall(f"about {text}", recipe=recipe)
        assert not answer.degraded
    found = await work.recall("about here", tags=[text], kinds=[text], namespaces=[text], source_prefix=text)
    assert [hit.memory.id for hit in found] == [made.memory.id]


async def test_a_question_of_marks_alone_finds_what_meaning_finds(work: AsyncSpace) -> None:
    """No word to look for is no error."""
    await work.remember("hello")
    assert not (await work.recall("???")).degraded


async def test_hits_are_counted_off_the_path(client: AsyncRecollect, work: AsyncSpace) -> None:
    """A recalled memory has its hits and the time of the last one, soon after."""
    (id,) = await remember(work, "counted")
    await work.recall("counted")
    await work.recall("counted")
    await work.stats()
    memory = await work.get(id)
    assert memory.hits == 2
    assert memory.last_hit_at is not None
