"""`kill -9` during a copy: running it again completes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from recollect import Draft, Recollect

MEMORIES = 3_000
COPIER = """
import sys
from recollect import Recollect
Recollect.copy(*sys.argv[1:], on_progress=lambda now: print(now.done, flush=True))
"""


def test_a_killed_copy_is_completed_by_another(tmp_path: Path) -> None:
    """What had been reported is there after the kill; the second run adds the rest, and both stores hold the same."""
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("source", "target")]
    with Recollect(urls[0], embedder="hashing") as r:
        notes = [Draft(f"note number {n}", thread=f"{n % 7}") for n in range(MEMORIES)]
        r.space("work").remember_many(notes)
        r.space("work").settle()
    copier = subprocess.Popen([sys.executable, "-c", COPIER, *urls], stdout=subprocess.PIPE, text=True)
    assert copier.stdout is not None
    reported = next(int(line) for line in copier.stdout if int(line) >= MEMORIES // 4)
    os.kill(copier.pid, signal.SIGKILL)
    copier.stdout.close()
    assert copier.wait() == -signal.SIGKILL
    with Recollect(urls[1], embedder="hashing") as r:
        kept = r.space("work").stats().memories
    assert reported <= kept < MEMORIES
    (work,) = Recollect.copy(*urls).spaces
    assert work.verified
    assert (work.new, work.target.memories) == (MEMORIES - kept, MEMORIES)
