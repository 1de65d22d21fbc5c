"""How SQLite goes about the store's hot statements: through an index, whatever the filter."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import apsw
import pytest

from recollect.stores.named_sql import load, read
from recollect.stores.sqlite.rows import rows_query, where_clause
from recollect.types import Filter

RECORDS, GRAPH, LEDGER = (
    load("recollect.stores.sqlite.store", "records.sql"),
    load("recollect.stores.sqlite.store", "graph.sql"),
    load("recollect.stores.sqlite.store", "ledger.sql"),
)
NOW = datetime(2024, 5, 3, tzinfo=UTC)
FILTERS = {
    "none": Filter(now=NOW),
    "kinds": Filter(kinds=("a", "b"), now=NOW),
    "namespaces": Filter(namespaces=("a", "b"), now=NOW),
    "tags": Filter(tags=("a", "b"), now=NOW),
    "source": Filter(source_prefix="a", now=NOW),
    "thread": Filter(thread="a", now=NOW),
    "times": Filter(since=NOW, until=NOW, now=NOW),
    "all": Filter(("a",), ("b",), ("c",), "d", "e", NOW, NOW, 0.5, now=NOW),
}


@pytest.fixture(scope="module")
def db() -> apsw.Connection:
    db = apsw.Connection(":memory:")
    db.execute(read("recollect.stores.sqlite.store", "schema.sql"))
    return db


def plan(db: apsw.Connection, sql: str) -> list[str]:
    """What SQLite does, step by step."""
    names = re.findall(r":(\w+)", sql)
    parameters = set(re.findall(r"\?\d", sql)) or re.findall(r"\?", sql)
    values = dict.fromkeys(names) if names else (None,) * len(parameters)
    return [detail for _, _, _, detail in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


@pytest.mark.parametrize(
    ("statement", "step"),
    [
        ("memories", "SEARCH m USING INDEX sqlite_autoindex_memories_1 (space=? AND id=?)"),
        ("row_numbers", "SEARCH m USING COVERING INDEX sqlite_autoindex_memories_1 (space=? AND id=?)"),
        ("ids_by_hash", "SEARCH m USING INDEX sqlite_autoindex_memories_2 (space=? AND hash=?)"),
        (
            "last_place",
            "SEARCH memories USING COVERING INDEX memories_by_thread (space=? AND thread=? AND namespace=?)",
        ),
        ("beside", "SEARCH n USING INDEX memories_by_thread (space=? AND thread=? AND namespace=? AND place<?)"),
        ("beside", "SEARCH n USING INDEX memories_by_thread (space=? AND thread=? AND namespace=? AND place>?)"),
        ("history", "SEARCH m USING INDEX memories_by_successor (space=? AND superseded_by=?)"),
        ("history", "SEARCH m USING INDEX sqlite_autoindex_memories_1 (space=? AND id=?)"),
        ("pending", "SEARCH memories USING INDEX memories_pending (space=?)"),
        ("unlinked", "SEARCH memories USING INDEX memories_unlinked (space=?)"),
        ("mark_hits", "SEARCH memories USING INDEX sqlite_autoindex_memories_1 (space=? AND id=?)"),
        ("mark_used", "SEARCH memories USING INDEX sqlite_autoindex_memories_1 (space=? AND id=?)"),
        ("delete_memories", "SEARCH memories USING INTEGER PRIMARY KEY (rowid=?)"),
        ("delete_tags", "SEARCH tags USING PRIMARY KEY (space=? AND tag=? AND row=?)"),
    ],
)
def test_records(db: apsw.Connection, statement: str, step: str) -> None:
    """Looking memories up takes the index made for it; no table is read through."""
    steps = plan(db, RECORDS[statement])
    assert step in steps
    assert not [found for found in steps if found in ("SCAN memories", "SCAN m", "SCAN n", "SCAN tags")]


@pytest.mark.parametrize(
    ("statement", "steps"),
    [
        ("links_of", ["COVERING INDEX edges_by_source (space=? AND source=?)", "COVERING INDEX edges_by_target"]),
        ("edges_after", ["PRIMARY KEY (space=? AND (source,target,relation)>(?,?,?))"]),
        ("edges_of", ["(space=? AND source=?)", "INDEX edges_by_target (space=? AND target=?)"]),
        ("delete_from", ["(space=? AND source=?)"]),
        ("delete_to", ["INDEX edges_by_target (space=? AND target=?)"]),
    ],
)
def test_links(db: apsw.Connection, statement: str, steps: list[str]) -> None:
    """Links are found from either end through an index."""
    found = plan(db, GRAPH[statement])
    assert all(any(step in detail for detail in found) for step in steps), found


@pytest.mark.parametrize(
    ("statement", "steps"),
    [
        ("count_recalls", ["SEARCH spaces USING INTEGER PRIMARY KEY (rowid=?)"]),
        ("count_legs", ["SEARCH spaces USING INTEGER PRIMARY KEY (rowid=?)"]),
        (
            "usage",
            ["SEARCH u USING PRIMARY KEY (space=? AND hour>?)", "SEARCH l USING PRIMARY KEY (space=? AND hour=?)"],
        ),
        ("set_quality", ["SEARCH memories USING INDEX sqlite_autoindex_memories_1 (space=? AND id=?)"]),
    ],
)
def test_usage(db: apsw.Connection, statement: str, steps: list[str]) -> None:
    """Counting and scoring read no more than they change, and the hours come in their order without sorting."""
    found = plan(db, {**RECORDS, **LEDGER}[statement])
    assert all(any(detail.startswith(step) for detail in found) for step in steps), found
    assert not [detail for detail in found if detail.startswith("SCAN") or "ORDER BY" in detail]


@pytest.mark.parametrize(
    ("sql", "step"),
    [
        (LEDGER["token"], "SEARCH tokens USING PRIMARY KEY (id=?)"),
        (LEDGER["reply"], "SEARCH replies USING INDEX sqlite_autoindex_replies_1 (space=? AND key=?)"),
        (LEDGER["prune"], "SEARCH replies USING COVERING INDEX replies_by_expiry (space=? AND expires_at<?)"),
        (LEDGER["answer"], "SEARCH replies USING INDEX sqlite_autoindex_replies_1 (space=? AND key=?)"),
    ],
    ids=["token", "reply", "prune", "answer"],
)
def test_what_a_server_asks_for_each_request(db: apsw.Connection, sql: str, step: str) -> None:
    """A token and a reply are looked up, and what has expired is found in its order, however many there are."""
    found = plan(db, sql)
    assert step in found
    assert not [detail for detail in found if detail.startswith("SCAN") or "ORDER BY" in detail]


def test_digests(db: apsw.Connection) -> None:
    """Rows that tie for a link are looked up one by one, not found by reading all vectors."""
    assert plan(db, GRAPH["digests"])[-1] == "SEARCH v USING INTEGER PRIMARY KEY (rowid=?)"


@pytest.mark.parametrize("sql", [GRAPH["links_of"], RECORDS["beside"], RECORDS["pending"], RECORDS["unlinked"]])
def test_what_is_limited_is_not_sorted(db: apsw.Connection, sql: str) -> None:
    """The first few of many are read in their order, so that the many cost nothing."""
    assert "USE TEMP B-TREE FOR ORDER BY" not in plan(db, sql)


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_does_not_divert_from_ids(db: apsw.Connection, name: str) -> None:
    """Memories that are asked for by id or row are looked up by it, whatever is filtered besides."""
    condition, _ = where_clause(1, FILTERS[name])
    visible = plan(db, RECORDS["visible"].format(where=condition))
    assert visible[1].endswith("INDEX sqlite_autoindex_memories_1 (space=? AND id=?)")
    walked = plan(db, GRAPH["visible"].format(where=condition))
    assert walked[1] == "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"


def test_a_list_needs_no_sorting(db: apsw.Connection) -> None:
    """An unfiltered list goes along the ids, whether up or down."""
    condition, _ = where_clause(1, FILTERS["none"])
    for statement, part in (("page", " AND id>?"), ("newest_page", ""), ("newest_page_after", " AND id<?")):
        steps = plan(db, RECORDS[statement].format(where=condition))
        assert steps == [f"SEARCH m USING INDEX sqlite_autoindex_memories_1 (space=?{part})"]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("kinds", "SEARCH m USING INDEX memories_by_kind (space=? AND kind=?)"),
        ("tags", "SEARCH t USING PRIMARY KEY (space=? AND tag=?)"),
        ("source", "SEARCH m USING INDEX memories_by_source (space=? AND source>? AND source<?)"),
        ("thread", "SEARCH m USING INDEX memories_by_thread (space=? AND thread=?)"),
    ],
)
def test_a_filter_is_its_own_way_in(db: apsw.Connection, name: str, step: str) -> None:
    """All rows that pass a filter are found through the filter's own index."""
    sql, _ = rows_query(1, FILTERS[name])
    assert plan(db, sql)[0] == step
