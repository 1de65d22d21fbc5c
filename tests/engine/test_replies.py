"""Requests with an idempotency key: run once, however often and by however many processes they are sent."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

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

asyncio.run(claim(sys.argv[1]))
"""


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
    got = [int(line) for process in started for line in process.communicate()[0].split()]
    assert [process.returncode for process in started] == [0, 0]
    assert sorted(got) == list(range(KEYS))


async def test_how_long_a_key_is_kept(tmp_path: Path) -> None:
    """A request whose process was lost can be sent again before long; an answer is kept for a day."""
    store = SqliteStore(tmp_path / "memory.db")
    await store.open()
    replies, moment = Replies(store), timedelta(minutes=1)
    try:
        for key, kept in (("lost", UNDER_WAY), ("answered", KEPT)):
            began = datetime.now(UTC)
            assert await replies.claim("work", key, "request") is None
            if key == "answered":
                await replies.reply("work", key, 200, b"")
            for now, is_there in ((began + kept - moment, True), (began + kept + moment, False)):
                found = await store.claim("work", key, "again", now=now, expires=now)
                assert (found is not None) is is_there
    finally:
        await store.close()


@pytest.mark.parametrize("key", ["", " ", "a\x00b", "k" * 201])
async def test_a_bad_key_is_refused(tmp_path: Path, key: str) -> None:
    """In a sentence that names what it was to be."""
    async with AsyncRecollect(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing") as r:
        with pytest.raises(InvalidRequest, match="idempotency key"):
            await r.replies.claim("work", key, "request")
