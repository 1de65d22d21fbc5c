"""How long `recollect mcp` takes to answer `initialize`, against what importing the protocol's package alone takes.

    python benchmarks/mcp_start.py [--runs 15]

The two are run in turns, and compared by their medians; the aim is a ratio of at most 2.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "0"},
    },
}


def import_time() -> float:
    """Seconds that a Python which only imports the server's package lives."""
    started = perf_counter()
    subprocess.run([sys.executable, "-c", "import mcp.server"], check=True)
    return perf_counter() - started


def answer_time(folder: Path) -> float:
    """Seconds from starting the server, on a store that is not there yet, to its answer."""
    started = perf_counter()
    command = [sys.executable, "-m", "recollect.servers.cli", "mcp", "--store", f"sqlite:///{folder / 'memory.db'}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        took = perf_counter() - started
        server.stdin.close()
    assert answer["result"]["serverInfo"]["name"] == "recollect"
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        import_time(), answer_time(Path(folder))  # the first ones read files that are not in memory yet
        pairs = [(import_time(), answer_time(Path(folder))) for _ in range(runs)]
    alone, answered = (median(times) for times in zip(*pairs, strict=True))
    print(f"import mcp.server: {alone * 1000:.0f} ms")
    print(f"initialize answered: {answered * 1000:.0f} ms")
    print(f"ratio: {answered / alone:.2f} (at most 2)")


if __name__ == "__main__":
    main()
