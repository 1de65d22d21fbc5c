"""Vectors in Postgres: how they are kept, and what is found among them whichever way it is looked for."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest

from recollect.errors import EmbeddingMismatch, InvalidRequest
from recollect.ports import VectorHits
from recollect.settings import PostgresSettings
from recollect.stores.nearest import SAMPLE, background, text_digest
from recollect.stores.postgres import vector_plan, vector_samples, vectors
from recollect.stores.postgres.bulk import MANY, Database
from recollect.stores.postgres.generations import generation, set_generation
from recollect.stores.postgres.rows import rows_of
from recollect.stores.postgres.vector_plan import FEWEST, MOST_PARTS, Walk, choose, is_clear
from recollect.types import Filter, Generation
from tests.stores.statements import record_statements
from tests.stores.vector_rows import WIDTHS, Spaces, best, clustered, opened

if TYPE_CHECKING:
    from recollect.types import Vector

ROWS = 20_000
GIVEN = clustered(ROWS, 32)
SMALL = clustered(100, 32, seed=8)
QUESTIONS = clustered(30, 32, seed=9)
SMALL_SPACE = 2


@pytest.fixture
async def spaces(pg_dsn: str, pg_schema: str) -> AsyncIterator[Spaces]:
    """A store without anything."""
    async with opened(pg_dsn, PostgresSettings(schema=pg_schema, pool_size=2)) as made:
        yield made


@pytest.fixture(scope="module")
def indexed_schema(pg_dsn: str) -> Iterator[str]:
    """A schema with a large space, a small one beside it, and an index."""
    name = "recollect_test_indexed"

    async def fill() -> None:
        async with opened(pg_dsn, PostgresSettings(schema=name)) as made:
            await made.begin(32)
            await made.fill(1, GIVEN)
            await made.fill(SMALL_SPACE, SMALL, first=ROWS + 1)
            await made.settle()

    with psycopg.connect(pg_dsn, autocommit=True) as db:
        db.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        asyncio.run(fill())
        yield name
        db.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
async def indexed(pg_dsn: str, indexed_schema: str) -> AsyncIterator[Spaces]:
    """The same, freshly opened: its first query is the first of its connection."""
    async with opened(pg_dsn, PostgresSettings(schema=indexed_schema)) as made:
        await made.learn()
        yield made


def ids(found: VectorHits) -> list[str]:
    return [hit.id for hit in found.hits]


# Generations


@pytest.mark.parametrize(
    ("dimensions", "asked", "stored"),
    [(8, "vector", "vector"), (8, "halfvec", "halfvec"), (2_000, "vector", "vector"), (2_001, "vector", "halfvec")],
)
@pytest.mark.parametrize("count", [3, 2 * MANY])
async def test_storage(spaces: Spaces, count: int, dimensions: int, asked: str, stored: str) -> None:
    """Vectors are stored as it was asked for, in half precision where pgvector could not index them otherwise; a few by
    INSERT and many by COPY.
    """
    await spaces.begin(dimensions, asked)
    assert spaces.generation.storage == stored
    given = clustered(count, dimensions)
    await spaces.fill(1, given)
    named = {f"{n:06}": vector for n, vector in enumerate(given, 1)}
    fetched = await spaces.connections.read(lambda db: spaces.search.fetch(db, 1, spaces.generation, [*named]))
    assert fetched.keys() == named.keys()
    for id, vector in named.items():
        assert fetched[id].dtype == np.float32
        assert np.allclose(fetched[id], vector, atol=1e-3 if stored == "halfvec" else 0)
    assert ids(await spaces.nearest(given[1], limit=1)) == ["000002"]


async def test_too_many_dimensions(spaces: Spaces) -> None:
    """What pgvector cannot index at all is refused with both numbers, and nothing is recorded."""
    with pytest.raises(InvalidRequest, match=r"4001 dimensions.*4000"):
        await spaces.begin(4_001)
    assert await spaces.connections.read(generation) is None


async def test_the_first_model_decides_for_all(spaces: Spaces) -> None:
    """Of two processes that name different models at once, the second is refused with both names."""
    wanted = [Generation("one", 4), Generation("other", 4)]
    answers = await asyncio.gather(
        *(spaces.connections.write(lambda db, one=one: set_generation(db, one, "vector")) for one in wanted),  # type: ignore[misc]
        return_exceptions=True,
    )
    (refused,) = [answer for answer in answers if answer is not None]
    assert isinstance(refused, EmbeddingMismatch)
    assert "one" in str(refused)
    assert "other" in str(refused)
    await spaces.learn()
    await spaces.connections.write(lambda db: set_generation(db, spaces.generation.generation, "vector"))


@pytest.mark.parametrize(
    ("dimensions", "storage"), [(3, "vector"), (384, "vector"), (385, "halfvec"), (2_000, "vector"), (4_000, "halfvec")]
)
async def test_a_page_holds_as_many_as_is_counted(spaces: Spaces, dimensions: int, storage: str) -> None:
    """The size of a table tells how many vectors it holds, also of the longest ones."""
    await spaces.begin(dimensions, storage)
    for full in (1, 2):
        await spaces.fill(full, clustered(spaces.generation.rows_per_page, dimensions), first=1_000 * full)
        pages = await spaces.run("SELECT max((ctid::text::point)[0]) + 1 FROM vectors_1")
        assert pages == [(full,)]


# What is found


@pytest.mark.parametrize("nth", WIDTHS)
async def test_filters_lose_nothing(indexed: Spaces, nth: int) -> None:
    """At every width of the filter, from the first query of a fresh connection on, the nearest ten are those of a
    comparison with all.
    """
    where = Filter(tags=(f"every {nth}",))
    kept = [set(best(GIVEN, q, nth=nth)) & set(ids(await indexed.nearest(q, where, limit=100))[:10]) for q in QUESTIONS]
    assert sum(map(len, kept)) >= 0.99 * 10 * len(QUESTIONS)


async def test_a_small_space_beside_a_large_one_loses_nothing(indexed: Spaces) -> None:
    """A space that is a small part of the index is compared as a whole."""
    for question in QUESTIONS:
        found = await indexed.nearest(question, space=SMALL_SPACE)
        assert ids(found) == best(SMALL, question, first=ROWS + 1)


async def test_scores_are_cosines(indexed: Spaces) -> None:
    """The index gives the same scores as a comparison, best first, and tells which memories are in a thread."""
    question = QUESTIONS[0]
    found = await indexed.nearest(question)
    assert found.threaded == frozenset(id for id in ids(found) if int(id) % 2 == 0)
    for hit in found.hits:
        assert math.isclose(hit.score, GIVEN[int(hit.id) - 1] @ question, abs_tol=1e-6)
    assert list(found.hits) == sorted(found.hits, key=lambda hit: (-hit.score, hit.id))


async def test_a_walk_that_brings_too_little_is_made_up_for(spaces: Spaces) -> None:
    """Where nearly all that the index holds is superseded, the few others are still found, all of them."""
    given = clustered(6_500, 8)
    await spaces.begin(8)
    await spaces.fill(1, given)
    await spaces.run("UPDATE memories SET superseded_by = 'new' WHERE row % 500 > 0")
    await spaces.settle()
    for question in clustered(5, 8, seed=3):
        assert ids(await spaces.nearest(question, limit=9)) == best(given[499:], question, 9, first=500, nth=500)


async def test_ties_at_the_limit_go_by_id(spaces: Spaces) -> None:
    """Of many that are equally near, those with the first ids are found, in whatever order they were written."""
    await spaces.begin(4)
    same = np.tile(np.array([1, 0, 0, 0], np.float32), (300, 1))
    await spaces.fill(1, same, first=500)
    await spaces.fill(1, same, first=100)
    assert ids(await spaces.nearest(same[0], limit=3)) == ["000100", "000101", "000102"]


async def test_the_nearest_to_each_are_the_same_by_the_index(indexed: Spaces, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links are the same, whether the index finds them or a comparison with all."""
    some = [f"{row:06}" for row in range(1, 101)]
    compared = await indexed.nearest_to(some, 3)
    monkeypatch.setattr(vectors, "LINKED_EXACTLY", 0)
    walked = await indexed.nearest_to(some, 3)
    assert list(compared) == sorted(walked)
    assert all(id not in {hit.id for hit in hits} for id, hits in walked.items())
    same = sum(len({hit.id for hit in compared[id]} & {hit.id for hit in walked[id]}) for id in some)
    assert same >= 0.99 * 3 * len(some)


