"""Schema versions: a migrated database equals a fresh one, and a migration happens once or not at all."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recollect.errors import BackendError
from recollect.settings import PostgresSettings
from recollect.stores.named_sql import load, newest, read
from recollect.stores.postgres import migrations, text_indexes
from recollect.stores.postgres.connections import Connections

BASELINES = Path(__file__).parent / "postgres_schemas"
"""`NNN.sql`: the schema of an earlier version, kept when `schema.sql` goes on to the next."""
MODULE = "recollect.stores.postgres.store"
NOW = newest(migrations.shipped())
FACTS = "CREATE TABLE facts (name text PRIMARY KEY, value text NOT NULL);"
V1 = FACTS + "CREATE TABLE things (name text NOT NULL);"
V3 = FACTS + "CREATE TABLE things (name text NOT NULL, colour text CHECK (colour <> ''), UNIQUE (colour));"
STEPS = {
    2: "ALTER TABLE things ADD COLUMN colour text;",
    3: "ALTER TABLE things ADD UNIQUE (colour), ADD CHECK (colour <> '');",
}
SHAPE = (
    """SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
              a.attcollation::regcollation::text, pg_get_expr(d.adbin, d.adrelid)
       FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
       LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
       WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'S') ORDER BY 1, 2""",
    "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1, 2",
    """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
       WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2""",
    "SELECT tablename, policyname, qual, with_check FROM pg_policies WHERE schemaname = current_schema() ORDER BY 1, 2",
)


async def database(dsn: str, schema: str, sql: str, steps: Mapping[int, str]) -> psycopg.AsyncConnection[Any]:
    """A connection to a schema of its own, brought to a version."""
    db = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
    await db.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}, public")
    await migrations.bring(db, None, sql, steps)
    return db


async def shape(db: psycopg.AsyncConnection[Any]) -> list[Any]:
    """All that makes up a schema, apart from how its SQL was typed and what it is called."""
    found = [await (await db.execute(query)).fetchall() for query in SHAPE]
    (name,) = await (await db.execute("SELECT current_schema()")).fetchone() or ("",)
    return [[tuple(_unnamed(value, name) for value in row) for row in rows] for rows in found]


def _unnamed(value: object, schema: str) -> object:
    return value.replace(f"{schema}.", "") if isinstance(value, str) else value


async def version(db: psycopg.AsyncConnection[Any]) -> int:
    row = await (await db.execute("SELECT value FROM facts WHERE name = 'version'")).fetchone()
    assert row
    return int(row[0])


async def test_every_shipped_version_migrates_to_the_schema(pg_database: str) -> None:
    """From each version that ever was, the migrations lead to what a new database gets."""
    shipped = dict(migrations.shipped())
    last = newest(shipped)
    assert sorted(shipped) == list(range(2, last + 1))
    now = read(MODULE, "schema.sql")
    fresh = await database(pg_database, "fresh", now, shipped)
    for number in range(1, last):
        old = await database(pg_database, f"old_{number}", (BASELINES / f"{number:03}.sql").read_text(), {})
        await migrations.bring(old, number, now, shipped)
        assert await shape(old) == await shape(fresh)
        await old.close()
    await fresh.close()


async def test_grants_that_were_in_use_stay_so(pg_database: str) -> None:
    """What an earlier version granted counts as accepted, under row security too; what is granted from now on is an
    offer.
    """
    db = await database(pg_database, "old", (BASELINES / "001.sql").read_text(), {})
    await db.execute("INSERT INTO spaces (name) VALUES ('team')")
    await db.execute("INSERT INTO grants (space, namespace, grantee, access) VALUES (1, 'notes', 'work', 'read')")
    await db.execute("ALTER TABLE grants ENABLE ROW LEVEL SECURITY; ALTER TABLE grants FORCE ROW LEVEL SECURITY")
    await migrations.bring(db, 1, read(MODULE, "schema.sql"), dict(migrations.shipped()))
    await db.execute("ALTER TABLE grants NO FORCE ROW LEVEL SECURITY")
    ledger = load(MODULE, "ledger.sql")
    await db.execute(ledger["grant"], {"space": 1, "namespace": "letters", "to": "work", "access": "read"})
    rows = await (await db.execute(ledger["granted_by"], {"space": 1})).fetchall()
    found = [(namespace, accepted) for _, namespace, _, _, accepted in rows]
    assert found == [("letters", False), ("notes", True)]
    await db.close()


async def test_text_columns_of_an_earlier_version_are_kept(pg_database: str) -> None:
    """A column that Postgres kept by itself is filled by a trigger from now on; what it lacked of long texts is added,
    under row security too.
    """
    db = await database(pg_database, "old", (BASELINES / "001.sql").read_text(), {})
    await db.execute(
        "ALTER TABLE memories ADD COLUMN words_simple tsvector "
        "GENERATED ALWAYS AS (to_tsvector('simple', left(text, 200000))) STORED"
    )
    await db.execute("INSERT INTO spaces (name) VALUES ('work')")
    insert = (
        "INSERT INTO memories (space, id, hash, namespace, kind, text, title, tags, source, metadata, created_at, "
        "updated_at, embedding) VALUES (1, %s, %s, '', '', %s, '', '{}', '', '{}', now(), now(), 'pending')"
    )
    long = "word " * 50_000 + "zeppelin"
    for id, text in (("short", "a zeppelin"), ("long", long)):
        await db.execute(insert, [id, id.encode(), text])
    await db.execute("ALTER TABLE memories ENABLE ROW LEVEL SECURITY; ALTER TABLE memories FORCE ROW LEVEL SECURITY")
    await migrations.bring(db, 1, read(MODULE, "schema.sql"), dict(migrations.shipped()))
    forced = await (await db.execute("SELECT relforcerowsecurity FROM pg_class WHERE relname = 'memories'")).fetchall()
    assert forced == [(True,)]
    await db.execute("ALTER TABLE memories NO FORCE ROW LEVEL SECURITY")
    await db.execute(insert, ["new", b"new", f"new {long}"])
    found = await (await db.execute("SELECT id FROM memories WHERE words_simple @@ 'zeppelin' ORDER BY id")).fetchall()
    assert found == [("long",), ("new",), ("short",)]
    assert (await text_indexes.look(db, "simple")).ready
    await db.close()


async def test_a_migrated_database_equals_a_fresh_one(pg_database: str) -> None:
    """Steps are applied in order from the database's own version on, and what it holds is kept."""
    old = await database(pg_database, "old", V1, {})
    await old.execute("INSERT INTO things VALUES ('umbrella')")
    await migrations.bring(old, 1, V3, STEPS)
    fresh = await database(pg_database, "fresh", V3, STEPS)
    assert await shape(old) == await shape(fresh)
    assert await version(old) == await version(fresh) == 3
    assert await (await old.execute("SELECT name FROM things")).fetchall() == [("umbrella",)]
    await old.close()
    await fresh.close()


