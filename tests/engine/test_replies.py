"""Requests with an idempotency key: run once, however often and by however many processes they are sent."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import AsyncRecollect, InvalidRequest
from recollect.engine.replies import KEPT, UNDER_WAY, Replies
from recollect.stores.sqlite.store import SqliteStore
from recollect.types import Reply

KEYS = 100
CLAIMER = f"""
import asyncio, sys
from recollect import AsyncRecollect

async def claim(url):
    async with AsyncRecollect(url, embedder="hashing") as r:
        print("ready", flush=True)
        sys.stdin.readline()
        for n in range({KEYS}):
            if await r.replies.claim("work", f"key {{n}}", "request") is None:
                print(n)
        print("done", flush=True)
        sys.stdin.readline()  # who ends lets go of what it has not answered

asyncio.run(claim(sys.argv[1]))
"""
HOLDER = """
import asyncio, sys
from recollect import AsyncRecollect

async def hold(url):
    async with AsyncRecollect(url, embedder="hashing") as r:
        await r.replies.claim("work", "answered", "request")
        await r.replies.reply("work", "answered", 201, b"{}")
        print(await r.replies.claim("work", "key", "request"), flush=True)
        await asyncio.sleep(600)

asyncio.run(hold(sys.argv[1]))
"""


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind, which is not there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    return f"postgresql://?{urlencode(conninfo_to_dict(request.getfixturevalue('pg_database')))}"


@contextmanager
def holding(url: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has claimed a key and works on its request, until it is killed."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, url], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "None\n"
            yield process
        finally:
            process.kill()


async def claim_freed(r: AsyncRecollect, key: str) -> None:
    """Claim a key as soon as it is free. A server needs a moment to notice that a client is gone; where it does not,
    the test ends by its own time limit, well before the key expires.
    """
    async with asyncio.timeout(60):
        while await r.replies.claim("work", key, "another") is not None:  # noqa: ASYNC110 (what ends is a process)
            await asyncio.sleep(0.01)


async def test_a_request_is_run_once(tmp_path: Path) -> None:
    """Who claims its key first runs it; others learn that it is under way, and then the answer."""
    async with AsyncRecollect(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing") as r:
        assert await r.replies.claim("work", "key", "request") is None
        assert await r.replies.claim("work", "key", "request") == Reply("request")
        await r.replies.reply("work", "key", 201, b"{}")
        await r.replies.release("work", "key")
        assert await r.replies.claim("work", "key", "another") == Reply("request", 201, b"{}")
        assert await r.replies.claim("home", "key", "request") is None
        await r.replies.release("home", "key")
        assert await r.replies.claim("home", "key", "another") is None


def test_two_processes_share_the_keys(tmp_path: Path) -> None:
    """Each key is got by exactly one of two processes that claim all of them at the same time."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen([sys.executable, "-c", CLAIMER, url], stdin=pipe, stdout=pipe, text=True) for _ in range(2)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    got = [int(line) for process in started for line in iter(process.stdout.readline, "done\n")]  # type: ignore[union-attr]
    for process in started:
        process.communicate("end\n")
    assert [process.returncode for process in started] == [0, 0]
    assert sorted(got) == list(range(KEYS))


async def test_the_key_of_a_killed_process_is_free_at_once(store_url: str) -> None:
    """A key stays taken while the process that claimed it lives, for others and for who claims keys itself. Killed in
    the middle of its request, it has no key any more; what it had answered stays.
    """
    async with AsyncRecollect(store_url, embedder="hashing") as r:
        assert await r.replies.claim("work", "mine", "request") is None
        with holding(store_url) as process:
            for _ in range(3):
                assert await r.replies.claim("work", "key", "another") == Reply("request")
                assert await r.replies.claim("work", "mine", "another") == Reply("request")
            process.kill()
            process.wait()
            await claim_freed(r, "key")
        assert await r.replies.claim("work", "key", "request") == Reply("another")
        assert await r.replies.claim("work", "answered", "request") == Reply("request", 201, b"{}")
        assert await r.replies.claim("work", "mine", "another") == Reply("request")


