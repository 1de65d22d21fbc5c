"""`kill -9` at random moments of backup, restore, copy and embedding: run again, nothing is lost or half there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from threading import Event, Thread

import pytest

from recollect import Draft, Recollect
from tests.attack.killing import begin, kill_within, ready
from tests.conftest import FlakyEmbedder

pytestmark = pytest.mark.attack

MEMORIES = 400
KILLS = 3
BACKUP = """
with Recollect(sys.argv[1], embedder="hashing") as r:
    r.backup(sys.argv[2], force=True)
"""
RESTORE = "Recollect.restore(sys.argv[1], sys.argv[2])"
COPY = "Recollect.copy(sys.argv[1], sys.argv[2])"
EMBED = """
with Recollect(sys.argv[1], embedder="hashing") as r:
    r.space("work").settle()
"""
REMEMBER = """
from itertools import count
with Recollect(sys.argv[1], embedder="hashing") as r:
    for n in count():
        print(r.space("work").remember(f"written meanwhile {n}").memory.id, flush=True)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with memories, vectors and links."""
    url = f"sqlite:///{tmp_path_factory.mktemp('source') / 'memory.db'}"
    with Recollect(url, embedder="hashing") as r:
        r.space("work").remember_many([Draft(f"note {n} about whales", thread=f"{n % 7}") for n in range(MEMORIES)])
        r.space("work").settle()
    return url


def test_a_backup_is_killed(tmp_path: Path, source: str) -> None:
    """There is none under its name, or a whole one; the next one succeeds, and nothing else is left beside it."""
    file = tmp_path / "monday.db"
    for _ in range(KILLS):
        kill_within(0.4, BACKUP, source, str(file))
        if file.exists():
            check_backup(file, tmp_path / "restored.db")
    with Recollect(source, embedder="hashing") as r:
        assert r.backup(file, force=True).memories == MEMORIES
    check_backup(file, tmp_path / "restored.db")
    assert not [*tmp_path.glob(".*/memory.db*")]


def check_backup(file: Path, target: Path) -> None:
    assert not file.with_name(f"{file.name}-wal").exists()
    restored = Recollect.restore(file, f"sqlite:///{target}")
    assert restored.verified
    assert restored.spaces[0].target.memories == MEMORIES


@pytest.mark.parametrize("work", [RESTORE, COPY], ids=["restore", "copy"])
def test_a_copy_is_killed(tmp_path: Path, source: str, work: str) -> None:
    """What it left is not called whole, and running it again completes it."""
    file, target = tmp_path / "monday.db", f"sqlite:///{tmp_path / 'target.db'}"
    with Recollect(source, embedder="hashing") as r:
        r.backup(file)
    given = str(file) if work is RESTORE else source
    for _ in range(KILLS):
        kill_within(0.5, work, given, target)
    copied = Recollect.restore(file, target) if work is RESTORE else Recollect.copy(source, target)
    assert copied.verified
    assert copied.spaces[0].target.memories == MEMORIES
    with Recollect(target, embedder="hashing") as r:
        assert r.doctor().ok


def test_embedding_is_killed(tmp_path: Path) -> None:
    """What waits for a vector goes on waiting until it has one."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    embedder = FlakyEmbedder()
    embedder.down = True
    with Recollect(url, embedder=embedder) as r:
        r.space("work").remember_many([Draft(f"note {n} about whales") for n in range(MEMORIES)])
    for _ in range(KILLS):
        kill_within(0.5, EMBED, url)
    with Recollect(url, embedder="hashing") as r:
        r.space("work").settle()
        stats = r.space("work").stats()
        assert (stats.memories, stats.pending) == (MEMORIES, 0)
        assert r.doctor().ok


def test_backups_while_others_write(tmp_path: Path) -> None:
    """Each holds what had been acknowledged before it began, verifies, and opens."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with ready(REMEMBER, url) as one, ready(REMEMBER, url) as other:
        written: list[str] = []
        begun = Event()

        def read(writer: subprocess.Popen[str]) -> None:
            assert writer.stdout
            for line in writer.stdout:
                written.append(line.strip())
                begun.set()

        readers = [Thread(target=read, args=(writer,), daemon=True) for writer in (one, other)]
        for writer, reader in zip((one, other), readers, strict=True):
            begin(writer)
            reader.start()
        assert begun.wait(30)
        for number in range(3):
            before = list(written)
            file = tmp_path / f"{number}.db"
            with Recollect(url, embedder="hashing") as r:
                r.backup(file)
            with Recollect(f"sqlite:///{file}", embedder="hashing") as r:
                assert r.doctor().ok
                assert set(before) <= {memory.id for memory in r.space("work").list(limit=1000).memories}
    for reader in readers:
        reader.join(30)