async def test_the_comparison_sees_a_difference(pg_database: str) -> None:
    """A step that leaves out a constraint does not pass for equal."""
    old = await database(pg_database, "old", V1, {})
    await migrations.bring(old, 1, V3, {2: STEPS[2], 3: "CREATE UNIQUE INDEX things_colour_key ON things (colour)"})
    fresh = await database(pg_database, "fresh", V3, STEPS)
    assert await shape(old) != await shape(fresh)
    await old.close()
    await fresh.close()


async def test_a_database_in_between_takes_the_rest(pg_database: str) -> None:
    """A database of version 2 is not taken through step 2 again, and one of version 3 through none."""
    db = await database(pg_database, "old", V1, {})
    await migrations.bring(db, 1, V3, {2: STEPS[2]})
    await migrations.bring(db, await version(db), V3, STEPS)
    await migrations.bring(db, await version(db), V3, STEPS)
    fresh = await database(pg_database, "fresh", V3, STEPS)
    assert await shape(db) == await shape(fresh)
    await db.close()
    await fresh.close()


async def test_a_failing_migration_changes_nothing(pg_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps are one transaction, and the error is ours."""
    connections = Connections(pg_database, PostgresSettings())
    await connections.open(create=True)
    await connections.close()
    broken = {NOW + 1: "CREATE TABLE things (name text)", NOW + 2: "CREATE INDEX by_size ON things (size)"}
    monkeypatch.setattr(migrations, "shipped", lambda: broken)
    with pytest.raises(BackendError, match="size"):
        await connections.migrate(dry_run=False)
    async with await psycopg.AsyncConnection.connect(pg_database, options="-c search_path=recollect") as db:
        assert await version(db) == NOW
        assert await (await db.execute("SELECT to_regclass('things')")).fetchone() == (None,)


async def test_an_old_store_is_migrated_on_request(pg_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`migrate` says what it does, in words; a dry run says the same and does nothing; afterwards there is nothing to
    do.
    """
    connections = Connections(pg_database, PostgresSettings())
    assert [step.split()[0] for step in (await connections.migrate(dry_run=True)).steps] == ["install", "make"]
    await connections.migrate(dry_run=False)
    assert await connections.migrate(dry_run=False) == ((), ())
    monkeypatch.setattr(migrations, "shipped", lambda: {NOW + 1: "CREATE TABLE things (name text)"})
    for dry_run in (True, False):
        (step,) = (await connections.migrate(dry_run=dry_run)).steps
        assert step.startswith("bring database")
        assert step.endswith(f"from schema version {NOW} to {NOW + 1}")
    assert await connections.migrate(dry_run=True) == ((), ())
    await connections.open(create=False)
    await connections.close()


AT_ONCE = """
import asyncio, sys
from recollect.settings import PostgresSettings
from recollect.stores.postgres import migrations
from recollect.stores.postgres.connections import Connections

async def main(dsn, task):
    connections = Connections(dsn, PostgresSettings())
    print("ready", flush=True)
    sys.stdin.read()
    if task == "make":
        await connections.open(create=True)
        await connections.close()
    else:
        steps = {migrations.newest(migrations.shipped()) + 1: "ALTER TABLE memories ADD COLUMN colour text"}
        migrations.shipped = lambda: steps
        await connections.migrate(dry_run=False)
    print("done")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("task", ["make", "migrate"])
def test_two_processes_at_once(pg_database: str, task: str) -> None:
    """Processes that make or migrate the same store at the same moment all succeed, and it is done once."""
    if task == "migrate":
        asyncio.run(Connections(pg_database, PostgresSettings()).migrate(dry_run=False))
    command = [sys.executable, "-c", AT_ONCE, pg_database, task]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.close()
    for process in processes:
        assert process.stdout
        assert process.stdout.read() == "done\n"
        process.stdout.close()
        assert process.wait() == 0


@pytest.mark.parametrize("name", ["connections.sql", "migrations.sql", "row_security.sql"])
def test_every_statement_is_described(name: str) -> None:
    """Each named statement has a name of its own and a line that says what it is for."""
    blocks = read(MODULE, name).split("-- name: ")[1:]
    names = [block.split("\n", 1)[0] for block in blocks]
    assert len(set(names)) == len(names) == len(load(MODULE, name))
    assert all(block.split("\n")[1].startswith("-- ") for block in blocks)
    assert all(statement and not statement.startswith("--") for statement in load(MODULE, name).values())
