"""The statements of the five source systems, as they run on Postgres with 50,000 memories: which functions, under which
configuration, how many hits they ask for, and through which index; and the index of the default recipe's words.

Their example data and worked numbers are in `engine/test_seeds.py`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import psycopg
import pytest
from pgvector.psycopg import register_vector_async
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recollect import AsyncRecollect, AsyncSpace, InvalidRequest
from recollect.conformance.samples import HERE, record
from recollect.embedders.hashing import HashingEmbedder
from recollect.ports import WordSearch
from recollect.stores.postgres import text_indexes
from recollect.stores.postgres.store import PostgresStore
from recollect.types import Filter
from tests.stores.statements import Statement, record_statements

SIZE = 50_000
DIMENSIONS = 8
EMBEDDER = HashingEmbedder(DIMENSIONS)
KINDS = ("fact", "message", "episodic", "semantic", "identity", "knowledge")
KINDS_OF = {"polyant": KINDS[:2], "sci": KINDS[2:5]}
"""What some recipes look among: where these are a small part of all, comparing them is quicker than any index."""
FILL = f"""
    INSERT INTO memories (
        space, row, id, hash, namespace, kind, text, title, tags, source, metadata, created_at, updated_at, embedding
    )
    SELECT 1, n, 'm' || n, sha256(n::text::bytea), 'default',
           (%(kinds)s::text[])[1 + n %% cardinality(%(kinds)s::text[])],
           'note ' || n || ' about invoice' || n / 60, CASE WHEN n %% 6 = 5 THEN 'How to ' || n ELSE '' END,
           '{{}}', '', '{{}}',
           now(), now(), 'ready'
    FROM generate_series(10, {SIZE}) AS n;
    INSERT INTO vectors_1 (space, row, vector)
    SELECT 1, n, ARRAY(SELECT random() - 0.5 FROM generate_series(1, {DIMENSIONS}) WHERE n > 0)::vector
    FROM generate_series(10, {SIZE}) AS n;
    INSERT INTO words (space, row, words, length)
    SELECT 1, n, format('''1:note'':1B ''1:%%s'':2B ''1:about'':3B ''1:invoice%%s'':4B', n, n / 60)::tsvector, 4
    FROM generate_series(10, {SIZE}) AS n;
    INSERT INTO sizes (space, memories, length, changes) VALUES (1, {SIZE} - 9, 4 * ({SIZE} - 9), {SIZE} - 9);
    CREATE INDEX vectors_1_hnsw ON vectors_1 USING hnsw (vector vector_cosine_ops) WITH (m = 16, ef_construction = 64);
    ANALYZE
"""


class Keywords(NamedTuple):
    """What a recipe's keyword lane must ask."""

    reading: str
    rank: str
    limit: int
    kinds: list[str] | None = None


SEEDS = {
    "polyant": [
        Keywords("websearch_to_tsquery('simple', %(text)s)", "ts_rank(m.words_simple, query)", 20, ["message"])
    ],
    "sci": [
        Keywords("plainto_tsquery('english', %(text)s)", "ts_rank_cd(m.words_english, query)", 30, [kind])
        for kind in ("episodic", "semantic", "identity")
    ],
    "pgmemory": [Keywords("plainto_tsquery('english', %(text)s)", "ts_rank(m.words_english, query)", 20)],
    "drobek": [Keywords("plainto_tsquery('simple', %(text)s)", "ts_rank_cd(m.words_simple, query)", 30, ["knowledge"])],
    "novamem": [Keywords("plainto_tsquery('english', %(text)s)", "ts_rank_cd(m.words_english, query)", 30)],
}


@pytest.fixture(scope="module")
def load(pg_dsn: str) -> Iterator[Callable[[Sequence[str]], str]]:
    """Makes databases whose stores hold 50,000 memories of some kinds with vectors, and an index of them; each once."""
    known: dict[tuple[str, ...], str] = {}

    def filled(kinds: Sequence[str]) -> str:
        if (key := tuple(kinds)) not in known:
            name = f"recollect_test_seeds_{os.getpid()}_{len(known)}"
            db.execute(f"CREATE DATABASE {name}")
            dsn = known[key] = make_conninfo(pg_dsn, dbname=name)
            asyncio.run(begin(dsn))
            path = "-c search_path=recollect,public"
            with psycopg.connect(dsn, autocommit=True, options=path, cursor_factory=psycopg.ClientCursor) as own:
                own.execute(FILL, {"kinds": [*kinds]})
        return known[key]

    with psycopg.connect(pg_dsn, autocommit=True) as db:
        yield filled
        for number in range(len(known)):
            db.execute(f"DROP DATABASE recollect_test_seeds_{os.getpid()}_{number} WITH (FORCE)")


@pytest.fixture(scope="module")
def loaded(load: Callable[[Sequence[str]], str]) -> str:
    return load(KINDS)


async def begin(dsn: str) -> None:
    await AsyncRecollect.migrate(url_of(dsn), words=["simple", "english"])
    async with AsyncRecollect(url_of(dsn), embedder=EMBEDDER) as opened:
        await opened.space("work").remember("the first memory of the space")


def url_of(dsn: str) -> str:
    return f"postgresql://?{urlencode(conninfo_to_dict(dsn))}"


@pytest.fixture
async def work(loaded: str) -> AsyncIterator[AsyncSpace]:
    async with AsyncRecollect(url_of(loaded), embedder=EMBEDDER) as opened:
        yield opened.space("work")


def keyword_statements(sent: list[Statement]) -> list[Statement]:
    return [statement for statement in sent if "_tsquery(" in statement.sql]


def vector_statements(sent: list[Statement]) -> list[Statement]:
    return [statement for statement in sent if "ORDER BY v.vector <=>" in statement.sql]


def settings_of(sent: list[Statement], statement: Statement) -> str:
    """What was set for a statement, the last time before it, on its connection."""
    before = [one.sql for one in sent[: sent.index(statement)] if one.connection == statement.connection]
    return next(sql for sql in reversed(before) if sql.startswith("SET LOCAL"))


async def explain(dsn: str, settings: str, statement: Statement) -> str:
    """The plan of a statement under the settings that it ran with."""
    async with await psycopg.AsyncConnection.connect(dsn, options="-c search_path=recollect,public") as db:
        await register_vector_async(db)
        await db.execute(settings)
        plan = await (await db.execute(f"EXPLAIN (COSTS OFF) {statement.sql}", statement.values)).fetchall()
    return "\n".join(line for (line,) in plan)


@pytest.mark.parametrize("recipe", SEEDS)
async def test_words_are_asked_for_as_the_seed_does(
    work: AsyncSpace, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    """Its tsquery function and configuration, its rank function with the default arguments, its fanout as the limit,
    and the kinds that it looks among, before anything is ranked.
    """
    sent = record_statements(monkeypatch)
    answer = await work.recall("note invoice777", recipe=recipe)
    asked = sorted(keyword_statements(sent), key=lambda one: str(one.values.get("f_kinds")))
    expected = sorted(SEEDS[recipe], key=lambda one: str(one.kinds))
    for statement, wanted in zip(asked, expected, strict=True):
        assert f"{wanted.rank}::float8 AS score" in statement.sql
        assert f"{wanted.reading} AS query WHERE m.{wanted.rank.split('.')[1].split(',')[0]} @@ query" in statement.sql
        assert statement.sql.endswith("ORDER BY score DESC, found.id LIMIT %(limit)s")
        assert statement.values["limit"] == wanted.limit
        assert statement.values["text"] == "note invoice777"
        assert statement.values.get("f_kinds") == wanted.kinds
    assert not answer.degraded
    matching = 60 if expected[0].kinds is None else 10
    assert {report.candidates for report in answer.lanes if report.leg == "keyword"} == {
        min(matching, expected[0].limit)
    }


@pytest.mark.parametrize("recipe", SEEDS)
async def test_words_are_found_through_the_gin_index(
    loaded: str, work: AsyncSpace, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    """EXPLAIN of the statement that ran: the index of the recipe's configuration, and no table read through for it."""
    sent = record_statements(monkeypatch)
    await work.recall("note invoice777", recipe=recipe)
    column = "words_simple" if recipe in ("polyant", "drobek") else "words_english"
    for statement in keyword_statements(sent):
        plan = await explain(loaded, "SET LOCAL jit = off", statement)
        assert f"Bitmap Index Scan on memories_{column}" in plan
        assert "Seq Scan" not in plan


async def test_the_default_words_are_found_through_the_gin_index(
    loaded: str, work: AsyncSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted and scored: neither reads the table through, however common a word is."""
    sent = record_statements(monkeypatch)
    answer = await work.recall("note invoice777")
    assert answer[0].memory.text == "note 777 about invoice12"  # of its parts 777 is the rarest
    asked = [statement for statement in sent if "FROM words AS w" in statement.sql]
    assert {"count(*)" in statement.sql for statement in asked} == {True, False}
    for statement in asked:
        plan = await explain(loaded, "SET LOCAL jit = off", statement)
        assert "Bitmap Index Scan on words_by_term" in plan
        assert "Seq Scan on words" not in plan
        assert "Seq Scan on memories" not in plan


@pytest.mark.parametrize("recipe", SEEDS)
async def test_vectors_are_found_through_the_hnsw_index(
    load: Callable[[Sequence[str]], str], monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    """Ordered by the distance itself, limited to the fanout, and EXPLAIN of what ran shows the index."""
    dsn = await asyncio.to_thread(load, KINDS_OF.get(recipe, KINDS))
    sent = record_statements(monkeypatch)
    async with AsyncRecollect(url_of(dsn), embedder=EMBEDDER) as opened:
        answer = await opened.space("work").recall("note invoice777", recipe=recipe)
    fanouts = [lane.candidates for lane in answer.lanes if lane.leg == "vector"]
    assert fanouts == [SEEDS[recipe][0].limit] * len(SEEDS[recipe])
    statements = vector_statements(sent)
    assert len(statements) == len(SEEDS[recipe])
    for statement in statements:
        plan = await explain(dsn, settings_of(sent, statement), statement)
        assert "Index Scan using vectors_1_hnsw" in plan


async def test_drobek_sets_ef_search_for_the_transaction(work: AsyncSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 by itself, and another number from 1 to 200 when asked: set locally, before the search."""
    for wanted, expected in ((None, 64), (150, 150), (9_999, 200), (0, 1)):
        with monkeypatch.context() as recording:
            sent = record_statements(recording)
            lanes = {} if wanted is None else {"vector": {"ef_search": wanted}}
            await work.recall("note invoice777", recipe="drobek", lanes=lanes)
        (statement,) = vector_statements(sent)
        assert f"SET LOCAL hnsw.ef_search = {expected};" in settings_of(sent, statement)


async def test_pgmemory_leaves_out_what_is_known_to_be_poor(work: AsyncSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    """In both lanes, and keeps what was never scored; a source is a prefix."""
    sent = record_statements(monkeypatch)
    await work.recall("note invoice777", recipe="pgmemory", source_prefix="mail/")
    filtered = [statement for statement in sent if "f_quality" in statement.values]
    assert len(filtered) >= 2
    for statement in filtered:
        assert "(m.quality IS NULL OR m.quality >= %(f_quality)s)" in statement.sql
        assert statement.values["f_quality"] == 0.05
        assert statement.values["f_source"] == "mail/"


async def test_drobek_looks_for_the_whole_question_in_titles(work: AsyncSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a point for a title that contains it, whatever the case; what LIKE would take for wildcards is escaped."""
    sent = record_statements(monkeypatch)
    answer = await work.recall("how TO 777", recipe="drobek", weights={"vector": 0})
    (statement,) = keyword_statements(sent)
    assert "SELECT m.id, %(boost)s::float8 AS score" in statement.sql
    assert "m.title ILIKE %(title)s" in statement.sql
    assert statement.values["boost"] == 0.5
    assert statement.values["title"] == "%how TO 777%"
    assert {hit.memory.title.startswith("How to 777") for hit in answer} == {True}
    await work.recall("100%_\\", recipe="drobek", weights={"vector": 0})
    assert keyword_statements(sent)[-1].values["title"] == "%100\\%\\_\\\\%"


# Other configurations


def german(text: str) -> WordSearch:
    return WordSearch(text, words="german", match="plain", score="ts_rank")


async def found(store: PostgresStore, search: WordSearch) -> list[str]:
    return [hit.id for hit in (await store.search_words(HERE, search, Filter(), limit=10)).hits]


async def test_any_installed_configuration_is_added_when_it_is_first_asked_for(pg_store: PostgresStore) -> None:
    """By one of those who ask at once; memories that were there, and those that come, are found by it."""
    await pg_store.add(HERE, [record("a", "die Häuser am See")])
    assert await asyncio.gather(*(found(pg_store, german("Haus")) for _ in range(5))) == [["a"]] * 5
    await pg_store.add(HERE, [record("b", "ein Haus")])
    assert await found(pg_store, german("Häusern")) == ["a", "b"]


async def test_who_stops_waiting_for_a_configuration_finds_it_the_next_time(pg_store: PostgresStore) -> None:
    """A lane that is late does not undo what was begun for it."""
    await pg_store.add(HERE, [record("a", "die Häuser am See")])
    asked = asyncio.create_task(found(pg_store, german("Haus")))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    assert await found(pg_store, german("Haus")) == ["a"]


async def test_a_large_store_is_not_taken_from_its_users(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration is then added by `migrate`, as the error says, and not by a question."""
    monkeypatch.setattr(text_indexes, "SOON_WRITTEN", 0)
    await pg_store.add(HERE, [record("a", "die Häuser am See")])
    with pytest.raises(InvalidRequest, match="recollect migrate --words german"):
        await found(pg_store, german("Haus"))
    for _ in range(2):
        await pg_store._connections.write(lambda db: text_indexes.add_configuration(db, "german"))
    assert await found(pg_store, german("Haus")) == ["a"]


@pytest.mark.parametrize("name", ["klingon", "ger'man", "German", ""])
async def test_a_configuration_that_is_not_installed_is_refused(pg_store: PostgresStore, name: str) -> None:
    """With those that are; and nothing of a strange name reaches a statement."""
    await pg_store.add(HERE, [record("a")])
    search = WordSearch("a", words=name, match="plain", score="ts_rank")
    expected = "it has: .*english.*simple" if name == "klingon" else "no name of a text-search configuration"
    with pytest.raises(InvalidRequest, match=expected):
        await found(pg_store, search)
    with pytest.raises(InvalidRequest, match=expected):
        await pg_store._connections.write(lambda db: text_indexes.add_configuration(db, name))


async def test_a_search_in_an_added_configuration_uses_its_index(pg_store: PostgresStore) -> None:
    """Each configuration has a GIN index of its own."""
    await pg_store._connections.write(lambda db: text_indexes.add_configuration(db, "german"))
    sql = "SELECT indexdef FROM pg_indexes WHERE indexname = 'memories_words_german' AND schemaname = current_schema()"

    async def definition(db: Any) -> Any:
        return await (await db.execute(sql)).fetchone()

    made = await pg_store._connections.read(definition)
    assert "USING gin (words_german)" in made[0]
