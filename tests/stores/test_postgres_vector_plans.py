"""How Postgres goes about the search for vectors: by the index where that was chosen, and only there, whether it has
statistics yet or not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from recollect.settings import PostgresSettings
from recollect.stores.postgres import vectors
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.connections import Connections
from recollect.stores.postgres.rows import rows_of
from recollect.stores.postgres.vector_index import Limits
from recollect.types import Filter
from tests.stores.statements import Statement, record_statements
from tests.stores.vector_rows import Spaces, best, clustered, opened

ROWS = 50_000
INDEX = "vectors_1_hnsw"
QUESTION = clustered(1, 8, seed=2)[0]
NEVER = Limits(index_rows=10**9)
FILTERS = {
    "none": Filter(),
    "tag": Filter(tags=("every 1",)),
    "all": Filter(("fact",), ("default",), ("every 1",), "", None, min_quality=0.5),
}


@pytest.fixture(scope="module")
def schema(pg_dsn: str) -> Iterator[str]:
    """A schema with a large space, a small one beside it, and an index. Nobody has analysed anything in it."""
    name = "recollect_test_vector_plans"

    async def fill() -> None:
        async with opened(pg_dsn, PostgresSettings(schema=name), NEVER) as made:
            await made.begin(8)
            for table in ("memories", "tags", "vectors_1"):
                await made.run(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
            await made.fill(1, clustered(ROWS, 8))
            await made.fill(2, clustered(100, 8, seed=8), first=ROWS + 1)
            await made.run(vectors.Q["create_index"].format(index=INDEX, table="vectors_1", storage="vector"))

    with psycopg.connect(pg_dsn, autocommit=True) as db:
        db.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        asyncio.run(fill())
        yield name
        db.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
async def spaces(pg_dsn: str, schema: str) -> AsyncIterator[Spaces]:
    async with opened(pg_dsn, PostgresSettings(schema=schema), NEVER) as made:
        await made.learn()
        yield made


@pytest.fixture(scope="module", params=["fresh", "analysed"])
def statistics(request: pytest.FixtureRequest, pg_dsn: str, schema: str) -> None:
    """First without, then with what Postgres learns about tables."""
    if request.param == "analysed":
        with psycopg.connect(pg_dsn, autocommit=True) as db:
            db.execute(f"SET search_path = {schema}")
            db.execute(vectors.Q["analyze"].format(table="vectors_1"))


async def explained(spaces: Spaces, sent: list[Statement], space: int = 1, has: str = "<=>") -> dict[str, Any]:
    """The plan of the last search that was sent, with what was set before it."""
    search = next(one for one in reversed(sent) if has in one.sql)
    settings = next(one for one in reversed(sent) if one.sql.startswith("SET LOCAL"))

    async def work(db: Database) -> Any:
        await db.execute(settings.sql)
        return await rows_of(db, f"EXPLAIN (FORMAT JSON) {search.sql}", **search.values)

    (((plan,),),) = await spaces.connections.read(work, space=space)
    return dict(plan["Plan"])


def scans(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Every node that reads a table."""
    below = [node for one in plan.get("Plans", ()) for node in scans(one)]
    return [plan, *below] if "Relation Name" in plan else below


def uses_index(plan: dict[str, Any]) -> bool:
    return INDEX in json.dumps(plan)


@pytest.mark.usefixtures("statistics")
@pytest.mark.parametrize("name", FILTERS)
async def test_a_large_space_is_walked(spaces: Spaces, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index gives the vectors by nearness, and each memory is looked up by its row, not through the filter."""
    sent = record_statements(monkeypatch)
    await spaces.nearest(QUESTION, FILTERS[name], limit=100)
    walked, *filtered = scans(await explained(spaces, sent))
    assert walked["Index Name"] == INDEX
    assert "<=>" in walked["Order By"]
    assert len(filtered) == (0 if name == "none" else 1)
    for looked_up in (*filtered, *scans(await explained(spaces, sent, has="unnest"))):
        assert looked_up["Index Name"] == "memories_pkey"
        assert "row" in looked_up["Index Cond"]


@pytest.mark.usefixtures("statistics")
async def test_a_sample_is_read_from_the_index_of_digests(spaces: Spaces, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more of a large space is read than is in the sample, and nothing is sorted."""
    sent = record_statements(monkeypatch)
    await spaces.nearest(QUESTION)
    at = next(number for number, one in enumerate(sent) if "text_digest" in one.sql)
    plan = await explained(spaces, sent[: at + 1], has="text_digest")
    assert [node["Index Name"] for node in scans(plan)] == ["memories_by_digest", "vectors_1_pkey"]
    assert "Sort" not in json.dumps(plan)


@pytest.mark.usefixtures("statistics")
@pytest.mark.parametrize("where", [Filter(), Filter(tags=("every 100",))])
async def test_what_is_compared_is_looked_up(spaces: Spaces, where: Filter, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small space, and a narrow filter in a large one, read the vectors of the rows that pass, and no others."""
    space = 1 if where.tags else 2
    sent = record_statements(monkeypatch)
    await spaces.nearest(QUESTION, where, space=space)
    plan = await explained(spaces, sent, space)
    assert not uses_index(plan)
    (compared,) = [node for node in scans(plan) if node["Relation Name"] == "vectors_1"]
    assert compared["Index Name"] == "vectors_1_pkey"
    assert "row" in compared["Index Cond"]
    assert all(node["Node Type"] != "Seq Scan" for node in scans(plan))


@pytest.mark.usefixtures("statistics")
async def test_links_of_a_large_space_are_walked(spaces: Spaces, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest to each of many are found by the index, too."""
    monkeypatch.setattr(vectors, "LINKED_EXACTLY", 0)
    sent = record_statements(monkeypatch)
    await spaces.nearest_to([f"{row:06}" for row in range(1, 201)], 3)
    (walked,) = [node for node in scans(await explained(spaces, sent)) if node.get("Index Name") == INDEX]
    assert "<=>" in walked["Order By"]


async def test_row_security_leaves_the_index_in_use(
    pg_role: str, pg_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the database keeping spaces apart, an index is built and walked as without."""
    with psycopg.connect(pg_database, autocommit=True) as db:
        db.execute("CREATE EXTENSION vector")
        db.execute(f"CREATE SCHEMA recollect AUTHORIZATION {pg_role}")
    dsn = make_conninfo(pg_database, user=pg_role, password=pg_role)
    await Connections(dsn, PostgresSettings()).migrate(dry_run=False, row_security=True)
    given = clustered(6_000, 8)
    async with opened(dsn, PostgresSettings()) as secured:
        await secured.begin(8)
        await secured.fill(1, given)
        await secured.settle()
        sent = record_statements(monkeypatch)
        found = await secured.nearest(QUESTION)
        plan = await explained(secured, sent)
    assert uses_index(plan)
    assert [hit.id for hit in found.hits] == best(given, QUESTION)
