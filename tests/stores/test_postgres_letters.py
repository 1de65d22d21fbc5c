"""Words beside typographic signs: found by the seeds' recipes on every store, also in folders that were made before."""

# ruff: noqa: RUF001 (signs that look like others are what this is about)

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recollect import RECIPES as SEEDS
from recollect import AsyncRecollect
from recollect.settings import PostgresSettings
from recollect.stores.postgres import letters, watchdog
from recollect.stores.postgres.server import EmbeddedServer
from recollect.stores.postgres.store import PostgresStore
from recollect.text.configurations import lexemes

TEXT = "The “Threadline” ledger – invoice 12345—paid… see ‘Größe’, ‹naïve› and «Ærø»"
WORDS = ("threadline", "12345", "paid", "größe", "naïve", "ærø", "ledger")
RECIPES = {"polyant": "message", "sci": "semantic", "pgmemory": "fact", "drobek": "knowledge", "novamem": "fact"}
OPEN = """
import asyncio, sys
from recollect import AsyncRecollect

async def main(url):
    async with AsyncRecollect(url, embedder="hashing"):
        print("opened", flush=True)

asyncio.run(main(sys.argv[1]))
"""


def url_of(dsn: str) -> str:
    return f"postgresql://?{urlencode(conninfo_to_dict(dsn))}"


def embedded(folder: Path) -> str:
    return f"embedded-postgres:///{folder}"


def patient(recipe: str) -> dict[str, dict[str, float]]:
    """A busy machine is no fault of the lanes'."""
    return {lane.name: {"deadline": 60.0} for lane in SEEDS[recipe].lanes}


async def assert_found(client: AsyncRecollect) -> None:
    """Each recipe's keyword lanes find the text by each of its words."""
    for recipe, kind in RECIPES.items():
        work = client.space(recipe)
        await work.remember(TEXT, kind=kind)
        for word in WORDS:
            answer = await work.recall(word, recipe=recipe, lanes=patient(recipe))
            found = sum(lane.candidates for lane in answer.lanes if lane.leg == "keyword")
            assert found == 1, (recipe, word)


@pytest.fixture(params=["sqlite", "postgres"])
def anywhere(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "sqlite":
        return str(request.getfixturevalue("url"))
    return url_of(request.getfixturevalue("pg_database"))


async def test_the_seeds_recipes_find_words_beside_signs(anywhere: str) -> None:
    """Quotes, dashes and dots are no letters, and letters of other alphabets are: the same on both stores."""
    async with AsyncRecollect(anywhere, embedder="hashing") as client:
        await assert_found(client)


def test_both_stores_make_the_same_words(pg_dsn: str) -> None:
    """A word between two signs, for every sign and letter that people commonly type."""
    signs = "“”‘’„‚«»‹›–—…•·§¶†‡©®™°€£¥×÷¿¡′″−≤≥→←✓★№"
    alphabets = "äöüßéèêçñøåæœłśžčřűőığαβγδжщяאבגद中文日本語한국"
    text = " ".join([f"a{sign}b" for sign in signs] + [f"a{letter}b" for letter in alphabets])
    with psycopg.connect(pg_dsn) as db:
        rows = db.execute("SELECT lexeme FROM unnest(to_tsvector('simple', %s))", [text]).fetchall()
    assert {word for (word,) in rows} == {*lexemes("simple", text)}


@pytest.fixture
def old_folder(pg_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a store that was made under LC_CTYPE=C and holds the text, indexed by the seeds' words."""
    with monkeypatch.context() as patch:
        patch.setattr(letters, "LOCALES", ("C",))
        asyncio.run(make_old(pg_folder))
    yield pg_folder
    for pid in watchdog.processes(pg_folder / "postgres"):
        os.kill(pid, signal.SIGKILL)


async def make_old(folder: Path) -> None:
    async with AsyncRecollect(embedded(folder), embedder="hashing") as client:
        for recipe, kind in RECIPES.items():
            await client.space(recipe).remember(TEXT, kind=kind)
            answer = await client.space(recipe).recall("threadline", recipe=recipe, lanes=patient(recipe))
            assert not sum(lane.candidates for lane in answer.lanes if lane.leg == "keyword")


async def test_an_older_folder_is_brought_over(old_folder: Path) -> None:
    """When it is opened: memories that were there are found by the words beside signs, and so are new ones."""
    await assert_brought_over(old_folder)
    async with AsyncRecollect(embedded(old_folder), embedder="hashing") as client:
        assert "LC_CTYPE" not in str(await client.doctor())


def test_bringing_it_over_is_killed_half_way(old_folder: Path) -> None:
    """The opener is killed while it reads the words again, and the server with it: the next one finishes it, and
    nothing is lost.
    """
    server = EmbeddedServer(old_folder)
    with psycopg.connect(asyncio.run(server.start()), options="-c search_path=recollect") as db:
        db.execute("LOCK TABLE memories IN SHARE MODE")
        with subprocess.Popen([sys.executable, "-c", OPEN, embedded(old_folder)], stdout=subprocess.PIPE) as opener:
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'memories'::regclass"
            while db.execute(waiting).fetchone() == (0,):
                assert opener.poll() is None
                time.sleep(0.02)
            opener.kill()
    for pid in watchdog.processes(old_folder / "postgres"):
        os.kill(pid, signal.SIGKILL)
    asyncio.run(assert_brought_over(old_folder))
    asyncio.run(server.stop())


async def assert_brought_over(folder: Path) -> None:
    async with AsyncRecollect(embedded(folder), embedder="hashing") as client:
        await assert_found(client)
        for recipe in RECIPES:
            assert (await client.space(recipe).stats()).memories == 1


@pytest.fixture
def c_database(pg_dsn: str) -> Iterator[str]:
    """A database of a user's whose LC_CTYPE is C."""
    name = f"recollect_test_{os.getpid()}_letters"
    with psycopg.connect(pg_dsn, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'")
        yield make_conninfo(pg_dsn, dbname=name)
        db.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_users_server_that_cannot_tell_letters(c_database: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its store works and is left as it is; opening it warns once, and doctor says what to do."""
    with caplog.at_level(logging.WARNING, logger="recollect"):
        async with AsyncRecollect(url_of(c_database), embedder="hashing") as client:
            await client.space("work").remember(TEXT)
            (told,) = [check.detail for check in (await client.doctor()).checks if "LC_CTYPE" in check.detail]
            assert "recollect copy" in told
    assert sum("LC_CTYPE" in record.getMessage() for record in caplog.records) == 1


async def test_a_users_server_that_can(pg_store: PostgresStore) -> None:
    """There is nothing to remark."""
    assert not any("LC_CTYPE" in remark for remark in await pg_store.remarks())


async def test_an_outdated_private_store_is_migrated_when_it_is_opened(pg_folder: Path) -> None:
    """As a file is; it is nobody else's."""
    old = (Path(__file__).parent / "postgres_schemas" / "001.sql").read_text()
    server = EmbeddedServer(pg_folder)
    with psycopg.connect(await server.start(), autocommit=True) as db:
        db.execute("CREATE EXTENSION vector; CREATE SCHEMA recollect; SET search_path = recollect, public")
        db.execute(old)
        db.execute("INSERT INTO facts VALUES ('version', '1') ON CONFLICT (name) DO UPDATE SET value = '1'")
    await server.stop()
    async with AsyncRecollect(embedded(pg_folder), embedder="hashing") as client:
        await client.space("work").remember("Invoice 12345 was paid on 3 May")
    assert not (await PostgresStore.embedded(pg_folder, PostgresSettings()).migrate(dry_run=True)).steps
