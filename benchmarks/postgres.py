"""The Postgres store at some size: bulk load, what the vector leg finds, and a recall beside the two bare statements
that it is made of, measured in one run.

    python benchmarks/postgres.py
    python benchmarks/postgres.py --size 20000 --spaces 100 --dsn postgresql://user@host/empty_database

Without a DSN the server is a private one in a temporary folder. One space is large; many small ones lie beside it, in
the same tables and indexes. What is remembered and asked is in material.py. Nothing is asserted: the goals are printed
beside.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import urlencode

from material import (
    CANDIDATES,
    SETS,
    SPACE,
    WARM_UP,
    WIDTHS,
    Material,
    Question,
    Spread,
    make_material,
    read_sets,
    seconds,
    share_found,
    tags_of,
)
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from rich.console import Console
from rich.table import Table

from recollect import AsyncRecollect, AsyncSpace, Filter
from recollect.embedders import make_embedder
from recollect.embedders.disk import DiskCachedEmbedder
from recollect.ports import WordSearch
from recollect.settings import PostgresSettings, Settings, cache_folder
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.connections import Connections
from recollect.stores.postgres.rows import rows_of, space_number
from recollect.stores.postgres.server import EmbeddedServer
from recollect.stores.postgres.store import PostgresStore
from recollect.text.analyzer import terms
from recollect.text.query import parse_query

SMALL = 100
"""Memories of each small space."""
COMMON = 10
"""Words of the question that asks for common ones only."""
COUNTED = 5_000
"""Texts in which words are counted to find the common ones."""
ASKING = 64
POSTGRES = PostgresSettings(pool_size=8, acquire_timeout=30)
VECTOR = """
    SELECT m.id, 1 - (v.vector <=> %(vector)s)
    FROM vectors_1 AS v JOIN memories AS m ON m.space = v.space AND m.row = v.row
    WHERE v.space = %(space)s AND m.superseded_by IS NULL
    ORDER BY v.vector <=> %(vector)s LIMIT %(limit)s
"""
KEYWORD = """
    SELECT m.id, ts_rank_cd(w.words, %(query)s::tsquery) AS rank
    FROM words AS w JOIN memories AS m ON m.space = w.space AND m.row = w.row
    WHERE w.words @@ %(query)s::tsquery AND m.superseded_by IS NULL
    ORDER BY rank DESC LIMIT %(limit)s
