"""Opening a database: what is made, what is refused, and that what is refused stays as it was."""

from __future__ import annotations

import os
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from recollect.errors import BackendError, BackendUnavailable, ConfigError, SchemaOutdated
from recollect.settings import PostgresSettings
from recollect.stores import named_sql
from recollect.stores.postgres import migrations
from recollect.stores.postgres.connections import Connections

SECRET = "s3cret-w0rd"
EVERYTHING = """
    SELECT n.nspname, c.relname, c.relkind, n.nspowner::regrole::text
    FROM pg_namespace n LEFT JOIN pg_class c ON n.oid = c.relnamespace
    WHERE n.nspname !~ '^pg_|^information_schema' ORDER BY 1, 2
"""


async def opened(dsn: str, *, create: bool = True, **settings: Any) -> Connections:
    connections = Connections(dsn, PostgresSettings(**settings))
    await connections.open(create=create)
    return connections


async def make_store(dsn: str) -> None:
    await (await opened(dsn)).close()


def execute(dsn: str, *statements: str) -> list[Any]:
    with psycopg.connect(dsn, autocommit=True) as db:
        cursors = [db.execute(statement) for statement in statements]
        return cursors[-1].fetchall() if cursors[-1].description else []


async def assert_refused(
    dsn: str, error: type[Exception], *mentions: str, create: bool = True, look: str | None = None
) -> None:
    """Opening fails with one sentence, and nothing in the database has changed."""
    before = execute(look or dsn, EVERYTHING)
    with pytest.raises(error) as raised:
        await opened(dsn, create=create)
    assert type(raised.value) is error
    assert all(mention in str(raised.value) for mention in mentions), str(raised.value)
    assert "\n" not in str(raised.value)
    assert execute(look or dsn, EVERYTHING) == before


async def version(connections: Connections) -> str:
    async def work(db: psycopg.AsyncConnection[Any]) -> str:
        row = await (await db.execute("SELECT value FROM facts WHERE name = 'version'")).fetchone()
        assert row
        return str(row[0])

    return await connections.read(work)


async def test_an_empty_database_becomes_a_store(pg_database: str) -> None:
    """The first who opens it makes the store, extension included; the next one finds it, whether or not it may make
    one.
    """
    await make_store(pg_database)
    connections = await opened(pg_database, create=False)
    assert await version(connections) == str(named_sql.newest(migrations.shipped()))
    await connections.close()


async def test_opening_twice_is_opening_once(pg_database: str) -> None:
    """`open` and `close` may be called again."""
    connections = await opened(pg_database)
    await connections.open(create=True)
    await connections.close()
    await connections.close()
    await connections.open(create=False)
    assert await version(connections)
    await connections.close()


async def test_a_closed_store_says_so(pg_database: str) -> None:
    """Reading or writing what is not open is an error of its own."""
    connections = Connections(pg_database, PostgresSettings())
    for use in (connections.read, connections.write):
        with pytest.raises(BackendError, match="not open"):
            await use(lambda db: db.execute("SELECT 1"))
    with pytest.raises(BackendError, match="not open"):
        async with connections.autocommit():
            pass


async def test_no_store_is_made_unasked(pg_database: str) -> None:
    """With `create=False` an empty database stays empty."""
    await assert_refused(pg_database, ConfigError, "there is no store in database", "yet", create=False)


async def test_two_stores_share_a_database(pg_database: str) -> None:
    """Each schema is a store of its own."""
    await make_store(pg_database)
    other = await opened(pg_database, schema="other")
    await other.write(lambda db: db.execute("INSERT INTO spaces (name) VALUES ('a')"))
    await other.close()
    assert execute(pg_database, "SELECT name FROM recollect.spaces") == []
    assert execute(pg_database, "SELECT name FROM other.spaces") == [("a",)]


@pytest.mark.parametrize("table", ["memories (id text)", "facts (sky text)", "facts (name text, value text)"])
async def test_a_schema_of_other_tables_is_refused(pg_database: str, table: str) -> None:
    """What somebody else keeps in a schema of our name is left as it is, however much it looks like ours."""
    execute(pg_database, "CREATE SCHEMA recollect", f"CREATE TABLE recollect.{table}")
    await assert_refused(pg_database, BackendError, "not a Recollect store", "was not changed", "[postgres] schema")


async def test_an_empty_schema_is_used(pg_database: str) -> None:
    """A schema that an administrator has made for us is filled."""
    execute(pg_database, "CREATE SCHEMA recollect")
    await make_store(pg_database)
    with psycopg.connect(pg_database) as db:
        assert db.execute("SELECT count(*) FROM recollect.memories").fetchone() is not None


async def test_a_newer_store_is_refused(pg_database: str) -> None:
    """A store of a version to come is left as it is, and the message says to upgrade."""
    await make_store(pg_database)
    execute(pg_database, "UPDATE recollect.facts SET value = '99' WHERE name = 'version'")
    await assert_refused(pg_database, SchemaOutdated, "99", "--upgrade recollect")


