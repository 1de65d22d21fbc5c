"""A Postgres server that ends the connection by which the owner of an idempotency key shows that it lives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from recollect.settings import PostgresSettings
from recollect.stores.postgres.store import PostgresStore
from recollect.types import Reply

pytestmark = pytest.mark.attack

OWNERS = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid > 0"


@pytest.fixture
async def other(pg_dsn: str, pg_schema: str, pg_store: PostgresStore) -> AsyncIterator[PostgresStore]:
    """The same store, opened by somebody else."""
    store = PostgresStore(pg_dsn, PostgresSettings(schema=pg_schema))
    await store.open()
    yield store
    await store.close()


async def claim(store: PostgresStore, key: str) -> Reply | None:
    now = datetime.now(UTC)
    return await store.ledger.claim("work", key, "f", now=now, expires=now + timedelta(minutes=10))


async def end_owners(dsn: str) -> list[int]:
    """Terminate the sessions that hold an owner's lock; their processes."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as db:
        pids = [pid for (pid,) in await (await db.execute(OWNERS)).fetchall()]
        for pid in pids:
            await db.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    return pids


async def test_a_key_is_not_free_while_its_owner_lives(
    pg_dsn: str, pg_store: PostgresStore, other: PostgresStore
) -> None:
    """However often the connection is ended: nobody else runs the request meanwhile, and the owner can answer it."""
    assert await claim(pg_store, "k") is None
    for _ in range(3):
        assert await end_owners(pg_dsn)
        assert await claim(other, "k") == Reply("f", None, b"")
    await pg_store.ledger.reply("work", "k", 200, b"done", expires=datetime.now(UTC) + timedelta(minutes=10))
    assert await claim(other, "k") == Reply("f", 200, b"done")


async def test_a_key_is_free_once_its_owner_is_gone(pg_store: PostgresStore, other: PostgresStore) -> None:
    """Whoever asks next takes it over."""
    assert await claim(pg_store, "k") is None
    await pg_store.close()
    assert await claim(other, "k") is None
    assert await claim(other, "k") == Reply("f", None, b"")