"""


class Sent(NamedTuple):
    """A statement and its parameters."""

    sql: str
    values: Mapping[str, Any]


class Filled(NamedTuple):
    """Seconds that it took to store the large space, to build the index, to link its memories, and for the others."""

    loading: float
    indexing: float
    linking: float
    others: float


async def fill(dsn: str, store: PostgresStore, large: Material, others: Sequence[Material]) -> Filled:
    async with client(dsn) as recollect:
        space = recollect.space(SPACE)
        loading = await seconds(space.remember_many(large.drafts()))
        indexing = await seconds(store.settle(SPACE))
        linking = await seconds(space.settle())
        started = perf_counter()
        async with store.bulk(SMALL * len(others)):
            for number, one in enumerate(others):
                await recollect.space(small(number)).remember_many(one.drafts())
        await store.settle(SPACE)
        for number in range(len(others)):
            await recollect.space(small(number)).settle()
        return Filled(loading, indexing, linking, perf_counter() - started)


def client(dsn: str) -> AsyncRecollect:
    url = f"postgresql://?{urlencode(conninfo_to_dict(dsn))}"
    return AsyncRecollect(settings=Settings(url, "local", postgres=POSTGRES))


def small(number: int) -> str:
    return f"small {number}"


def divided(material: Material, size: int) -> tuple[Material, list[Material]]:
    """What goes into the large space, and into each of the small ones."""
    parts = [slice(0, size), *(slice(n, n + SMALL) for n in range(size, len(material.texts), SMALL))]
    cut = [replace(material, texts=material.texts[part], vectors=material.vectors[part]) for part in parts]
    return cut[0], cut[1:]


async def measure_found(dsn: str, large: Material, others: Sequence[Material]) -> dict[str, float]:
    """The share of the nearest ten that the vector leg finds, each time from the first query of new connections on."""
    found = {}
    for width, nth in WIDTHS.items():
        async with opened(dsn) as store:
            where = Filter(tags=tags_of(width))
            found[width] = await share_found(store, large.vectors, large.questions, where, nth)
    for number in (0, len(others) - 1) if others else ():
        async with opened(dsn) as store:
            vectors, space = others[number].vectors, small(number)
            found[space] = await share_found(store, vectors, large.questions, Filter(), space=space)
    return found


@asynccontextmanager
async def opened(dsn: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(dsn, POSTGRES)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def listening() -> Iterator[list[Sent]]:
    """Every statement that is sent meanwhile."""
    sent: list[Sent] = []
    execute = AsyncConnection.execute

    async def heard(self: AsyncConnection[Any], query: Any, params: Any = None, **options: Any) -> Any:
        sent.append(Sent(str(query), params or {}))
        return await execute(self, query, params, **options)

    AsyncConnection.execute = heard  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        AsyncConnection.execute = execute  # type: ignore[method-assign]


Bare = Callable[[Database, Question], Awaitable[object]]
"""A statement that is run by hand."""


async def bare_statements(store: PostgresStore, space: int, questions: Sequence[Question]) -> dict[str, Bare]:
    """The nearest by the index with the effort that the vector leg gives it, and the best by `ts_rank_cd` among those
    that hold any of the words that the keyword leg chooses.
    """
    chosen: dict[str, str] = {}
    settings = ""
    for question in questions:
        with listening() as sent:
            await store.search_words(SPACE, word_search(question.text), Filter(), limit=CANDIDATES)
            await store.search_vectors(SPACE, question.vector, Filter(), limit=CANDIDATES)
        queries = [query for one in sent if "worths" in one.values for query in one.values["queries"]]
        chosen[question.text] = " | ".join(queries)
        settings = next((one.sql for one in sent if one.sql.startswith("SET LOCAL")), settings)

    async def by_vector(db: Database, question: Question) -> object:
        await db.execute(settings)
        return await rows_of(db, VECTOR, space=space, vector=question.vector, limit=CANDIDATES)

    async def by_keyword(db: Database, question: Question) -> object:
        return await rows_of(db, KEYWORD, query=chosen[question.text], limit=CANDIDATES)

    return {"vector alone": by_vector, "keyword alone": by_keyword}


def word_search(text: str) -> WordSearch:
    asked = parse_query(text)
    return WordSearch(text, asked.terms, asked.phrases)


async def measure_speed(dsn: str, questions: Sequence[Question]) -> tuple[dict[str, Spread], int]:
    """What a recall takes with the question's vector given, and each bare statement; and how many answers lacked a
    lane. All by turns, so that whatever else the machine does falls on all alike.
    """
    connections = Connections(dsn, POSTGRES)
    await connections.open(create=False)
    number = await connections.read(lambda db: space_number(db, SPACE)) or 0
    async with opened(dsn) as store, client(dsn) as recollect:
        bare = await bare_statements(store, number, questions)
        times: dict[str, list[float]] = {name: [] for name in (*bare, "recall")}
        degraded = 0
        for question in questions:
            for name, statement in bare.items():
                times[name].append(await seconds(connections.read(lambda db: statement(db, question), space=number)))  # noqa: B023
            started = perf_counter()
            recall = await recollect.space(SPACE).recall(question.text, vector=question.vector)
            times["recall"].append(perf_counter() - started)
            degraded += recall.degraded
    await connections.close()
    return {name: Spread.of(one) for name, one in times.items()}, degraded


async def measure_common(dsn: str, texts: Sequence[str], times: int) -> tuple[str, Spread]:
    """A question of the commonest words there are."""
    counted = Counter(term for text in texts[:COUNTED] for term in set(terms(text)))
    question = " ".join(term for term, _ in counted.most_common(COMMON))
    async with opened(dsn) as store:
        spent = [
            await seconds(store.search_words(SPACE, word_search(question), Filter(), limit=CANDIDATES))
            for _ in range(times)
        ]
    return question, Spread.of(spent)


class Crowd(NamedTuple):
    """How those fared who asked at once: seconds for all, how many were answered, how many of them by all lanes, and
    what the first was told who was not.
    """

    seconds: float
    answered: int
    complete: int
    refusal: str


async def measure_crowd(space: AsyncSpace, questions: Sequence[Question]) -> Crowd:
    started = perf_counter()
    answers = await asyncio.gather(
        *(space.recall(question.text, vector=question.vector) for question in questions[:ASKING]),
        return_exceptions=True,
    )
    spent = perf_counter() - started
    answered = [answer for answer in answers if not isinstance(answer, BaseException)]
    refusal = next((str(answer) for answer in answers if isinstance(answer, BaseException)), "")
    return Crowd(spent, len(answered), sum(not answer.degraded for answer in answered), refusal)


def print_filled(console: Console, filled: Filled, size: int, others: int) -> None:
    table = Table("", "seconds", "memories / s", "goal", title="bulk load, vectors given")
    stored = filled.loading + filled.indexing
    table.add_row(f"{size:,} memories, index included", f"{stored:.1f}", f"{size / stored:,.0f}", ">= 2,000")
    table.add_row("  storing them", f"{filled.loading:.1f}", f"{size / filled.loading:,.0f}")
    table.add_row("  the index", f"{filled.indexing:.1f}")
    table.add_row("their links afterwards", f"{filled.linking:.1f}")
    table.add_row(f"{others:,} small spaces, all of that", f"{filled.others:.1f}")
    console.print(table)


def print_found(console: Console, found: Mapping[str, float]) -> None:
    table = Table("", "vector recall@10", "goal", title="what the vector leg finds, from the first query on")
    for name, share in found.items():
        table.add_row(name, f"{share:.4f}", ">= 0.99")
    console.print(table)


def print_speed(console: Console, spreads: Mapping[str, Spread], degraded: int, common: Spread, crowd: Crowd) -> None:
    slower = max(spreads["vector alone"].p50, spreads["keyword alone"].p50)
    table = Table("", "p50 ms", "p95 ms", "x slower bare statement", "goal", title="recall, the vector given")
    for name, one in spreads.items():
        goal = "<= 1.5 x" if name == "recall" else ""
        table.add_row(name, f"{one.p50:.2f}", f"{one.p95:.2f}", f"{one.p50 / slower:.2f}", goal)
    table.add_row(f"{COMMON} common words", f"{common.p50:.2f}", f"{common.p95:.2f}", "", "< 50 ms")
    console.print(table, f"degraded answers: {degraded}")
    console.print(
        f"{ASKING} at once on {POSTGRES.pool_size} connections: {crowd.answered} answered (goal: all), "
        f"{crowd.complete} by all lanes, in {crowd.seconds:.2f} s. {crowd.refusal}"
    )


async def measure(console: Console, dsn: str, material: Material, size: int) -> None:
    large, others = divided(material, size)
    async with opened(dsn) as store:
        print_filled(console, await fill(dsn, store, large, others), size, len(others))
    print_found(console, await measure_found(dsn, large, others))
    spreads, degraded = await measure_speed(dsn, large.questions)
    question, common = await measure_common(dsn, large.texts, len(large.questions))
    async with client(dsn) as recollect:
        crowd = await measure_crowd(recollect.space(SPACE), large.questions)
    print_speed(console, spreads, degraded, common, crowd)
    console.print(f"the common words: {question}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=100_000, help="memories in the large space")
    parser.add_argument("--spaces", type=int, default=1_000, help=f"small spaces beside it, of {SMALL} memories each")
    parser.add_argument("--questions", type=int, default=200, help=f"questions asked of each, after {WARM_UP} others")
    parser.add_argument("--dsn", help="an empty database to use instead of a private server")
    parser.add_argument("--data", type=Path, default=SETS, help="folder of judged sets to take texts from")
    options = parser.parse_args()
    embedder = DiskCachedEmbedder(make_embedder("local"), cache_folder() / "eval")
    total = options.size + SMALL * options.spaces
    material = await make_material(read_sets(options.data), total, options.questions, embedder)
    await embedder.close()
    console = Console()
    if options.dsn:
        await measure(console, options.dsn, material, options.size)
        return
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        server = EmbeddedServer(Path(folder, "postgres"))
        try:
            await measure(console, await server.start(), material, options.size)
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
