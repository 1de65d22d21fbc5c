"""Migrations of stores that hold something: by several processes at once, and killed at any moment."""

from __future__ import annotations

from pathlib import Path

import apsw
import psycopg
import pytest

from recollect import Draft, Recollect
from recollect.settings import PostgresSettings
from recollect.stores.named_sql import newest
from recollect.stores.postgres import migrations as postgres
from recollect.stores.postgres.store import PostgresStore
from recollect.stores.sqlite import migrations, words
from tests.attack.killing import kill_within, run_at_once
from tests.faults.test_sqlite_faults import assert_sound
from tests.stores.test_sqlite_migrations import BASELINES, shape

pytestmark = pytest.mark.attack

MEMORIES = 500
KILLS = 4
OPEN = """
with Recollect(sys.argv[1], embedder="hashing") as r:
    assert r.space("work").stats().memories == int(sys.argv[2])
"""
MIGRATE = """
async def migrate():
    store = PostgresStore(sys.argv[1], PostgresSettings(schema=sys.argv[2]))
    await store.migrate(dry_run=False)
asyncio.run(migrate())
"""
INSERT = (
    "INSERT INTO memories (space, id, hash, namespace, kind, text, title, tags, source, metadata, created_at, "
    "updated_at, embedding) VALUES (1, %s, %s, 'default', 'fact', %s, '', '{}', '', '{}', now(), now(), 'pending')"
)


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of this version."""
    path = tmp_path_factory.mktemp("today") / "memory.db"
    with Recollect(f"sqlite:///{path}", embedder="hashing") as r:
        r.space("work").remember_many([Draft(f"note {n} about whales", tags=("t",)) for n in range(MEMORIES)])
        r.space("work").settle()
    return path


def older(today: Path, path: Path, version: int) -> Path:
    """The same memories in a file of an earlier version."""
    now, old = apsw.Connection(str(today)), apsw.Connection(str(path))
    old.pragma("application_id", migrations.APPLICATION_ID)
    old.pragma("journal_mode", "wal")
    words.register(old)
    old.execute("BEGIN")
    old.execute((BASELINES / f"{version:03}.sql").read_text())
    there = {name for (name,) in now.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    tables = old.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    for (table,) in tables.fetchall():
        if table not in there:
            continue
        known = {name for _, name, *_ in now.pragma("table_xinfo", table)}
        columns = [name for _, name, *_ in old.pragma("table_info", table) if name in known]
        names = ", ".join(columns)
        rows = now.execute(f"SELECT {names} FROM {table}").fetchall()
        old.executemany(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})", rows)
    old.pragma("user_version", version)
    old.execute("COMMIT")
    old.close()
    now.close()
    return path


def check_whole(path: Path, today: Path) -> None:
    """It is what a new file is, and everything is found in it."""
    assert_sound(path)
    one, other = apsw.Connection(str(path)), apsw.Connection(str(today))
    assert shape(one) == shape(other)
    assert one.pragma("user_version") == newest(migrations.shipped())
    one.close()
    other.close()
    with Recollect(f"sqlite:///{path}", embedder="hashing") as r:
        assert r.doctor().ok
        answer = r.space("work").recall("note 77 about whales")
    assert answer.hits[0].memory.text == "note 77 about whales"
    assert not answer.degraded


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_is_migrated_by_several_at_once(tmp_path: Path, today: Path, version: int) -> None:
    """All of them open it, and it is migrated once."""
    path = older(today, tmp_path / "memory.db", version)
    assert run_at_once(OPEN, *[(f"sqlite:///{path}", str(MEMORIES))] * 4) == [0] * 4
    check_whole(path, today)


def test_a_migration_of_a_file_is_killed(tmp_path: Path, today: Path) -> None:
    """At whatever moment: the next to open the file finds all that was in it."""
    killed = 0
    for number in range(KILLS):
        path = older(today, tmp_path / f"{number}.db", 2)
        killed += kill_within(0.3, OPEN, f"sqlite:///{path}", str(MEMORIES))
        with Recollect(f"sqlite:///{path}", embedder="hashing") as r:
            assert r.space("work").stats().memories == MEMORIES
    assert killed
    check_whole(path, today)


@pytest.fixture
def old_schema(pg_dsn: str, pg_schema: str) -> str:
    """A schema of version 1 with memories."""
    baseline = (BASELINES.with_name("postgres_schemas") / "001.sql").read_text()
    with psycopg.connect(pg_dsn, autocommit=True) as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        db.execute(f"CREATE SCHEMA {pg_schema}")
        db.execute(f"SET search_path = {pg_schema}, public")
        db.execute(baseline)
        db.execute("INSERT INTO facts (name, value) VALUES ('version', '1') ON CONFLICT DO NOTHING")
        db.execute("INSERT INTO spaces (name) VALUES ('work')")
        with db.cursor() as cursor:
            cursor.executemany(INSERT, [(f"m{n}", f"{n}".encode(), f"note {n} about whales") for n in range(MEMORIES)])
    return pg_schema


def stored(dsn: str, schema: str) -> tuple[int, int]:
    """The version of a schema, and how many memories are in it."""
    with psycopg.connect(dsn, autocommit=True) as db:
        version = db.execute(f"SELECT value FROM {schema}.facts WHERE name = 'version'").fetchone()
        memories = db.execute(f"SELECT count(*) FROM {schema}.memories").fetchone()
    assert version
    assert memories
    return int(version[0]), memories[0]


async def check_opens(dsn: str, schema: str) -> None:
    store = PostgresStore(dsn, PostgresSettings(schema=schema))
    await store.open()
    try:
        assert (await store.stats("work")).memories == MEMORIES
        assert len(await store.pending("work", limit=10)) == 10
    finally:
        await store.close()
    assert stored(dsn, schema) == (newest(postgres.shipped()), MEMORIES)


async def test_a_schema_is_migrated_by_several_at_once(pg_dsn: str, old_schema: str) -> None:
    """All of them succeed, and it is migrated once."""
    assert run_at_once(MIGRATE, *[(pg_dsn, old_schema)] * 3) == [0] * 3
    await check_opens(pg_dsn, old_schema)


async def test_a_migration_of_a_schema_is_killed(pg_dsn: str, old_schema: str) -> None:
    """At whatever moment: it has the old version or the new one, never something in between."""
    for _ in range(KILLS):
        kill_within(0.3, MIGRATE, pg_dsn, old_schema)
        assert stored(pg_dsn, old_schema) in ((1, MEMORIES), (newest(postgres.shipped()), MEMORIES))
    assert run_at_once(MIGRATE, (pg_dsn, old_schema)) == [0]
    await check_opens(pg_dsn, old_schema)
