"""As root, another user runs the private server, and no folder that is not ours changes its mode."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import psycopg
import pytest

from recollect.errors import BackendError
from recollect.stores.postgres import programs
from recollect.stores.postgres.server import EmbeddedServer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user to run Postgres")


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Path]:
    """A folder that only root may enter, below another one. Nothing on the way to it changes."""
    folder = tmp_path / "home" / "mine"
    folder.mkdir(parents=True)
    for one in (folder, folder.parent):
        one.chmod(0o700)
    before = modes(folder)
    yield folder
    assert modes(folder) == before


def modes(folder: Path) -> list[int]:
    return [stat.S_IMODE(one.stat().st_mode) for one in (folder, *folder.parents)]


def names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


async def works(folder: Path) -> None:
    server = EmbeddedServer(folder)
    with psycopg.connect(await server.start(), autocommit=True) as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        assert db.execute("SELECT '[1,2]'::vector <=> '[1,2]'").fetchone() == (0.0,)
    await server.stop()


async def test_a_store_below_a_private_folder(private: Path) -> None:
    """It is made, stopped and started again, and the folders above it stay closed to others."""
    await works(private / "store")
    await works(private / "store")


@pytest.fixture
def wheel(private: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment below a private folder, which holds the programs."""
    real = programs._wheel()
    newest = max(real.POSTGRES_VERSIONS)
    install = Path(real.POSTGRES_VERSIONS[newest]).parent
    package = private / "site-packages" / install.parent.name
    shutil.copytree(install, package / install.name, ignore=shutil.ignore_patterns("include", "*.a"))
    libraries = install.parent.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, package.with_name(libraries.name))
    fake = SimpleNamespace(
        POSTGRES_VERSIONS={newest: package / install.name / "bin"}, ensure_user_exists=real.ensure_user_exists
    )
    monkeypatch.setattr(programs, "_wheel", lambda: fake)
    return package


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where copies of programs go: in a folder that everybody may enter, though root's mask closes new ones."""
    with TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        monkeypatch.setattr(programs, "CACHE", Path(parent, "cache"))
        mask = os.umask(0o077)
        yield Path(parent, "cache")
        os.umask(mask)


@pytest.mark.usefixtures("wheel")
async def test_programs_below_a_private_folder(private: Path, cache: Path) -> None:
    """They are copied once to where the other user can run them."""
    await works(private / "store")
    copies = names(cache)
    await works(private / "store")
    assert names(cache) == copies
    assert len(copies) == 1


@pytest.mark.usefixtures("wheel")
def test_programs_that_cannot_be_copied(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the folder that is in the way, and what can be done; nothing is changed."""
    (private / "file").touch()
    monkeypatch.setattr(programs, "CACHE", private / "file" / "cache")
    closed = next(folder for folder in reversed(private.parents) if not folder.stat().st_mode & stat.S_IXOTH)
    with pytest.raises(BackendError, match=rf"may not enter {closed}: run Recollect as another user, or .* `chmod"):
        asyncio.run(EmbeddedServer(private / "store").start())
