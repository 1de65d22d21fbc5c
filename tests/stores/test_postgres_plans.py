"""How Postgres goes about the store's hot statements: through an index, whether it has statistics yet or not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from recollect.ranking.paths import LINKS_PER_MEMORY, LINKS_PER_STEP
from recollect.stores.named_sql import read
from recollect.stores.postgres.filters import rows_clause, rows_query, where_clause
from recollect.stores.postgres.graph import Q as GRAPH
from recollect.stores.postgres.rows import Q as RECORDS
from recollect.types import Filter

NOW = datetime(2024, 5, 3, tzinfo=UTC)
ROWS = 20_000
FILTERS = {
    "none": Filter(now=NOW),
    "kinds": Filter(kinds=("kind 7",), now=NOW),
    "tags": Filter(tags=("tag 7", "all"), now=NOW),
    "source": Filter(source_prefix="source 77", now=NOW),
    "thread": Filter(thread="thread 7", now=NOW),
    "times": Filter(since=NOW, until=NOW, now=NOW),
    "all": Filter(("kind 7",), ("default",), ("tag 7",), "source", "thread 7", NOW, NOW, 0.5, now=NOW),
}
FILL = f"""
INSERT INTO spaces (name) VALUES ('large'), ('small');
INSERT INTO memories (
    space, row, id, hash, namespace, kind, text, title, tags, source, thread, place, metadata, created_at, updated_at,
    superseded_by, embedding
)
SELECT 1, n, 'id ' || n, sha256(n::text::bytea), 'default', 'kind ' || n % 40, 'text', '',
       ARRAY['all', 'tag ' || n % 100], 'source ' || n, 'thread ' || n % 50, n, '{{}}', now(), now(),
       CASE WHEN n % 10 = 0 THEN 'id ' || n + 1 END, CASE WHEN n % 1000 = 0 THEN 'pending' ELSE 'ready' END
