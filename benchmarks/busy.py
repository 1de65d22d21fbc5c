"""Whether answers stay whole on a busy machine: cold `recollect recall` processes at once, beside busy loops.

    python benchmarks/busy.py [--rounds 50] [--processes 8] [--loops 4]

Every process opens the same SQLite file and loads the packaged model, as users do, with the defaults. Half of them ask
for 100 hits. An answer counts when the process exits with 0 and every lane is `ok`. Exits with 1 when one is not so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter

RECOLLECT = (sys.executable, "-m", "recollect.servers.cli")
QUESTIONS = ("when was invoice 17 paid?", "which bill was settled late?", "who signed the contract?", "ERR_CONN_42")
LIMITS = ((), ("--limit", "100"))
MEMORIES = 120


def fill(store: str) -> None:
    """Memories about a few things, with words and meaning to be found by."""
    topics = ("Invoice {} was paid on 3 May", "Contract {} was signed by Ada", "ERR_CONN_{} is a refused connection")
    lines = (json.dumps({"text": topics[n % len(topics)].format(n)}) for n in range(MEMORIES))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "memories.jsonl")
        file.write_text("\n".join(lines))
        subprocess.run([*RECOLLECT, "import", str(file), "--store", store], check=True, capture_output=True)


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Processes that do nothing, as fast as they can, as long as this one lives."""
    spin = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    spinning = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(loops)]
    try:
        yield
    finally:
        for one in spinning:
            one.kill()
            one.wait()


def ask(store: str, processes: int) -> list[str]:
    """Recalls in processes of their own, all at once; what became of each, `whole` where nothing is missing."""
    calls = islice(zip(cycle(QUESTIONS), cycle(LIMITS * 2 + LIMITS[::-1] * 2), strict=False), processes)
    running = [
        subprocess.Popen(
            [*RECOLLECT, "recall", question, *limit, "--store", store, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for question, limit in calls
    ]
    return [verdict(*one.communicate(), one.returncode) for one in running]


def verdict(answer: str, said: str, status: int) -> str:
    if status != 0:
        return f"exit {status}: {said.strip().splitlines()[-1] if said.strip() else ''}"
    recall = json.loads(answer)
    missing = [
        f"{lane['lane']} {lane['status']}: {lane['reason']}" for lane in recall["lanes"] if lane["status"] != "ok"
    ]
    if recall["degraded"] or missing:
        return f"degraded: {'; '.join(missing)}"
    return "whole" if recall["hits"] else "empty"


def measure(rounds: int, processes: int, loops: int) -> tuple[Counter[str], list[float]]:
    """How all recalls of all rounds ended, and how many seconds each round took."""
    ended: Counter[str] = Counter()
    times = []
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder, 'memory.db')}"
        fill(store)
        with busy(loops):
            for _ in range(rounds):
                started = perf_counter()
                ended.update(ask(store, processes))
                times.append(perf_counter() - started)
                print(f"{len(times)}: {times[-1]:.1f} s, {dict(ended)}", file=sys.stderr, flush=True)
    return ended, times


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--processes", type=int, default=8, help="recalls at once")
    parser.add_argument("--loops", type=int, default=4, help="busy loops beside them")
    options = parser.parse_args(words)
    ended, times = measure(options.rounds, options.processes, options.loops)
    print(f"{options.processes} recalls at once beside {options.loops} busy loops on {os.cpu_count()} cores")
    print(f"{options.rounds} rounds, seconds each: median {median(times):.1f}, most {max(times):.1f}")
    for how, count in ended.most_common():
        print(f"{count:5} {how}")
    return 0 if set(ended) == {"whole"} else 1


if __name__ == "__main__":
    sys.exit(main())
