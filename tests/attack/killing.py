"""Processes that do one piece of work on a store, and that are killed in the middle of it."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

READY = """
import asyncio, sys
from recollect import AsyncRecollect, Recollect
from recollect.settings import PostgresSettings
from recollect.stores.postgres.store import PostgresStore
from recollect.stores.sqlite.store import SqliteStore
print("ready", flush=True)
sys.stdin.readline()
"""
"""What takes longest is done before the work begins."""
DRAW = random.Random(14)


@contextmanager
def ready(work: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that waits for `begin`; it does not outlive the test."""
    command = [sys.executable, "-c", READY + work, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def run_at_once(work: str, *arguments: Sequence[str]) -> list[int]:
    """Run the work in several processes at the same moment; their exit codes."""
    with ExitStack() as stack:
        processes = [stack.enter_context(ready(work, *words)) for words in arguments]
        for process in processes:
            begin(process)
        return [process.wait(30) for process in processes]


def kill_within(seconds: float, work: str, *arguments: str) -> bool:
    """Kill the work at a random moment within so many seconds; whether it was still under way."""
    with ready(work, *arguments) as process:
        begin(process)
        try:
            process.wait(DRAW.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return True
        assert process.returncode == 0
        return False
