"""The recipes of the five source systems, with their own worked numbers, through all of Recollect, on both stores.

Which statements they are on Postgres is in `stores/test_postgres_seeds.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import AsyncSpace, Draft, InvalidRequest, Recall
from tests.conftest import FlakyEmbedder


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each kind that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    return f"postgresql://?{urlencode(conninfo_to_dict(request.getfixturevalue('pg_database')))}"


def direction(embedder: FlakyEmbedder, *numbers: float) -> list[float]:
    return [*numbers, *[0.0] * (embedder.dimensions - len(numbers))]


def scores(answer: Recall) -> dict[str, float]:
    return {hit.memory.text: hit.score for hit in answer}


async def test_sci_first_by_meaning_and_fifth_by_words(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """1/(1+60) + 1/(5+60) = 0.0164 + 0.0154 = 0.0318; first by meaning alone 0.0164."""
    for times in (5, 4, 3, 2):
        await work.remember("Threadline " * times, kind="episodic", vector=direction(embedder, -1.0))
    await work.remember("Threadline auth bug", kind="episodic", vector=direction(embedder, 1.0))
    answer = await work.recall("Threadline", recipe="sci", vector=direction(embedder, 1.0))
    best = next(hit for hit in answer if hit.memory.text == "Threadline auth bug")
    assert [(part.lane, part.rank) for part in best.why] == [("episodic-vector", 1), ("episodic-keyword", 5)]
    assert best.score == 1 / 61 + 1 / 65
    assert round(best.score, 4) == 0.0318
    alone = await work.recall("nothing of it", recipe="sci", vector=direction(embedder, 1.0))
    assert round(alone[0].score, 4) == 0.0164


async def test_sci_ranks_each_kind_in_a_list_of_its_own(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """Three kinds, each first in its own two lists: three times 2/61."""
    for kind in ("episodic", "semantic", "identity"):
        await work.remember(f"the {kind} zebra", kind=kind, vector=direction(embedder, 1.0))
    answer = await work.recall("zebra", recipe="sci", vector=direction(embedder, 1.0))
    assert [hit.score for hit in answer] == [2 / 61] * 3


async def test_polyant_finds_facts_by_meaning_and_messages_by_words(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """The two lists are disjoint, so the best of each has 1/61, and the one found by the first lane goes first. "A
    document ranked first in a list contributes 1 / 61 ≈ 0.0164": the score itself is not rounded.
    """
    await work.remember("the user's working hours", vector=direction(embedder, 1.0))
    await work.remember("running late, opening times moved", kind="message", vector=direction(embedder, 1.0))
    answer = await work.recall("opening times", recipe="polyant", vector=direction(embedder, 1.0))
    assert [(hit.memory.kind, hit.score) for hit in answer] == [("fact", 1 / 61), ("message", 1 / 61)]
    every_word = await work.recall("opening hours", recipe="polyant", vector=direction(embedder, 1.0))
    assert [hit.memory.kind for hit in every_word] == ["fact"]
    unstemmed = await work.recall("run", recipe="polyant", vector=direction(embedder, 1.0))
    assert [hit.memory.kind for hit in unstemmed] == ["fact"]


async def test_polyant_reads_the_query_like_a_web_search(work: AsyncSpace) -> None:
    """Quotes, `or` and a minus."""
    for text in ("red car", "blue car", "red blue bike"):
        await work.remember(text, kind="message")
    only_words = {"vector": 0}

    async def found(query: str) -> set[str]:
        return set(scores(await work.recall(query, recipe="polyant", weights=only_words)))

    assert await found("red or bike") == {"red car", "red blue bike"}
    assert await found("car -red") == {"blue car"}
    assert await found('"blue bike"') == {"red blue bike"}
    assert await found("car bike") == set()


async def test_pgmemory_prefers_another_angle_to_a_third_copy(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """The source: "the fused results are re-ranked". Relevance is the fused score by its best, so
    0.7 x 61/62 - 0.3 x 1.0 = 0.39 < 0.7 x 61/64 - 0.3 x 0.0 = 0.67. Also where everything fits into the answer.
    """
    near = [direction(embedder, 1.0, 0.0), direction(embedder, 1.0, 0.03), direction(embedder, 1.0, 0.05)]
    for number, vector in enumerate(near):
        await work.remember(f"deployment procedure {number}", vector=vector)
    await work.remember("a debugging insight", vector=direction(embedder, 0.0, 0.0, 1.0))
    question = direction(embedder, 1.0, 0.0, 0.7)
    answer = await work.recall("how to ship", recipe="pgmemory", limit=2, vector=question)
    assert list(scores(answer)) == ["deployment procedure 0", "a debugging insight"]
    plain = await work.recall(
        "how to ship", recipe="pgmemory", limit=2, vector=question, diversity={"method": "mmr", "balance": 1.0}
    )
    assert list(scores(plain)) == ["deployment procedure 0", "deployment procedure 1"]
    whole = await work.recall("how to ship", recipe="pgmemory", vector=question)
    assert [hit.why[0].rank for hit in whole] == [1, 4, 2, 3]


async def test_pgmemory_answers_with_an_error_code_that_words_alone_find(
    work: AsyncSpace, embedder: FlakyEmbedder
) -> None:
    """The source: "a keyword-based search finds the exact item that mentions that precise error code", and "hybrid
    search combines both signals". However many are nearer in meaning, it is among the five.
    """
    await work.remember_many(
        Draft(f"a refused connection, seen from angle {n}", vector=direction(embedder, 1.0, n / 100)) for n in range(30)
    )
    await work.remember("ERR_CONN_REFUSED: start the daemon first", vector=direction(embedder, 0.0, 0.0, 1.0))
    answer = await work.recall("ERR_CONN_REFUSED", recipe="pgmemory", vector=direction(embedder, 1.0))
    assert len(answer) == 5
    (found,) = (hit for hit in answer if hit.memory.text.startswith("ERR_CONN_REFUSED"))
    assert [(part.lane, part.rank) for part in found.why] == [("keyword", 1)]
    by_cosine = await work.recall(
        "ERR_CONN_REFUSED", recipe="pgmemory", vector=direction(embedder, 1.0), diversity={"relevance": "cosine"}
    )
    assert not any(hit.memory.text.startswith("ERR_CONN_REFUSED") for hit in by_cosine)


async def test_pgmemory_neither_favours_nor_punishes_what_has_no_vector_yet(
    work: AsyncSpace, embedder: FlakyEmbedder
) -> None:
    """Two are equally like the first, and one waits for its vector: it keeps the place that its score gives it."""
    embedder.down = True
    await work.remember("zebra zebra", id="waiting")
    for id, vector in {"first": (1.0,), "second": (0.9, 0.4), "third": (0.9, -0.4)}.items():
        await work.remember(f"the {id} horse", id=id, vector=direction(embedder, *vector))
    for weight, order in ((0.99, "first waiting second third"), (0.9, "first second third waiting")):
        answer = await work.recall(
            "zebra", recipe="pgmemory", vector=direction(embedder, 1.0), weights={"keyword": weight}
        )
        assert [hit.memory.id for hit in answer] == order.split()


async def test_ties_go_to_the_recipes_first_lane(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """Both have 1/61, one by meaning and one by words: the order of the lanes decides, not the ids. The sources fill
    one map, list by list ("addRanks(dense.rows); addRanks(fts.rows)"), and sort it.
    """
    await work.remember("the zebra", id="a", kind="knowledge", vector=direction(embedder, -1.0))
    for n in range(30):
        await work.remember(f"a horse {n}", id=f"b{n:02}", kind="knowledge", vector=direction(embedder, 1.0, n / 100))
    answer = await work.recall("zebra", recipe="drobek", vector=direction(embedder, 1.0))
    assert [(hit.memory.id, hit.score) for hit in answer.hits[:3]] == [("b00", 1 / 61), ("a", 1 / 61), ("b01", 1 / 62)]


async def test_polyant_knowledge_finds_chunks_by_meaning_alone(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """The source: "a pure pgvector search over knowledge_chunks". No other kind, no words, five of them,
    scored by the cosine.
    """
    await work.remember("opening times", kind="fact", vector=direction(embedder, 1.0))
    await work.remember("opening times of the depot", kind="chunk", vector=direction(embedder, 0.0, 0.0, 1.0))
    near = [0.0, 0.2, 0.4, 0.6, 0.8]
    for number, aside in enumerate(near):
        await work.remember(f"the shop, page {number}", kind="chunk", vector=direction(embedder, 1.0, aside))
    answer = await work.recall("opening times", recipe="polyant_knowledge", vector=direction(embedder, 1.0))
    assert list(scores(answer)) == [f"the shop, page {number}" for number in range(5)]
    assert [hit.score for hit in answer] == pytest.approx([1 / (1 + aside**2) ** 0.5 for aside in near], abs=1e-5)


async def test_sci_searches_the_default_profile_unless_one_is_named(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """The source: "WHERE profile_id = $2". One profile is always searched, the default one where the caller names
    none. Identity belongs to all of them.
    """
    for namespace in ("default", "home"):
        for kind in ("episodic", "identity"):
            await work.remember(f"a zebra ({kind}, {namespace})", kind=kind, namespace=namespace)

    async def found(**options: Any) -> set[tuple[str, str]]:
        answer = await work.recall("zebra", recipe="sci", **options)
        return {(hit.memory.kind, hit.memory.namespace) for hit in answer}

    identity = {("identity", "default"), ("identity", "home")}
    assert await found() == {("episodic", "default")} | identity
    assert await found(namespaces=["home"]) == {("episodic", "home")} | identity
    assert await found(namespaces=["default", "home"]) == {("episodic", "default"), ("episodic", "home")} | identity


async def test_novamem_searches_all_namespaces_unless_one_is_named(work: AsyncSpace) -> None:
    """The source: "the engine fans out across every namespace the caller has visible entries in"."""
    await work.remember("a zebra", namespace="home")
    assert len(await work.recall("zebra", recipe="novamem")) == 1


async def test_drobek_boosts_a_title_that_contains_the_query(work: AsyncSpace) -> None:
    """+0.5 for the title; a title alone matches too; wildcards of LIKE are text."""
    await work.remember("deploy deploy deploy", kind="knowledge", title="Notes")
    await work.remember("see the wiki", kind="knowledge", title="How to Deploy")
    await work.remember("done", kind="knowledge", title="100%")
    await work.remember("other", kind="knowledge", title="1000")
    only_words = {"vector": 0}
    answer = await work.recall("deploy", recipe="drobek", weights=only_words)
    assert list(scores(answer)) == ["see the wiki", "deploy deploy deploy"]
    assert [hit.why[0].raw for hit in answer] == [pytest.approx(0.5), pytest.approx(0.3)]
    assert [hit.score for hit in answer] == [1 / 61, 1 / 62]
    percent = await work.recall("0%", recipe="drobek", weights=only_words)
    assert list(scores(percent)) == ["done"]


async def test_drobek_floors_on_the_fused_score_and_clamps(work: AsyncSpace) -> None:
    """A raw two-lane RRF peaks at 2/61; limit and ef_search are moved into their bounds."""
    await work.remember("deploy", kind="knowledge")
    assert len(await work.recall("deploy", recipe="drobek", min_score=2 / 61)) == 1
    assert len(await work.recall("deploy", recipe="drobek", min_score=0.0328)) == 0
    answer = await work.recall("deploy", recipe="drobek", limit=10**9, lanes={"vector": {"ef_search": 9999}})
    assert len(answer) == 1


async def test_novamem_weighs_min_max_scores(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """0.3 keyword + 0.6 vector + 0.1 graph; the best of a tier is 1.0, the weakest 0.0, an absent tier 0."""
    question = direction(embedder, 1.0)
    both = await work.remember("alpha alpha", vector=direction(embedder, 1.0))
    weak = await work.remember("alpha", vector=direction(embedder, 0.6, 0.8))
    far = await work.remember("other", vector=direction(embedder, 0.2, 0.0, 1.0))
    await work.settle()  # upkeep links a new memory once more
    for one in (both, weak, far):
        for line in [line async for line in work.export() if line.get("from") == one.memory.id]:
            await work.unlink(line["from"], line["to"])
    answer = scores(await work.recall("alpha", recipe="novamem", vector=question))
    cosine_far = 0.2 / (0.2**2 + 1) ** 0.5
    assert answer["alpha alpha"] == pytest.approx(0.3 + 0.6)
    assert answer["alpha"] == pytest.approx(0.6 * (0.6 - cosine_far) / (1 - cosine_far), abs=1e-5)
    assert answer["other"] == 0.0
    exact = {"keyword": 1, "vector": 0, "graph": 0}
    assert scores(await work.recall("alpha", recipe="novamem", weights=exact)) == {"alpha alpha": 1.0, "alpha": 0.0}
    meaning = {"vector": 1, "keyword": 0, "graph": 0}
    assert scores(await work.recall("x", recipe="novamem", weights=meaning, vector=question))["alpha alpha"] == 1.0


async def test_novamem_counts_what_points_away_as_unrelated(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """Cosines are clamped to [0, 1] before min-max, so 0.6 of 1.0 stays 0.6; a recipe with plain ones stretches them
    from the lowest, and the order is the same in both.
    """
    for text, vector in {"same": (1.0,), "near": (0.6, 0.8), "aside": (0.0, 1.0), "away": (-0.8, 0.6)}.items():
        await work.remember(text, vector=direction(embedder, *vector))
    meaning = {"vector": 1, "keyword": 0, "graph": 0}
    question = direction(embedder, 1.0)
    answer = await work.recall("x", recipe="novamem", weights=meaning, vector=question)
    assert scores(answer) == {"same": 1.0, "near": pytest.approx(0.6, abs=1e-6), "aside": 0.0, "away": 0.0}
    assert [hit.why[0].raw for hit in answer][2:] == [0.0, 0.0]
    plain = await work.recall(
        "x", recipe="novamem", weights=meaning, vector=question, lanes={"vector": {"lowest": -1.0}}
    )
    assert scores(plain)["near"] == pytest.approx((0.6 + 0.8) / 1.8, abs=1e-6)
    with pytest.raises(InvalidRequest, match="lowest of lane 'vector'"):
        await work.recall("x", recipe="novamem", lanes={"vector": {"lowest": -2}})


async def test_novamem_walks_links_by_the_product_of_their_strengths(work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """From the three nearest, best product over all paths; its best is 1.0 after min-max."""
    start = await work.remember("start", vector=direction(embedder, 1.0))
    middle = await work.remember("middle", vector=direction(embedder, 0.0, 1.0))
    end = await work.remember("end", vector=direction(embedder, 0.0, 0.0, 1.0))
    for line in [line async for line in work.export() if "from" in line]:
        await work.unlink(line["from"], line["to"])
    await work.link(start.memory.id, middle.memory.id, strength=0.5)
    await work.link(middle.memory.id, end.memory.id, strength=0.5)
    roaming = {"graph": 1, "vector": 0, "keyword": 0}
    answer = await work.recall(
        "x", recipe="novamem", weights=roaming, vector=direction(embedder, 1.0), lanes={"graph": {"seeds": 1}}
    )
    assert [(hit.memory.text, hit.why[0].raw, hit.score) for hit in answer] == [
        ("middle", 0.5, 1.0),
        ("end", 0.25, 0.0),
    ]