async def test_an_older_store_is_refused(pg_database: str) -> None:
    """A store of a version that was is migrated on request, not by opening it."""
    await make_store(pg_database)
    execute(pg_database, "UPDATE recollect.facts SET value = '0' WHERE name = 'version'")
    await assert_refused(pg_database, SchemaOutdated, "schema version 0", "recollect migrate")


async def test_an_old_server_is_refused(pg_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of a version that Recollect does not know is named, and what would do."""
    monkeypatch.setattr(migrations, "OLDEST_SERVER", 99)
    await assert_refused(pg_database, BackendError, "is Postgres", "needs 99 or newer")


async def test_a_server_without_the_extension(pg_database: str) -> None:
    """Where pgvector is not installed the message says what to install."""
    if execute(pg_database, "SELECT current_setting('server_version_num')::integer >= 180000") != [(True,)]:
        pytest.skip("only Postgres 18 can be told to look for extensions elsewhere")
    dsn = make_conninfo(pg_database, options="-c extension_control_path=/nowhere")
    await assert_refused(dsn, BackendError, "lacks pgvector", "install it")
    with pytest.raises(BackendError, match="lacks pgvector"):
        await Connections(dsn, PostgresSettings()).migrate(dry_run=True)


async def test_a_role_that_may_not_create_the_extension(pg_role: str, pg_database: str) -> None:
    """The message says which statement an administrator has to run; once it was run, the store is made."""
    dsn = make_conninfo(pg_database, user=pg_role, password=pg_role)
    await assert_refused(dsn, BackendError, f"role {pg_role} may not", "`CREATE EXTENSION vector`", look=pg_database)
    execute(pg_database, "CREATE EXTENSION vector")
    await assert_refused(
        dsn, BackendError, f"`CREATE SCHEMA recollect AUTHORIZATION {pg_role}`", pg_role, look=pg_database
    )
    execute(pg_database, f"CREATE SCHEMA recollect AUTHORIZATION {pg_role}")
    await make_store(dsn)


async def test_an_extension_outside_the_search_path(pg_role: str, pg_database: str) -> None:
    """The extension may be in a schema of its own, where a hosted database has it."""
    execute(
        pg_database,
        "CREATE SCHEMA elsewhere",
        "CREATE EXTENSION vector SCHEMA elsewhere",
        f"GRANT USAGE ON SCHEMA elsewhere TO {pg_role}",
        f"CREATE SCHEMA recollect AUTHORIZATION {pg_role}",
    )
    connections = await opened(make_conninfo(pg_database, user=pg_role, password=pg_role))
    cursor = await connections.read(lambda db: db.execute("SELECT '[1,2]'::vector <=> '[1,2]'::halfvec::vector"))
    assert cursor.rowcount == 1
    await connections.close()


async def test_an_old_extension_is_refused(pg_database: str) -> None:
    """A pgvector that cannot scan on under a filter is named, and how to bring it up to date."""
    execute(
        pg_database,
        "CREATE EXTENSION vector",
        "SET allow_system_table_mods = on",
        "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'",
    )
    await assert_refused(pg_database, BackendError, "pgvector 0.7.4", "0.8 or newer", "ALTER EXTENSION vector UPDATE")


async def test_an_extension_that_was_dropped(pg_database: str) -> None:
    """A store whose extension is gone has lost its vectors, and says so."""
    await make_store(pg_database)
    execute(pg_database, "DROP EXTENSION vector CASCADE")
    await assert_refused(pg_database, BackendError, "the extension vector was dropped")


async def test_a_role_that_may_not_read(pg_role: str, pg_database: str) -> None:
    """A role that was granted nothing is told so."""
    await make_store(pg_database)
    dsn = make_conninfo(pg_database, user=pg_role, password=pg_role)
    await assert_refused(dsn, BackendError, "does not permit this", "administrator", look=pg_database)


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{SECRET}@localhost:badport/x",
        f"postgresql://me:{SECRET}@localhost/x?colour=red",
        f"host=localhost password {SECRET}",
        f"postgresql://me:{SECRET}@[::1/x",
    ],
)
def test_a_wrong_dsn(dsn: str) -> None:
    """What libpq cannot read is an error before anything is opened, and does not show the password."""
    with pytest.raises(ConfigError, match="not a Postgres URL") as raised:
        Connections(dsn, PostgresSettings())
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{SECRET}@localhost:1/x",
        f"postgresql://me:{SECRET}@nowhere.invalid/x",
        f"postgresql://me:{SECRET}@/x?host=/nowhere",
    ],
)
async def test_no_server(dsn: str) -> None:
    """A server that is not there is named, worth a retry, and the password is not shown."""
    with pytest.raises(BackendUnavailable, match=r"database x on .* cannot be reached") as raised:
        await opened(dsn)
    assert SECRET not in str(raised.value)
    assert SECRET not in str(raised.value.__cause__)


async def test_no_database(pg_dsn: str) -> None:
    """A server without the database says so; to try again would be no use."""
    dsn = make_conninfo(pg_dsn, dbname="no_such_database", password=os.environ.get("PGPASSWORD") or SECRET)
    with pytest.raises(BackendError, match=r"no_such_database.*does not exist.*check the URL") as raised:
        await opened(dsn)
    assert type(raised.value) is BackendError
    assert SECRET not in str(raised.value)
