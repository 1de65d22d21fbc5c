"""Postgres for tests: one server for the session, and a schema or a database of its own for each test that asks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from recollect.errors import ConfigError
from recollect.settings import PostgresSettings
from recollect.stores.postgres.server import EmbeddedServer

if TYPE_CHECKING:
    from recollect.stores.postgres.store import PostgresStore

NUMBERS = count(1)


@pytest.fixture
def pg_folder() -> Iterator[Path]:
    """A folder for a server that does not exist yet. It is not in `tmp_path`, for as root a server runs as somebody
    else, whom each session of pytest locks out of all its folders.
    """
    with TemporaryDirectory(prefix="recollect-pg-") as folder:
        yield Path(folder, "server")


@pytest.fixture(scope="session")
def pg_dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database on the server of `--pg-dsn`, or on a private one that ends with the session."""
    if given := request.config.getoption("--pg-dsn"):
        yield given
        return
    with TemporaryDirectory(prefix="recollect-pg-") as folder:
        server = EmbeddedServer(Path(folder, "server"))
        try:
            dsn = asyncio.run(server.start())
        except ConfigError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))
        with psycopg.connect(dsn, autocommit=True) as db:
            db.execute("ALTER SYSTEM SET fsync = off")
            db.execute("SELECT pg_reload_conf()")
        yield dsn
        asyncio.run(server.stop())


@pytest.fixture
def pg_database(pg_dsn: str) -> Iterator[str]:
    """A database with nothing in it."""
    name = f"recollect_test_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(pg_dsn, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
        yield make_conninfo(pg_dsn, dbname=name)
        db.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def pg_role(pg_dsn: str) -> Iterator[str]:
    """The name of a role without rights, its own password. Ask for it before `pg_database`, which outlives it else."""
    name = f"recollect_test_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(pg_dsn, autocommit=True) as db:
        db.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}'")
        yield name
        db.execute(f"DROP ROLE {name}")


@pytest.fixture
async def pg_schema(pg_dsn: str) -> AsyncIterator[str]:
    """The name of a schema that is not there yet."""
    name = f"recollect_test_{os.getpid()}_{next(NUMBERS)}"
    yield name
    async with await psycopg.AsyncConnection.connect(pg_dsn, autocommit=True) as db:
        await db.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.fixture
async def pg_store(pg_dsn: str, pg_schema: str) -> AsyncIterator[PostgresStore]:
    """An opened, empty store in a schema of its own."""
    from recollect.stores.postgres.store import PostgresStore

    store = PostgresStore(pg_dsn, PostgresSettings(schema=pg_schema))
    await store.open()
    yield store
    await store.close()
