"""Row security: the database itself keeps the spaces apart, whatever a statement asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from recollect.conformance import SPECS, Spec
from recollect.errors import BackendError
from recollect.settings import PostgresSettings
from recollect.stores.postgres import migrations
from recollect.stores.postgres.connections import Connections
from recollect.stores.postgres.store import PostgresStore

ADD = """
    INSERT INTO memories (space, id, hash, namespace, kind, text, title, tags, source, metadata, created_at, updated_at,
                          embedding)
    VALUES (%s, %s, 'h', 'default', 'fact', 'umbrella', '', '{}', '', '{}', now(), now(), 'pending')
"""
FILL = """
    INSERT INTO memories (space, id, hash, namespace, kind, text, title, tags, source, metadata, created_at, updated_at,
                          embedding)
    SELECT 1, n, n::text::bytea, 'default', 'fact', n, '', '{}', '', '{}', now(), now(), 'pending'
    FROM generate_series(1, 2000) n;
    INSERT INTO words SELECT space, row, array_to_tsvector(array[space || ':' || text]), 1 FROM memories
"""
VECTORS = "CREATE TABLE vectors_1 (space integer, row bigint, PRIMARY KEY (space, row))"
SECURED = """
    SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'space'
    WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind = 'r' AND c.relname <> 'outbox' ORDER BY 1
"""


@pytest.fixture
async def dsn(pg_role: str, pg_database: str) -> str:
    """An empty database, for a role that may make a store in it and is no superuser."""
    with psycopg.connect(pg_database, autocommit=True) as db:
        db.execute("CREATE EXTENSION vector")
        db.execute(f"CREATE SCHEMA recollect AUTHORIZATION {pg_role}")
    return make_conninfo(pg_database, user=pg_role, password=pg_role)


@pytest.fixture
async def secured(dsn: str) -> AsyncIterator[Connections]:
    """A store with row security that holds one memory in each of the spaces 1 and 2."""
    connections = Connections(dsn, PostgresSettings(pool_size=2))
    await connections.migrate(dry_run=False, row_security=True)
    await connections.open(create=False)
    await connections.write(lambda db: db.execute("INSERT INTO spaces (name) VALUES ('a'), ('b')"))
    await connections.write(lambda db: db.execute(ADD, (1, "one")), space=1)
    await connections.write(lambda db: db.execute(ADD, (2, "two")), space=2)
    yield connections
    await connections.close()


async def ids(connections: Connections, space: int | None) -> list[str]:
    async def work(db: AsyncConnection[Any]) -> list[str]:
        return [id for (id,) in await (await db.execute("SELECT id FROM memories ORDER BY id")).fetchall()]

    return await connections.read(work, space=space)


async def test_a_transaction_sees_its_own_space(secured: Connections) -> None:
    """A statement that names no space reads the rows of the transaction's; without one it reads none."""
    assert await ids(secured, 1) == ["one"]
    assert await ids(secured, 2) == ["two"]
    assert await ids(secured, None) == []
    assert await ids(secured, 3) == []


@pytest.mark.parametrize("space", [1, None])
async def test_a_transaction_writes_its_own_space(secured: Connections, space: int | None) -> None:
    """Rows of another space cannot be added, changed or removed, by the owner of the tables neither."""
    with pytest.raises(BackendError, match="row-level security"):
        await secured.write(lambda db: db.execute(ADD, (2, "three")), space=space)
    for statement in ("UPDATE memories SET text = '' WHERE space = 2", "DELETE FROM memories WHERE space = 2"):
        assert (await secured.write(lambda db, sql=statement: db.execute(sql), space=space)).rowcount == 0  # type: ignore[misc]
    with pytest.raises(BackendError, match="row-level security"):
        await secured.write(lambda db: db.execute("UPDATE memories SET space = 2"), space=1)
    assert await ids(secured, 2) == ["two"]


@pytest.mark.parametrize(
    "spec",
    [spec for spec in SPECS if spec.area in ("isolation", "grants", "tokens", "replies", "outbox")],
    ids=lambda spec: spec.name,
)
async def test_spec(dsn: str, spec: Spec) -> None:
    """A store keeps its spaces apart, and works, with row security as well."""
    await Connections(dsn, PostgresSettings()).migrate(dry_run=False, row_security=True)
    store = PostgresStore(dsn, create=False)
    await store.open()
    try:
        await spec.check(store)
    finally:
        await store.close()


async def test_every_table_of_a_space_is_secured(secured: Connections, pg_database: str) -> None:
    """All tables with a space have it, those of vectors that are made later too."""

    async def add_vectors(db: AsyncConnection[Any]) -> None:
        await db.execute(VECTORS)
        await migrations.secure(db, "vectors_1")

    await secured.write(add_vectors)
    with psycopg.connect(pg_database) as db:
        tables: dict[str, bool] = dict(db.execute(SECURED).fetchall())
    assert tables.keys() >= {"memories", "words", "tags", "edges", "hits", "sizes", "replies", "vectors_1"}
    assert all(tables.values())


async def test_tables_that_are_there_are_secured(dsn: str, pg_database: str) -> None:
    """Row security can be asked for later; it is put on the vectors that are there by then, and once."""
    connections = Connections(dsn, PostgresSettings())
    await connections.open(create=True)

    async def add_vectors(db: AsyncConnection[Any]) -> None:
        await db.execute(VECTORS)
        await migrations.secure(db, "vectors_1")

    await connections.write(add_vectors)
    with psycopg.connect(pg_database, autocommit=True) as db:
        assert not any(dict(db.execute(SECURED).fetchall()).values())
        assert await connections.migrate(dry_run=False, row_security=True)
        assert all(dict(db.execute(SECURED).fetchall()).values())
        assert (await connections.migrate(dry_run=True, row_security=True)).steps == ()
        assert await ids(connections, None) == []
    await connections.close()


async def test_what_is_said_to_a_role(dsn: str, pg_database: str) -> None:
    """A superuser is told that row security does not hold it back; another role what a superuser should do for it."""
    (_, secure), (words,) = await Connections(dsn, PostgresSettings()).migrate(dry_run=True, row_security=True)
    assert secure.startswith("put row security on every table")
    assert words.startswith("word searches under row security read all rows")
    assert "ALTER FUNCTION pg_catalog.ts_match_vq" in words
    connections = Connections(pg_database, PostgresSettings())
    (_, _, words), (role,) = await connections.migrate(dry_run=True, row_security=True)
    assert role.startswith("connect as another role")
    assert words.startswith("let word searches use their indexes")


@pytest.mark.parametrize("free", [False, True])
async def test_the_words_index_under_row_security(secured: Connections, pg_database: str, free: bool) -> None:
    """Only where a superuser has declared that `@@` gives nothing away is the index of the words used."""
    if free:
        await Connections(pg_database, PostgresSettings()).migrate(dry_run=False, row_security=True)

    await secured.write(lambda db: db.execute(FILL), space=1)
    async with secured.autocommit() as db:
        await db.execute("ANALYZE words")

    async def plan(db: AsyncConnection[Any]) -> str:
        lines = await db.execute("EXPLAIN SELECT row FROM words WHERE space = 1 AND words @@ $$'1:77'$$::tsquery")
        return "\n".join(line for (line,) in await lines.fetchall())

    assert ("words_by_term" in await secured.read(plan, space=1)) is free
