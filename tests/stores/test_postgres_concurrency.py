"""Many who ask at once share few connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import AsyncRecollect, Draft, InvalidRequest
from recollect.conformance.samples import HERE, record
from recollect.settings import PostgresSettings, Settings
from recollect.stores.postgres.bulk import MANY
from recollect.stores.postgres.store import PostgresStore

ASKING = 64
POOL = 8
TEXTS = [f"Invoice {number} was paid by customer {number % 7}" for number in range(200)]


@pytest.fixture
async def recollect(pg_dsn: str, pg_schema: str) -> AsyncIterator[AsyncRecollect]:
    """A store with some memories, on a pool of eight connections."""
    url = f"postgresql://?{urlencode(conninfo_to_dict(pg_dsn))}"
    settings = Settings(url, "hashing", postgres=PostgresSettings(pool_size=POOL, schema=pg_schema, acquire_timeout=30))
    async with AsyncRecollect(settings=settings) as opened:
        await opened.space("work").remember_many(Draft(text) for text in TEXTS)
        await opened.space("work").settle()
        yield opened


async def test_all_who_ask_at_once_are_answered(recollect: AsyncRecollect) -> None:
    """Each of 64 recalls on a pool of eight finds what it asks for, though their lanes want 192 connections."""
    work = recollect.space("work")
    async with asyncio.timeout(120):
        answers = await asyncio.gather(*(work.recall(f"invoice {number}") for number in range(ASKING)))
    for number, answer in enumerate(answers):
        assert answer.hits, f"question {number} got {answer.lanes}"
        keyword = next(lane for lane in answer.lanes if lane.lane == "keyword")
        assert keyword.status != "ok" or answer[0].memory.text.startswith(f"Invoice {number} ")


async def test_asking_and_writing_at_once(recollect: AsyncRecollect) -> None:
    """Writers on the same pool neither wait for those who ask nor keep them waiting without end."""
    work = recollect.space("work")
    async with asyncio.timeout(120):
        done = await asyncio.gather(
            *(work.recall(f"invoice {number}") for number in range(ASKING // 2)),
            *(work.remember(f"Receipt {number} was lost") for number in range(ASKING // 2)),
        )
    assert len(done) == ASKING
    assert (await work.stats()).memories == len(TEXTS) + ASKING // 2


async def test_of_texts_under_one_id_at_once_one_is_kept_and_the_others_are_refused(recollect: AsyncRecollect) -> None:
    """Bulk loads and imports alike: whoever comes second is told so."""
    work = recollect.space("work")
    loads = (work.remember_many([Draft(f"load {number}", id="k")]) for number in range(POOL))
    imports = (work.import_lines([f'{{"text": "import {number}", "id": "k"}}']) for number in range(POOL))
    async with asyncio.timeout(120):
        loaded, imported = await asyncio.gather(
            asyncio.gather(*loads, return_exceptions=True), asyncio.gather(*imports)
        )
    refused = sum(isinstance(one, InvalidRequest) for one in loaded) + sum(one.broken_count for one in imported)
    assert refused == 2 * POOL - 1
    assert (await work.stats()).memories == len(TEXTS) + 1


async def test_a_read_finds_all_in_a_table_that_was_just_written_anew(
    pg_store: PostgresStore, pg_dsn: str, pg_schema: str
) -> None:
    """To a snapshot from before, Postgres shows such a table empty: a read that had to wait for it takes its snapshot
    afterwards.
    """
    await pg_store.add(HERE, [record("a")])
    rewrite = "ALTER TABLE memories ADD COLUMN more tsvector GENERATED ALWAYS AS (to_tsvector('simple', text)) STORED"
    waiting = "SELECT 1 FROM pg_locks WHERE relation = 'memories'::regclass AND NOT granted"
    async with await psycopg.AsyncConnection.connect(pg_dsn, autocommit=True) as db:
        await db.execute(f"SET search_path = {pg_schema}")
        async with db.transaction():
            await db.execute(rewrite)
            reading = asyncio.create_task(pg_store.get(HERE, ["a"]))
            async with asyncio.timeout(30):
                while not await (await db.execute(waiting)).fetchall():  # noqa: ASYNC110  # no event tells
                    await asyncio.sleep(0.01)
        assert (await reading).keys() == {"a"}


async def test_batches_that_are_stored_at_once_are_numbered_in_their_order(
    pg_store: PostgresStore, pg_dsn: str, pg_schema: str
) -> None:
    """Whichever of them is stored first: what goes by the order of rows is then the same in every store."""
    batches = [[record(f"{batch}{n:02}", f"note {batch} {n}") for n in range(MANY)] for batch in range(8)]
    await asyncio.gather(*(pg_store.add(HERE, batch) for batch in batches))
    with psycopg.connect(pg_dsn) as db:
        found = db.execute(f'SELECT id FROM "{pg_schema}".memories ORDER BY row').fetchall()
    assert [id for (id,) in found] == [one.memory.id for batch in batches for one in batch]