FROM generate_series(1, {ROWS}) AS n;
INSERT INTO tags SELECT space, tag, row FROM memories, unnest(tags) AS tag;
INSERT INTO hits (space, row, hits, last_hit_at) SELECT space, row, 1, now() FROM memories;
INSERT INTO unlinked SELECT space, row FROM memories;
INSERT INTO edges SELECT 1, n, 1 + n * 7919 % {ROWS}, 'similar', 0.9 FROM generate_series(1, {ROWS}) AS n;
INSERT INTO edges SELECT 1, n, 1, 'hub', 0.5 FROM generate_series(2, {ROWS}) AS n
"""
SOME = [f"id {number}" for number in range(1, 16)]
MANY = [f"id {number}" for number in range(1, 1001)]
VALUES: dict[str, Any] = {
    "space": 1, "ids": MANY, "hashes": [id.encode() for id in MANY], "rows": [*range(1, 1001)], "now": NOW,
    "reach": 2, "limit": 200, "id": "id 5", "hash": b"5", "after": "id 5", "row": 5, "old": "id 5", "new": "id 6",
    "counts": [1] * len(MANY), "namespaces": ["default"], "threads": ["thread 7"], "seeds": SOME, "source": "id 5",
    "target": "id 6", "relation": "similar", "depth": 3, "per_step": LINKS_PER_STEP, "per_memory": LINKS_PER_MEMORY,
}  # fmt: skip


@pytest.fixture(scope="module")
def schema(pg_dsn: str) -> Iterator[psycopg.Connection]:
    """A store with one large space, in a schema that nobody analyses."""
    name = f"recollect_plans_{os.getpid()}"
    with psycopg.connect(pg_dsn, autocommit=True, prepare_threshold=None) as db:
        db.execute(f"CREATE SCHEMA {name}")
        db.execute(f"SET search_path = {name}")
        db.execute("SET jit = off")
        db.execute(read("recollect.stores.postgres.store", "schema.sql"))
        for (table,) in db.execute(
            f"SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = '{name}'::regnamespace"
        ).fetchall():
            db.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        db.execute(FILL)
        yield db
        db.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def analysed(schema: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """The same with statistics."""
    with schema.transaction(force_rollback=True):
        schema.execute("ANALYZE memories, tags, hits, unlinked, edges")
        yield schema


@pytest.fixture(params=["schema", "analysed"])
def db(request: pytest.FixtureRequest) -> psycopg.Connection:
    """Without and with statistics."""
    connection: psycopg.Connection = request.getfixturevalue(request.param)
    return connection


def plan(
    db: psycopg.Connection, sql: str, values: dict[str, Any] = VALUES, *, run: bool = False
) -> list[dict[str, Any]]:
    """The steps of a plan."""
    options = "ANALYZE, TIMING off, FORMAT json" if run else "FORMAT json"
    ((found,),) = db.execute(f"EXPLAIN ({options}) {sql}", values).fetchall()
    return list(_steps((found if isinstance(found, list) else json.loads(found))[0]["Plan"]))


def _steps(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield step
    for part in step.get("Plans", ()):
        yield from _steps(part)


def indexes(steps: list[dict[str, Any]]) -> set[str]:
    return {step["Index Name"] for step in steps if "Index Name" in step}


def read_through(steps: list[dict[str, Any]]) -> list[str]:
    """The tables that are read from end to end."""
    return [step["Relation Name"] for step in steps if step["Node Type"] == "Seq Scan"]


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("memories", "memories_space_id_key"),
        ("changing", "memories_space_id_key"),
        ("copies", "memories_space_hash_key"),
        ("copies", "memories_space_id_key"),
        ("originals", "memories_space_hash_key"),
        ("hold_originals", "memories_space_id_key"),
        ("ids_by_hash", "memories_space_hash_key"),
        ("row_numbers", "memories_space_id_key"),
        ("release_expired", "memories_space_hash_key"),
        ("threads", "memories_space_id_key"),
        ("forgetting", "memories_space_id_key"),
        ("delete_memories", "memories_pkey"),
        ("delete_tags", "tags_by_row"),
        ("supersede", "memories_space_id_key"),
        ("successors", "memories_space_id_key"),
        ("history", "memories_by_successor"),
        ("history", "memories_space_id_key"),
        ("embedding", "memories_space_id_key"),
        ("set_ready", "memories_pkey"),
        ("set_failed", "memories_pkey"),
        ("pending", "memories_pending"),
        ("unlinked", "memories_pkey"),
        ("marks", "unlinked_pkey"),
        ("mark_hits", "memories_space_id_key"),
        ("mark_used", "memories_space_id_key"),
    ],
)
def test_records(db: psycopg.Connection, statement: str, index: str) -> None:
    """Looking memories up, a thousand at once, takes the index made for it; no table is read through."""
    steps = plan(db, RECORDS[statement])
    assert index in indexes(steps)
    assert not read_through(steps)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("hold_ends", "memories_space_id_key"),
        ("mark_linked", "unlinked_pkey"),
        ("delete_relation", "edges_by_source"),
        ("unlink_others", "edges_by_target"),
        ("nearest_of", "edges_by_source"),
        ("weakest", "edges_by_source"),
        ("waiting_among", "unlinked_pkey"),
        ("edges_of", "edges_by_target"),
    ],
)
def test_links(db: psycopg.Connection, statement: str, index: str) -> None:
    """Links are found from either end through an index."""
    steps = plan(db, GRAPH[statement])
    assert index in indexes(steps)
    assert not read_through(steps)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (RECORDS["last_places"], "memories_by_thread"),
        (RECORDS["beside"], "memories_by_thread"),
        (GRAPH["unlink"], "edges_pkey"),
    ],
)
def test_with_statistics(analysed: psycopg.Connection, statement: str, index: str) -> None:
    """Once Postgres knows how large spaces are, it goes along a thread by its index, and to one link of a hub by its
    key.
    """
    steps = plan(analysed, statement)
    assert index in indexes(steps)
    assert not {"Sort", "Seq Scan"} & {step["Node Type"] for step in steps}


def test_all_links_are_read_in_order(db: psycopg.Connection) -> None:
    """A page of links goes along the primary key."""
    steps = plan(db, GRAPH["edges_after"], VALUES | {"source": 7, "target": 0, "relation": ""})
    assert "edges_pkey" in indexes(steps)
    assert not read_through(steps)


@pytest.mark.parametrize("statement", ["neighbours", "walk"])
@pytest.mark.parametrize("name", FILTERS)
def test_a_hub_is_not_read_through(db: psycopg.Connection, statement: str, name: str) -> None:
    """A walk that begins at a memory with thousands of links reads no more of them than it follows, and looks up what
    it reaches by row, whatever is filtered.
    """
    condition, values = where_clause(1, FILTERS[name])
    steps = plan(db, GRAPH[statement].format(where=condition), VALUES | values | {"seeds": ["id 1"]}, run=True)
    links = [step for step in steps if step.get("Relation Name") == "edges"]
    assert {step["Index Name"] for step in links} == {"edges_by_source", "edges_by_target"}
    assert all(step["Actual Rows"] <= LINKS_PER_STEP for step in links)
    assert "memories_pkey" in indexes(steps)
    assert not read_through(steps)


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_does_not_divert_from_ids(db: psycopg.Connection, name: str) -> None:
    """Memories that are asked for by id are looked up by it, whatever is filtered besides."""
    condition, values = where_clause(1, FILTERS[name])
    steps = plan(db, RECORDS["visible"].format(where=condition), VALUES | values | {"ids": SOME})
    assert not read_through(steps)


def test_a_list_needs_no_sorting(analysed: psycopg.Connection) -> None:
    """An unfiltered list goes along the ids, and the hits of a page are looked up row by row."""
    condition, values = rows_clause(1, FILTERS["none"])
    for statement in ("page", "newest_page", "newest_page_after"):
        steps = plan(analysed, RECORDS[statement].format(where=condition), VALUES | values)
        assert indexes(steps) == {"memories_space_id_key", "hits_pkey"}
        assert "Sort" not in [step["Node Type"] for step in steps]


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("kinds", "memories_by_kind"),
        ("tags", "tags_pkey"),
        ("source", "memories_by_source"),
        ("thread", "memories_by_thread"),
        ("times", "memories_by_time"),
    ],
)
def test_a_filter_is_its_own_way_in(db: psycopg.Connection, name: str, index: str) -> None:
    """All rows that pass a filter are found through the filter's own index."""
    sql, values = rows_query(1, FILTERS[name])
    assert index in indexes(plan(db, sql, values))
