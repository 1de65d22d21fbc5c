"""Filters as SQL on Postgres: what no example would show."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recollect.conformance.samples import HERE, NOW, ids, record
from recollect.stores.postgres.filters import rows_query, where_clause
from recollect.stores.postgres.store import PostgresStore
from recollect.types import Filter, Memory

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
ROW = """
SELECT 1 FROM (
    SELECT 1 AS space, %(text)s::text COLLATE "C" AS source, NULL AS superseded_by, NULL::timestamptz AS expires_at
) AS m WHERE """
SHARED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
MOMENTS = st.none() | st.sampled_from([NOW + timedelta(hours=hours) for hours in range(-1, 4)])
FILTERS = st.builds(
    Filter,
    kinds=st.sampled_from([(), ("fact",), ("fact", "message")]),
    namespaces=st.sampled_from([(), ("default",), ("default", "n")]),
    tags=st.sampled_from([(), ("x",), ("y", "x"), ("x", "z")]),
    source_prefix=st.sampled_from(["", "a", "a/", "b"]),
    thread=st.sampled_from([None, "t", "u"]),
    since=MOMENTS,
    until=MOMENTS,
    min_quality=st.sampled_from([None, 0.0, 0.5]),
    include_superseded=st.booleans(),
    include_expired=st.booleans(),
    now=st.just(NOW),
)


@pytest.fixture(scope="module")
def db(pg_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(pg_dsn, autocommit=True) as connection:
        yield connection


@SHARED
@given(prefix=TEXT, source=TEXT)
@example(prefix="\ud7ff", source="\ud7ff\ue000")
@example(prefix="\U0010ffff", source="\U0010ffff")
@example(prefix="a\U0010ffff", source="b")
@example(prefix="a\U0010ffff", source="a\U0010ffffz")
@example(prefix="a_%*[", source="a_%*[b")
@example(prefix="a" * 300, source="a" * 250 + "b" * 60)
@example(prefix="a" * 199 + "\U0010ffff" * 20, source="a" * 220)
def test_a_source_prefix_is_a_prefix(db: psycopg.Connection, prefix: str, source: str) -> None:
    """The range that stands for a prefix holds exactly the strings that begin with it."""
    for text in (source, prefix + source):
        condition, values = where_clause(1, Filter(source_prefix=prefix))
        found = db.execute(ROW + condition, {"text": text, **values}).fetchone()
        assert bool(found) == text.startswith(prefix)


@SHARED
@given(where=FILTERS)
async def test_both_ways_in_mean_the_same(pg_store: PostgresStore, where: Filter) -> None:
    """A filter that is the way in, through the table of tags, passes what it passes among rows found otherwise, and
    what it means in Python.
    """
    batch = [
        record(f"m{n:02}", f"{n}", kind=("fact", "message")[n % 2], namespace=("default", "n")[n // 2 % 2],
               tags=((), ("x",), ("x", "y"), ("y",))[n // 3 % 4], source=("", "a", "a/b", "b")[n // 5 % 4],
               thread=(None, "t", "u")[n // 4 % 3], quality=(None, 0.2, 0.7)[n // 6 % 3],
               occurred_at=(None, NOW + timedelta(hours=n % 4))[n // 7 % 2],
               expires_at=(None, NOW, NOW + timedelta(hours=1))[n // 8 % 3],
               superseded_by=(None, "other")[n // 9 % 2])
        for n in range(60)
    ]  # fmt: skip
    await pg_store.add(HERE, batch)
    listed = await ids(pg_store, where)
    every = [given.memory.id for given in batch]
    assert set(listed) == await pg_store.visible(HERE, every, where)
    assert listed == [given.memory.id for given in batch if passes(where, given.memory)]


def passes(where: Filter, memory: Memory) -> bool:
    """What `Filter` says, in Python."""
    happened = memory.occurred_at or memory.created_at
    return all(
        (
            not where.kinds or memory.kind in where.kinds,
            not where.namespaces or memory.namespace in where.namespaces,
            set(where.tags) <= set(memory.tags),
            memory.source.startswith(where.source_prefix),
            where.thread is None or memory.thread == where.thread,
            where.since is None or happened >= where.since,
            where.until is None or happened < where.until,
            where.min_quality is None or memory.quality is None or memory.quality >= where.min_quality,
            where.include_superseded or memory.superseded_by is None,
            where.include_expired or memory.expires_at is None or memory.expires_at > NOW,
        )
    )


def test_a_query_for_rows_goes_through_the_tags() -> None:
    """With tags, the first is looked up in their table, and the others are asked of each row."""
    sql, values = rows_query(7, Filter(tags=("x", "y"), now=NOW))
    assert "FROM tags" in sql
    assert (values["f_space"], values["f_tag"], values["f_tags"]) == (7, "x", ["y"])
    assert "tags" not in rows_query(7, Filter(now=NOW))[0]
