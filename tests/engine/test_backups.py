"""backup and restore: one moment of a store as a file, the proof of it, and the way back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import AsyncRecollect, BackendError, InvalidRequest, Recollect

TEXTS = {"home": ["the bins go out on Friday"], "work": ["invoice 12345 was paid", "the build is green again"]}


@pytest.fixture(params=["sqlite", "postgres"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    return f"postgresql://?{urlencode(conninfo_to_dict(request.getfixturevalue('pg_database')))}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backups" / "monday.db"


@asynccontextmanager
async def filled(url: str, file: Path) -> AsyncIterator[AsyncRecollect]:
    """A store that holds the texts, and a folder for backups."""
    await asyncio.to_thread(file.parent.mkdir)
    async with opened(url) as client:
        for space, texts in TEXTS.items():
            for text in texts:
                await client.space(space).remember(text)
        yield client


def opened(url: str | Path) -> AsyncRecollect:
    return AsyncRecollect(f"sqlite:///{url}" if isinstance(url, Path) else url, embedder="hashing")


async def texts(client: AsyncRecollect) -> dict[str, list[str]]:
    spaces = await client.spaces()
    pages = {name: await client.space(name).list(limit=1000) for name in spaces}
    return {name: [memory.text for memory in page.memories] for name, page in pages.items()}


async def diagnosis(file: Path) -> str:
    async with opened(file) as client:
        told = await client.doctor()
    return " ".join(f"{check.name} {check.ok} {check.detail}" for check in told.checks)


async def test_a_backup_is_a_store(anywhere: str, file: Path) -> None:
    """One file with nothing beside it, which opens, holds what the store held, and is verified by doctor."""
    async with filled(anywhere, file) as client:
        done = await client.backup(file)
        assert (done.file, done.spaces) == (str(file), {"home": 1, "work": 2})
    assert await asyncio.to_thread(lambda: [*file.parent.iterdir()]) == [file]
    assert "unchanged since: its 3 memories in 2 spaces agree with their checksum" in await diagnosis(file)
    async with opened(file) as client:
        assert await texts(client) == TEXTS
        assert (await client.space("work").recall("which invoice?"))[0].memory.text == "invoice 12345 was paid"


async def test_others_write_meanwhile(anywhere: str, file: Path) -> None:
    """What was acknowledged before is in it, and of what comes meanwhile a beginning: it is of one moment."""
    acknowledged: list[str] = []

    async def write() -> None:
        async with opened(anywhere) as other:
            for number in count():
                stored = await other.space("work").remember(f"note {number} is kept")
                acknowledged.append(stored.memory.text)

    async with filled(anywhere, file) as client:
        writing = asyncio.create_task(write())
        while len(acknowledged) < 20:  # noqa: ASYNC110 (what is waited for is the writer's own list)
            await asyncio.sleep(0.01)
        before = [*acknowledged]
        done = await client.backup(file)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    async with opened(file) as client:
        notes = (await texts(client))["work"][2:]
        assert notes[: len(before)] == before
        assert notes == [f"note {number} is kept" for number in range(len(notes))]
        assert done.spaces["work"] == len(notes) + 2
    assert "agree with their checksum" in await diagnosis(file)


async def test_nothing_is_overwritten(url: str, file: Path) -> None:
    """A file that is there is left, unless `force` says otherwise; the store itself is never written over, nor one that
    somebody uses; and what fails leaves nothing behind.
    """
    async with filled(url, file) as client:
        await client.backup(file)
        with pytest.raises(InvalidRequest, match="already exists: name another file, or add force=True"):
            await client.backup(file)
        await client.space("work").remember("one more")
        assert (await client.backup(file, force=True)).spaces["work"] == 3
        with pytest.raises(InvalidRequest, match="is the store itself"):
            await client.backup(url.removeprefix("sqlite:///"), force=True)
        with pytest.raises(InvalidRequest, match="does not exist: make it first"):
            await client.backup(file.parent / "deeper" / "tuesday.db")
        async with opened(file):
            with pytest.raises(InvalidRequest, match="is open as a store"):
                await client.backup(file, force=True)
    assert await asyncio.to_thread(lambda: [*file.parent.iterdir()]) == [file]


async def test_a_damaged_backup_is_seen(url: str, file: Path) -> None:
    """One letter changed by another program: doctor says so, and nothing is restored from it."""
    async with filled(url, file) as client:
        await client.backup(file)
    with closing(sqlite3.connect(file)) as db:
        db.execute("UPDATE memories SET text = replace(text, '12345', '12346')")
        db.commit()
    assert "False" in await diagnosis(file)
    assert "damaged, or changed by another program" in await diagnosis(file)
    with pytest.raises(BackendError, match="use another backup"):
        await AsyncRecollect.restore(file, f"sqlite:///{file.parent / 'restored.db'}")


async def test_a_backup_that_is_used_is_a_store_like_any_other(url: str, file: Path) -> None:
    """The first change takes the seal away: there is nothing to verify, and nothing wrong."""
    async with filled(url, file) as client:
        await client.backup(file)
    async with opened(file) as client:
        await client.space("work").remember("one more")
    told = await diagnosis(file)
    assert "backup" not in told
    assert "False" not in told


async def test_restore(anywhere: str, url: str, file: Path) -> None:
    """Into another store, whole or by spaces; again, there is nothing to do."""
    async with filled(url, file) as client:
        await client.backup(file)
    target = f"sqlite:///{file.parent / 'restored.db'}" if anywhere == url else anywhere
    first = await AsyncRecollect.restore(file, target, spaces=["home"])
    assert (first.verified, [space.space for space in first.spaces]) == (True, ["home"])
    for new in (2, 0):
        again = await AsyncRecollect.restore(file, target)
        assert again.verified
        assert sum(space.new for space in again.spaces) == new
    async with opened(target) as client:
        assert await texts(client) == TEXTS


async def test_a_restore_does_not_mix(url: str, file: Path) -> None:
    """A space with memories of its own is refused before anything is copied; with `force` they stay, and what they lack
    is added.
    """
    async with filled(url, file) as client:
        await client.backup(file)
    target = f"sqlite:///{file.parent / 'other.db'}"
    async with opened(target) as client:
        await client.space("work").remember("mine")
    with pytest.raises(InvalidRequest, match=r"space 'work' of .* holds 1 memories that differ from the backup"):
        await AsyncRecollect.restore(file, target)
    async with opened(target) as client:
        assert await texts(client) == {"work": ["mine"]}
    await AsyncRecollect.restore(file, target, force=True)
    async with opened(target) as client:
        found = await texts(client)
        assert sorted(found["work"]) == sorted([*TEXTS["work"], "mine"])
        assert found["home"] == TEXTS["home"]


def test_without_await(url: str, tmp_path: Path) -> None:
    """The synchronous client has both."""
    with Recollect(url, embedder="hashing") as client:
        client.space("work").remember("invoice 12345 was paid")
        assert client.backup(tmp_path / "backup.db").memories == 1
    assert Recollect.restore(tmp_path / "backup.db", f"sqlite:///{tmp_path / 'restored.db'}").verified
