"""The folder of owners beside a SQLite store, as somebody else with access to it might leave it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recollect.errors import BackendError
from recollect.stores.sqlite.owners import TIDIED, Owner
from recollect.stores.sqlite.store import SqliteStore

NAME = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "memory.db.owners"
    folder.mkdir()
    return folder


def test_a_link_to_another_programs_database(folder: Path, tmp_path: Path) -> None:
    """It is not an owner's file: the database that it leads to stays in the mode that its own program gave it."""
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.executescript("PRAGMA journal_mode = wal; CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    before = other.read_bytes()
    (folder / NAME).symlink_to(other)
    owner = Owner(folder)
    assert owner.name() != NAME
    assert not owner.is_dead(NAME)
    owner.close()
    assert other.read_bytes() == before
    assert (folder / NAME).is_symlink()


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\x00" + bytes(84)])
def test_files_with_something_in_them(folder: Path, content: bytes) -> None:
    """Owners write nothing, so that a file with something in it is somebody else's, and stays."""
    (folder / NAME).write_bytes(content)
    owner = Owner(folder)
    assert owner.name() != NAME
    assert not owner.is_dead(NAME)
    owner.close()
    assert (folder / NAME).read_bytes() == content


def test_things_that_are_no_files(folder: Path) -> None:
    """A folder, a pipe, a link to nowhere and a file of terabytes neither end a claim nor hold it up."""
    (folder / NAME).mkdir()
    os.mkfifo(folder / NAME[::-1])
    (folder / NAME.replace("0", "1")).symlink_to("nowhere")
    with (folder / NAME.replace("0", "2")).open("wb") as huge:
        huge.truncate(1 << 42)
    owner = Owner(folder)
    assert len(owner.name()) == len(NAME)
    owner.close()
    assert len([*folder.iterdir()]) == 4


def test_what_the_dead_leave_behind_is_removed(folder: Path) -> None:
    """An empty file that nobody has locked."""
    (folder / NAME).touch()
    owner = Owner(folder)
    assert [file.name for file in folder.iterdir()] == [NAME]
    owner.name()
    assert not (folder / NAME).exists()
    assert owner.is_dead(NAME)
    owner.close()


def test_very_many_dead(folder: Path) -> None:
    """A claim does not wait until all of them are removed; the next ones go on with it."""
    for number in range(TIDIED + 10):
        (folder / f"{number:032x}").touch()
    for left in (10, 0):
        owner = Owner(folder)
        owner.name()
        owner.close()
        assert len([*folder.iterdir()]) == left


async def test_a_file_in_the_folders_place(tmp_path: Path) -> None:
    """The error names it."""
    (tmp_path / "memory.db.owners").write_text("mine")
    now = datetime.now(UTC)
    store = SqliteStore(tmp_path / "memory.db")
    await store.open()
    try:
        with pytest.raises(BackendError, match=r"memory\.db\.owners cannot be used"):
            await store.ledger.claim("work", "k", "f", now=now, expires=now + timedelta(1))
    finally:
        await store.close()