# The way there


def test_the_way_depends_on_how_much_passes() -> None:
    """Few vectors are compared, a large part of the index is walked, a small part of it is compared again; the effort
    is a recipe's own, or grows with what the walk passes in vain.
    """
    assert choose(FEWEST, FEWEST, 10) is None
    assert choose(50_000, 50_000, 100) == Walk(effort=300, part=270, parts=3)
    assert choose(100_000, 100_000, 30, 64) == Walk(effort=64, part=30, parts=1)
    assert choose(100_000, 200_000, 100) == Walk(effort=667, part=300, parts=3)
    assert choose(100_000, 1_000_000, 100) == Walk(effort=834, part=300, parts=3, most=53_333)
    assert choose(20_000, 1_000_000, 100) is None


def test_a_walk_is_relied_on_once_the_nearest_stand_out() -> None:
    """The tenth, or the last if fewer are wanted, is compared with the last that the walk came by."""
    assert is_clear([0.9] * 10 + [0.88])
    assert not is_clear([0.9] * 10 + [0.89])
    assert is_clear([1.0] * 10)
    assert not is_clear([0.9] * 9)


@pytest.mark.parametrize(("clearly", "parts"), [(vector_plan.CLEARLY, 1), (1_000, MOST_PARTS)])
async def test_a_walk_goes_on_until_it_can_be_relied_on(
    indexed: Spaces, monkeypatch: pytest.MonkeyPatch, clearly: float, parts: int
) -> None:
    """A question amid the vectors is answered by the first part; where nothing stands out there are more, to an end."""
    monkeypatch.setattr(vector_plan, "CLEARLY", clearly)
    sent = record_statements(monkeypatch)
    assert ids(await indexed.nearest(QUESTIONS[0], limit=20)) == best(GIVEN, QUESTIONS[0], 20)
    assert sum("FETCH" in one.sql for one in sent) == parts


