"""A store that is opened by several names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recollect import AsyncRecollect
from recollect.stores.sqlite.store import SqliteStore
from recollect.types import Reply

pytestmark = pytest.mark.attack


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """Another name of `memory.db`, in another folder."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(tmp_path / "memory.db")
    return link


async def test_a_key_that_is_under_way_is_so_by_every_name(tmp_path: Path, link: Path) -> None:
    """Whoever opens the store by a link does not run the request again."""
    now = datetime.now(UTC)
    one, other = SqliteStore(tmp_path / "memory.db"), SqliteStore(link)
    await one.open()
    await other.open()
    try:
        claims = [
            await store.ledger.claim("work", "k", "f", now=now, expires=now + timedelta(1)) for store in (one, other)
        ]
    finally:
        await other.close()
        await one.close()
    assert claims == [None, Reply("f", None, b"")]


async def test_a_log_is_not_missing_by_another_name(tmp_path: Path, link: Path) -> None:
    """A store that is in use is not called a torn copy by who opens it by a link."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with AsyncRecollect(url, embedder="hashing") as client:
        await client.space("work").remember("The red door")
    async with AsyncRecollect(url, embedder="hashing") as client:
        await client.space("work").remember("The green door")
        store = SqliteStore(link)
        await store.open()
        try:
            assert await store.remarks() == []
        finally:
            await store.close()