async def test_a_store_that_closes_lets_go_of_its_keys(store_url: str) -> None:
    """In the same process, too: a server that was told to stop leaves no key taken."""
    async with AsyncRecollect(store_url, embedder="hashing") as r:
        async with AsyncRecollect(store_url, embedder="hashing") as other:
            assert await other.replies.claim("work", "key", "request") is None
            assert await r.replies.claim("work", "key", "request") == Reply("request")
        await claim_freed(r, "key")


async def test_who_was_given_up_changes_nothing(store_url: str) -> None:
    """An owner whose key another has taken over, because its time was over, neither answers it nor lets go of it."""
    async with AsyncRecollect(store_url, embedder="hashing") as r, AsyncRecollect(store_url, embedder="hashing") as s:
        now = datetime.now(UTC)
        assert await r.replies.claim("work", "key", "request") is None
        later = now + UNDER_WAY + timedelta(minutes=1)
        assert await s.replies._ledger.claim("work", "key", "again", now=later, expires=later + UNDER_WAY) is None
        await r.replies.reply("work", "key", 200, b"")
        await r.replies.release("work", "key")
        assert await s.replies.claim("work", "key", "again") == Reply("again")


async def test_an_owner_that_lost_its_connection_has_its_keys_again(pg_database: str) -> None:
    """On Postgres an owner is known by a connection. One that was cut is made anew with the next claim."""
    url = f"postgresql://?{urlencode(conninfo_to_dict(pg_database))}"
    async with AsyncRecollect(url, embedder="hashing") as r, AsyncRecollect(url, embedder="hashing") as s:
        assert await r.replies.claim("work", "key", "request") is None
        with psycopg.connect(pg_database, autocommit=True) as db:
            held = "SELECT pid FROM pg_locks WHERE locktype = 'advisory'"
            assert len(db.execute(f"SELECT pg_terminate_backend(pid, 10000) FROM ({held}) AS one").fetchall()) == 1
        assert await r.replies.claim("work", "other", "request") is None
        assert await s.replies.claim("work", "key", "request") == Reply("request")


def test_owners_that_were_killed_leave_no_files(tmp_path: Path) -> None:
    """The next one that claims a key removes what is left of them, and at its end its own."""
    url, folder = f"sqlite:///{tmp_path / 'memory.db'}", tmp_path / "memory.db.owners"
    for _ in range(2):
        with holding(url) as process:
            assert len([*folder.iterdir()]) == 1
            process.kill()
            process.wait()
    asyncio.run(claim_and_close(url))
    assert [*folder.iterdir()] == []


async def claim_and_close(url: str) -> None:
    async with AsyncRecollect(url, embedder="hashing") as r:
        await r.replies.claim("work", "third", "request")


async def test_how_long_a_key_is_kept(tmp_path: Path) -> None:
    """A request is given up after ten minutes, though its process lives; an answer is kept for a day."""
    store = SqliteStore(tmp_path / "memory.db")
    await store.open()
    replies, moment = Replies(store.ledger), timedelta(minutes=1)
    try:
        for key, kept in (("lost", UNDER_WAY), ("answered", KEPT)):
            began = datetime.now(UTC)
            assert await replies.claim("work", key, "request") is None
            if key == "answered":
                await replies.reply("work", key, 200, b"")
            for now, is_there in ((began + kept - moment, True), (began + kept + moment, False)):
                found = await store.ledger.claim("work", key, "again", now=now, expires=now)
                assert (found is not None) is is_there
    finally:
        await store.close()


@pytest.mark.parametrize("key", ["", " ", "a\x00b", "k" * 201])
async def test_a_bad_key_is_refused(tmp_path: Path, key: str) -> None:
    """In a sentence that names what it was to be."""
    async with AsyncRecollect(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing") as r:
        with pytest.raises(InvalidRequest, match="idempotency key"):
            await r.replies.claim("work", key, "request")
