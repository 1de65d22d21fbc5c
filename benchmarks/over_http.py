"""What HTTP adds to a recall, and how a server bears many clients at once, measured in one run on this machine.

    python benchmarks/over_http.py --size 10000 --questions 300 --clients 200 --seconds 60

The server is `recollect serve` in a process of its own, with tokens; the library asks the same store from this one, and
the two take turns. The clients that ask all at once share the machine with the server. Nothing is asserted: the goals
are printed beside.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from time import perf_counter

import numpy as np
from material import SETS, SPACE, WARM_UP, Spread, read_sets, splice
from rich.console import Console
from rich.table import Table

from recollect import AsyncRecollect, Draft
from recollect.evaluation.metrics import percentile

LIBRARY, SHOWN, HTTP = "library", "library and snippets", "HTTP"
GOAL_ADDED = "<= 3 ms"
OK = 200
RESIDENT = re.compile(r"^process_resident_memory_bytes (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs, and the token to call it with."""

    host: str
    port: int
    secret: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}

    def mebibytes(self) -> float:
        """The memory that its process holds."""
        connection = http.client.HTTPConnection(self.host, self.port)
        connection.request("GET", "/metrics", headers=self.headers)
        found = RESIDENT.search(connection.getresponse().read().decode())
        connection.close()
        return float(found[1]) / 2**20 if found else float("nan")


@contextmanager
def serving(url: str, embedder: str, secret: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "recollect.servers.cli", "serve", "--port", "0", "--rate", "0"]
    started = subprocess.Popen([*command, "--store", url, "--embedder", embedder], stderr=subprocess.PIPE, text=True)
    try:
        line = started.stderr.readline() if started.stderr else ""
        if not (found := re.search(r"http://([\d.]+):(\d+)", line)):
            sys.exit(f"the server did not start: {line}")
        yield Server(found[1], int(found[2]), secret)
    finally:
        started.terminate()
        started.wait()


def texts_and_questions(folder: Path, size: int, questions: int) -> tuple[list[str], list[str]]:
    draw = np.random.default_rng(0)
    sets = read_sets(folder)
    documents = [document.text for one in sets for document in one.documents]
    asked = [question.text for one in sets for question in one.queries]
    pairs = draw.integers(len(documents), size=(size, 2))
    texts = [splice(documents[one], documents[other], number) for number, (one, other) in enumerate(pairs)]
    return texts, [asked[n] for n in draw.permutation(len(asked))[: questions + WARM_UP]]


async def measure_added(recollect: AsyncRecollect, server: Server, questions: Sequence[str]) -> dict[str, Spread]:
    """Each question by the library and then by HTTP, on a connection that stays open. The library makes a snippet when
    it is looked at, and HTTP sends it, so what the library takes is counted without and with them.
    """
    space = recollect.space(SPACE)
    bare, shown, by_http = [], [], []
    async with connected(server) as (reader, writer):
        for question in questions:
            started = perf_counter()
            recall = await space.recall(question)
            bare.append(perf_counter() - started)
            for hit in recall:
                assert hit.snippet
            shown.append(perf_counter() - started)
            started = perf_counter()
            status, body = await ask(server, reader, writer, question)
            answer = json.loads(body)
            by_http.append(perf_counter() - started)
            if status != OK:
                sys.exit(f"the server refused a recall: {answer}")
    return {LIBRARY: Spread.of(bare), SHOWN: Spread.of(shown), HTTP: Spread.of(by_http)}


