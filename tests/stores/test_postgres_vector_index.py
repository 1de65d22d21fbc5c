"""The index of vectors in Postgres: when it is built, by whom, and what happens to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from itertools import count

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import make_conninfo

from recollect.settings import PostgresSettings
from recollect.stores.postgres import vectors
from recollect.stores.postgres.rows import rows_of
from tests.stores.statements import record_statements
from tests.stores.vector_rows import QUICK, Spaces, best, clustered, opened, until

LARGE = 6_000
MORE = LARGE + 5_000
GIVEN = clustered(MORE, 8)
QUESTION = clustered(1, 8, seed=2)[0]
NEAREST = best(GIVEN[:LARGE], QUESTION)


@pytest.fixture
def settings(pg_schema: str) -> PostgresSettings:
    return PostgresSettings(schema=pg_schema, pool_size=1)


@pytest.fixture
async def spaces(pg_dsn: str, settings: PostgresSettings) -> AsyncIterator[Spaces]:
    """A store without anything, on a pool of one connection."""
    async with opened(pg_dsn, settings) as made:
        await made.begin(8)
        yield made


async def found(spaces: Spaces) -> list[str]:
    return [hit.id for hit in (await spaces.nearest(QUESTION)).hits]


async def test_the_first_search_of_a_large_space_has_it_built(spaces: Spaces) -> None:
    """The search itself does not wait for it, and finds the same before and after."""
    await spaces.fill(1, GIVEN[:LARGE])
    assert await spaces.has_none()
    assert await found(spaces) == NEAREST
    await spaces.settle()
    assert await spaces.is_indexed()
    assert await found(spaces) == NEAREST


async def test_many_small_spaces_need_none(spaces: Spaces) -> None:
    """An index that no search would use is not built, and costs no insert anything."""
    for space in range(1, 4):
        await spaces.fill(space, GIVEN[: QUICK.index_rows], first=space * LARGE)
        await spaces.nearest(QUESTION, space=space)
        await spaces.settle(space)
    assert await spaces.has_none()


async def test_two_processes_build_one(pg_dsn: str, settings: PostgresSettings, spaces: Spaces) -> None:
    """The second waits for the first, and neither fails."""
    await spaces.fill(1, GIVEN[:LARGE])
    async with opened(pg_dsn, settings) as others:
        await others.learn()
        await asyncio.gather(spaces.settle(), others.settle())
    assert await spaces.is_indexed()
    assert await found(spaces) == NEAREST


async def test_what_a_builder_left_unfinished_is_made_anew(
    pg_dsn: str, settings: PostgresSettings, spaces: Spaces
) -> None:
    """An index that is not valid is dropped and built again; no search uses it meanwhile."""
    await spaces.fill(1, GIVEN[:LARGE])
    await leave_unfinished(pg_dsn, settings.schema)
    assert await spaces.has_index()
    assert not await spaces.is_indexed()
    assert await found(spaces) == NEAREST
    await spaces.settle()
    assert await spaces.is_indexed()
    assert await found(spaces) == NEAREST


async def leave_unfinished(dsn: str, schema: str) -> None:
    """Stop the build of an index while it waits for somebody's transaction."""
    async with await psycopg.AsyncConnection.connect(dsn) as reader, await connect(dsn) as builder:
        await reader.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        await reader.execute("SELECT FROM pg_class")
        create = vectors.Q["create_index"].format(index="vectors_1_hnsw", table=f"{schema}.vectors_1", storage="vector")
        building = asyncio.create_task(builder.execute(create))
        waiting = "SELECT 1 FROM pg_stat_progress_create_index WHERE phase = 'waiting for old snapshots'"
        async with await connect(dsn) as watcher:
            await until(lambda: rows_of(watcher, waiting))
        await builder.cancel_safe()
        with suppress(errors.QueryCanceled):
            await building


async def connect(dsn: str) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(dsn, autocommit=True)


async def test_closing_leaves_the_build_to_the_server(pg_dsn: str, settings: PostgresSettings, spaces: Spaces) -> None:
    """A process that ends while it builds does not wait; the server finishes the index without it."""
    await spaces.fill(1, GIVEN)
    async with await psycopg.AsyncConnection.connect(pg_dsn) as reader:
        await reader.execute(f"SELECT FROM {settings.schema}.facts WHERE name = %s", ("no such fact",))
        async with opened(pg_dsn, settings) as leaving:
            await leaving.learn()
            await leaving.nearest(QUESTION)
            await until(spaces.has_index)
        assert not await spaces.is_indexed()
    await until(spaces.is_indexed)