async def test_what_is_asked_for_is_set_for_one_transaction(indexed: Spaces, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe's effort reaches the index as it is, and is gone with the transaction."""
    sent = record_statements(monkeypatch)
    await indexed.nearest(QUESTIONS[0], ef_search=64)
    (setting,) = [statement.sql for statement in sent if "ef_search" in statement.sql]
    assert "SET LOCAL hnsw.ef_search = 64;" in setting
    assert "SET LOCAL hnsw.iterative_scan = relaxed_order;" in setting
    shown = await indexed.connections.read(lambda db: rows_of(db, "SHOW enable_sort"))
    assert shown == [("on",)]


async def test_ef_search_holds_in_the_transaction_of_a_walk_alone(indexed: Spaces) -> None:
    """The server says so itself. Where all are compared, nothing is set, and the answer is the same."""

    async def searched(db: Database, space: int, ef_search: int) -> tuple[VectorHits, str]:
        found = await indexed.search.search(db, space, indexed.generation, QUESTIONS[0], Filter(), 10, ef_search)
        ((shown,),) = await rows_of(db, "SHOW hnsw.ef_search")
        return found, shown

    _, walked = await indexed.connections.read(lambda db: searched(db, 1, 123), space=1)
    assert walked == "123"
    few, compared = await indexed.connections.read(lambda db: searched(db, SMALL_SPACE, 123), space=SMALL_SPACE)
    assert compared != "123"
    assert few == await indexed.nearest(QUESTIONS[0], space=SMALL_SPACE)


# The space at large


def lowest(rows: Iterable[int]) -> list[int]:
    """Those whose texts have the lowest digests, by the rule of all stores."""
    return sorted(rows, key=lambda row: text_digest("", f"text {row}"))[:SAMPLE]


async def test_the_background_is_told_by_the_lowest_digests(indexed: Spaces) -> None:
    """As the other store takes them, so that both give the same answers."""
    sample = GIVEN[[row - 1 for row in lowest(range(1, ROWS + 1))]]
    assert (await indexed.nearest(QUESTIONS[0])).background == background(sample, QUESTIONS[0], ROWS)


async def test_the_background_follows_the_space(spaces: Spaces) -> None:
    """With each change of it: what was written, replaced, or removed."""
    given = clustered(910, 8)
    await spaces.begin(8)
    known: dict[int, Vector] = {}

    async def follows() -> bool:
        sample = np.array([known[row] for row in lowest(known)])
        return (await spaces.nearest(given[0])).background == background(sample, given[0], len(known))

    for first, last in ((0, 10), (10, 11), (11, 255), (255, 257), (257, 900), (900, 905), (905, 910)):
        await spaces.fill(1, given[first:last], first=first + 1)
        known |= zip(range(first + 1, last + 1), given[first:last], strict=True)
        assert await follows()
    first, second = lowest(known)[:2]
    known[first] = -given[0]
    await spaces.connections.write(lambda db: vectors.put(db, 1, spaces.generation, [(first, -given[0])]), space=1)
    assert await follows()
    del known[second]
    await spaces.connections.write(lambda db: forget(db, second), space=1)
    assert await follows()


async def forget(db: Database, row: int) -> None:
    await db.execute("DELETE FROM memories WHERE space = 1 AND row = %s", (row,))
    await db.execute("INSERT INTO sizes (space, memories, length, changes) VALUES (1, -1, 0, 1)")


async def test_a_digest_is_the_same_in_python_and_in_postgres(spaces: Spaces) -> None:
    """Whatever the text is made of."""
    for title, text in (("", "plain"), ("Title", "a\\nb \\000 \n"), ("ßü", "日本語 🙂"), ("", "x" * 100_000)):
        statement = partial(rows_of, statement="SELECT text_digest(%(title)s, %(text)s)", title=title, text=text)
        ((found,),) = await spaces.connections.read(statement)
        assert found == text_digest(title, text)


async def test_many_who_ask_at_once_take_one_sample(spaces: Spaces, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that begins with a crowd reads a space's sample once, not once for each of the crowd."""
    await spaces.begin(4)
    await spaces.fill(1, np.eye(4, dtype=np.float32))
    taken = []

    async def counted(*asked: Any) -> vector_samples.Sample:
        taken.append(asked)
        return await take(*asked)

    take = vector_samples._take
    monkeypatch.setattr(vector_samples, "_take", counted)
    answers = await asyncio.gather(*(spaces.nearest(one) for one in np.eye(4, dtype=np.float32)))
    assert [answer.hits[0].id for answer in answers] == [f"{n:06d}" for n in range(1, 5)]
    assert len(taken) == 1