@dataclass(slots=True)
class Load:
    """What many clients met with."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    degraded: int = 0


async def measure_load(server: Server, questions: Sequence[str], clients: int, seconds: float) -> Load:
    """So many clients, each asking one question after the other."""
    load = Load()
    until = perf_counter() + seconds
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            mine = cycle([*questions[number % len(questions) :], *questions[: number % len(questions)]])
            group.create_task(ask_on(server, mine, until, load))
    return load


async def ask_on(server: Server, questions: Iterator[str], until: float, load: Load) -> None:
    while perf_counter() < until:
        try:
            async with connected(server) as (reader, writer):
                while perf_counter() < until:
                    started = perf_counter()
                    status, body = await ask(server, reader, writer, next(questions))
                    load.seconds.append(perf_counter() - started)
                    load.statuses[str(status)] += 1
                    load.degraded += b'"degraded":true' in body
        except (OSError, asyncio.IncompleteReadError) as error:
            load.statuses[type(error).__name__] += 1


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(
    server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: str
) -> tuple[int, bytes]:
    """One recall over a bare connection: a client that costs as little as can be, for it shares the processors."""
    body = json.dumps({"query": question}).encode()
    lines = [f"POST /v1/spaces/{SPACE}/recall HTTP/1.1", f"Host: {server.host}:{server.port}"]
    lines += [f"{name}: {value}" for name, value in server.headers.items()] + [f"Content-Length: {len(body)}", "", ""]
    writer.write("\r\n".join(lines).encode() + body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r")[0])
    return int(head.split(" ", 2)[1]), await reader.readexactly(length)


def print_added(console: Console, size: int, spreads: dict[str, Spread]) -> None:
    table = Table("", "p50 ms", "p95 ms", "goal", title=f"a recall among {size:,} memories")
    for name, one in spreads.items():
        table.add_row(name, f"{one.p50:.2f}", f"{one.p95:.2f}", "")
    for name, goal in ((SHOWN, GOAL_ADDED), (LIBRARY, "")):
        added = [there - here for there, here in zip(spreads[HTTP], spreads[name], strict=True)]
        table.add_row(f"added to {name}", *(f"{one:.2f}" for one in added), goal)
    console.print(table)


def print_load(console: Console, clients: int, load: Load, seconds: float, held: tuple[float, float]) -> None:
    table = Table("", "measured", "goal", title=f"{clients} clients for {seconds:g} s")
    table.add_row("answers", f"{len(load.seconds):,} ({len(load.seconds) / seconds:,.0f} / s)", "")
    table.add_row("by status", ", ".join(f"{status}: {n:,}" for status, n in load.statuses.items()), "200 alone")
    table.add_row("degraded", f"{load.degraded:,}", "")
    for share in (0.50, 0.95, 0.99):
        table.add_row(f"p{100 * share:.0f} ms", f"{1000 * (percentile(load.seconds, share) or 0):,.0f}", "")
    table.add_row("memory, MiB", f"{held[0]:.0f} at the start, {held[1]:.0f} at the end", "no growth")
    console.print(table)


async def main(arguments: argparse.Namespace, console: Console) -> None:
    texts, questions = texts_and_questions(arguments.data, arguments.size, arguments.questions)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/memory.db"
        async with AsyncRecollect(url, embedder=arguments.embedder) as recollect:
            await recollect.space(SPACE).remember_many(map(Draft, texts))
            await recollect.space(SPACE).settle()
            secret = (await recollect.tokens.create(scope="admin")).secret
            with serving(url, arguments.embedder, secret) as server:
                console.print(f"memory of the server before its first recall: {server.mebibytes():.0f} MiB")
                print_added(console, len(texts), await measure_added(recollect, server, questions))
                await measure_load(server, questions, arguments.clients, arguments.seconds / 10)  # to warm up
                before = server.mebibytes()
                load = await measure_load(server, questions, arguments.clients, arguments.seconds)
                held = before, server.mebibytes()
                print_load(console, arguments.clients, load, arguments.seconds, held)


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=10_000, help="memories in the store")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--clients", type=int, default=200, help="clients that ask at the same time")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they do")
    parser.add_argument("--embedder", default="hashing", help="`local` loads the packaged model")
    parser.add_argument("--data", type=Path, default=SETS, help="a folder of judged sets to take texts from")
    return parser.parse_args(words)


if __name__ == "__main__":
    asyncio.run(main(parse(), Console()))
