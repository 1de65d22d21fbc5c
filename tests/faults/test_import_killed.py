"""`kill -9` during an import: all that was acknowledged is there, and running it again completes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from recollect import Recollect

LINES = 2_000
IMPORTER = """
import sys
from recollect import Recollect
url, file = sys.argv[1:]
with Recollect(url, embedder="hashing") as r, open(file, encoding="utf-8") as lines:
    r.space("work").import_lines(lines, on_progress=lambda done: print(done.created, flush=True))
"""


def test_a_killed_import_loses_nothing_it_had_reported_and_is_completed_by_another(tmp_path: Path) -> None:
    """What was reported as created is there after the kill; the second run adds the rest, and nothing twice."""
    file, url = tmp_path / "notes.jsonl", f"sqlite:///{tmp_path / 'memory.db'}"
    file.write_text("".join(json.dumps({"text": f"note number {n}"}) + "\n" for n in range(LINES)), encoding="utf-8")
    importer = subprocess.Popen([sys.executable, "-c", IMPORTER, url, str(file)], stdout=subprocess.PIPE, text=True)
    assert importer.stdout is not None
    reported = 0
    for line in importer.stdout:
        reported = int(line)
        if reported >= LINES // 4:
            os.kill(importer.pid, signal.SIGKILL)
            break
    importer.stdout.close()
    assert importer.wait() == -signal.SIGKILL
    with Recollect(url, embedder="hashing") as r:
        work = r.space("work")
        kept = work.stats().memories
        assert reported <= kept < LINES
        with file.open(encoding="utf-8") as lines:
            done = work.import_lines(lines)
        assert (done.created, done.copies) == (LINES - kept, kept)
        assert work.stats().memories == LINES
        assert [hit.memory.text for hit in work.recall("note number 1999", limit=1)] == ["note number 1999"]