async def test_a_role_that_may_not_build_searches_without(
    pg_dsn: str, pg_role: str, settings: PostgresSettings, spaces: Spaces, caplog: pytest.LogCaptureFixture
) -> None:
    """Who does not own the tables is told once, and finds all the same."""
    await spaces.fill(1, GIVEN[:LARGE])
    schema = settings.schema
    await spaces.run(f"GRANT USAGE ON SCHEMA {schema} TO {pg_role}")
    await spaces.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {pg_role}")
    try:
        async with opened(make_conninfo(pg_dsn, user=pg_role, password=pg_role), settings) as limited:
            await limited.learn()
            with caplog.at_level(logging.WARNING, "recollect"):
                for _ in range(2):
                    await limited.settle()
                    assert [hit.id for hit in (await limited.nearest(QUESTION)).hits] == NEAREST
            assert len(caplog.records) == 1
            assert "vectors_1_hnsw could not be built" in caplog.text
            await spaces.settle()
            assert [hit.id for hit in (await limited.nearest(QUESTION)).hits] == NEAREST
    finally:
        await spaces.run(f"DROP OWNED BY {pg_role}")


async def test_an_index_that_goes_takes_nothing_along(
    pg_dsn: str, settings: PostgresSettings, spaces: Spaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who believes in an index that somebody dropped a moment ago finds the same without it."""
    await spaces.fill(1, GIVEN[:LARGE])
    await spaces.settle()
    async with opened(pg_dsn, settings, replace(QUICK, state_seconds=3_600)) as trusting:
        await trusting.learn()
        await found(trusting)
        await spaces.run("DROP INDEX vectors_1_hnsw")
        sent = record_statements(monkeypatch)
        assert await found(trusting) == NEAREST
    assert any("SET LOCAL hnsw" in statement.sql for statement in sent)


# Large loads


async def test_a_large_load_is_not_slowed_by_an_index(spaces: Spaces) -> None:
    """An index that is there is dropped when a load is known to be large, and built anew after it, when Postgres also
    knows the tables.
    """
    await spaces.fill(1, GIVEN[:LARGE])
    await spaces.settle()
    async with spaces.search.loading(MORE):
        await until(spaces.has_none)
        await spaces.fill(1, GIVEN[LARGE:MORE], first=LARGE + 1)
        await spaces.nearest(QUESTION)
        await spaces.settle()
        assert await spaces.has_none()
    assert await spaces.run("SELECT 1 FROM pg_stats WHERE tablename = 'memories' AND schemaname = current_schema()")
    await spaces.settle()
    assert await spaces.is_indexed()


async def test_a_load_that_turns_out_to_be_large(spaces: Spaces) -> None:
    """Where nobody says how much will come, what has come decides."""
    await spaces.fill(1, GIVEN[:LARGE])
    await spaces.settle()
    numbers = count(LARGE + 1, 500)

    async def outgrown() -> bool:
        await spaces.fill(1, GIVEN[:500], first=next(numbers))
        return await spaces.has_none()

    async with spaces.search.loading(0):
        await until(outgrown)
        assert await spaces.has_none()


async def test_a_small_load_leaves_the_index(spaces: Spaces) -> None:
    """A few memories more are put in one by one."""
    await spaces.fill(1, GIVEN[:LARGE])
    await spaces.settle()
    async with spaces.search.loading(100):
        await spaces.fill(1, GIVEN[LARGE : LARGE + 100], first=LARGE + 1)
    assert await spaces.is_indexed()
    assert best(GIVEN[: LARGE + 100], QUESTION) == await found(spaces)


async def test_a_table_that_grows_is_left_alone(spaces: Spaces) -> None:
    """While anybody loads, no index is built that would slow the load down."""
    await spaces.fill(1, GIVEN[:LARGE])
    growing = asyncio.create_task(grow(spaces))
    await spaces.settle()
    await growing
    assert await spaces.is_indexed()


async def grow(spaces: Spaces) -> None:
    for first in range(LARGE, MORE, 500):
        await spaces.fill(1, GIVEN[first : first + 500], first=first + 1)


async def test_doctor_is_told(spaces: Spaces) -> None:
    """What is searched, and whether by an index."""
    await spaces.fill(1, GIVEN[:LARGE])
    (before,) = await spaces.connections.read(vectors.remarks)
    assert "compared one by one" in before
    await spaces.settle()
    (after,) = await spaces.connections.read(vectors.remarks)
    assert "by an index" in after
