"""Stores, indexes and embedders of other packages are opened by name, as ours are."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import AsyncRecollect, ConfigError, Settings
from recollect.composition import INDEXES, STORES
from recollect.embedders import EMBEDDERS
from recollect.parts import Parts
from tests.third_party import install

SOURCE = """
from pathlib import Path
from recollect.embedders.hashing import HashingEmbedder
from recollect.stores.sqlite.store import SqliteStore

def make_store(url, settings, *, create):
    return SqliteStore(Path(url.removeprefix("notes://")))

def make_index(url, settings, store):
    return object()

def make_embedder(argument, settings):
    return HashingEmbedder(int(argument)) if argument else None
"""
ENTRY_POINTS = """
[recollect.stores]
notes = theirs:make_store
broken = theirs:nothing
sqlite = theirs:nothing
[recollect.indexes]
shelf = theirs:make_index
[recollect.embedders]
theirs = theirs:make_embedder
needy = theirs_that_is_missing:make [big]
"""


@pytest.fixture(autouse=True)
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed package that offers one of each."""
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, "theirs", SOURCE, ENTRY_POINTS)
    monkeypatch.syspath_prepend(folder)
    return folder


async def test_their_store_and_their_embedder_serve_a_recall(tmp_path: Path) -> None:
    """The scheme of a URL and the name of an embedder lead to the other package."""
    async with AsyncRecollect(f"notes://{tmp_path / 'notes.db'}", embedder="theirs:64") as notes:
        await notes.space("work").remember("Invoice 12345 was paid on 3 May")
        answer = await notes.space("work").recall("invoice 12345")
    assert [hit.memory.text for hit in answer.hits] == ["Invoice 12345 was paid on 3 May"]
    assert (tmp_path / "notes.db").is_file()


def test_ours_cannot_be_replaced(tmp_path: Path) -> None:
    """Their `sqlite` leads nowhere: the scheme is ours."""
    assert AsyncRecollect(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing")._store.name == "sqlite"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(url="mysql://host/db"), "is not the URL of a store: write sqlite:///FILE"),
        (Settings(url="mysql://host/db"), "other packages open: broken://, notes://"),
        (
            Settings(url="broken://x"),
            "theirs offers 'broken' in recollect.stores as theirs:nothing, which does not exist",
        ),
        (Settings(url="sqlite:///x.db", embedder="theirs"), "the embedder 'theirs' does not exist: use one of local"),
        (Settings(url="sqlite:///x.db", embedder="needy:x"), r"pip install 'theirs\[big\]'"),
        (Settings(url="sqlite:///x.db", graph="shelf://x"), "'shelf://x' is not the URL of a graph index"),
        (Settings(url="sqlite:///x.db", vectors="shelf://x"), "'shelf://x' is not the URL of a vector index"),
    ],
)
def test_what_cannot_be_made_is_said(settings: Settings, message: str) -> None:
    """A name nobody has, one that leads nowhere, one whose library is missing, one that answers another leg."""
    with pytest.raises(ConfigError, match=message):
        AsyncRecollect(settings=settings)


def test_two_packages_with_one_name_are_both_named(theirs: Path) -> None:
    """Neither is taken by chance."""
    install(theirs, "twin", SOURCE, ENTRY_POINTS)
    with pytest.raises(ConfigError, match=r"several packages offer 'notes' in recollect.stores: theirs, twin"):
        AsyncRecollect("notes://x", embedder="hashing")


@pytest.mark.parametrize("parts", [STORES, INDEXES, EMBEDDERS], ids=lambda parts: parts.group)
def test_our_own_are_where_the_table_says(parts: Parts[object]) -> None:
    """Each of our names leads to something that can be called."""
    assert all(callable(parts.load(name)) for name in parts.ours)
