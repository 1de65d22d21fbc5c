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

from recollect import AsyncRecollect, AsyncSpace, BackendError, IndexBuilding, InvalidRequest
from recollect.conformance.samples import HERE, NOW, question, record
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
    """The searches of a recall, without those that link memories in the background."""
    searches = (statement for statement in sent if "ORDER BY v.vector <=>" in statement.sql)
    return [statement for statement in searches if not statement.sql.startswith("WITH own")]


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


def simple(text: str) -> WordSearch:
    return WordSearch(text, words="simple", match="plain", score="ts_rank")


async def add_configuration(store: PostgresStore, name: str) -> None:
    """As `migrate` does."""
    async with store._connections.autocommit() as db:
        await text_indexes.build(db, name)


async def columns(store: PostgresStore) -> set[str]:
    async def work(db: Any) -> Any:
        sql = "SELECT attname FROM pg_attribute WHERE attrelid = 'memories'::regclass AND NOT attisdropped"
        return await (await db.execute(sql)).fetchall()

    return {name for (name,) in await store._connections.read(work)}


async def test_a_question_adds_what_the_recipes_need_and_nothing_else(pg_store: PostgresStore) -> None:
    """Of all configurations that the server has, two: whoever may only ask does not change the schema by naming others,
    and is told what does.
    """
    await pg_store.add(HERE, [record("a", "a house by the lake")])
    before = await columns(pg_store)

    async def names(db: Any) -> Any:
        return await (await db.execute("SELECT cfgname FROM pg_ts_config ORDER BY cfgname")).fetchall()

    configurations = [name for (name,) in await pg_store._connections.read(names)]
    assert len(configurations) > 20
    for name in configurations:
        search = WordSearch("house", words=name, match="plain", score="ts_rank")
        if name in ("simple", "english"):
            assert await asyncio.gather(*(found(pg_store, search) for _ in range(5))) == [["a"]] * 5
        else:
            with pytest.raises(InvalidRequest, match=f"run `recollect migrate --words {name}`"):
                await found(pg_store, search)
    assert await columns(pg_store) == before | {"words_simple", "words_english"}


async def test_what_is_stored_before_and_after_is_found(pg_store: PostgresStore) -> None:
    """Memories that were there, those that come, and those whose text changes; also while an external index is told of
    changes.
    """
    await pg_store.add(HERE, [record("a", "die Häuser am See"), record("c", "ein See")])
    await add_configuration(pg_store, "german")
    await pg_store.ledger.feed("somewhere", "vector")
    await pg_store.add(HERE, [record("b", "ein Haus")])
    await pg_store.update(HERE, "c", {"text": "Haus und Hof"}, now=NOW)
    assert await found(pg_store, german("Häusern")) == ["a", "b", "c"]
    await add_configuration(pg_store, "german")
    assert await found(pg_store, german("Häusern")) == ["a", "b", "c"]


async def test_filling_a_column_tells_external_indexes_nothing(pg_store: PostgresStore) -> None:
    """They hold no words, and need not be told of every memory anew."""
    await pg_store.add(HERE, [record("a", "die Häuser am See")])
    await pg_store.ledger.feed("somewhere", "vector")
    entries = await pg_store.ledger.waiting("somewhere", limit=10)
    await pg_store.ledger.delivered("somewhere", entries)
    await add_configuration(pg_store, "german")
    assert await found(pg_store, german("Haus")) == ["a"]
    assert list(await pg_store.ledger.waiting("somewhere", limit=10)) == []


async def test_who_stops_waiting_for_an_index_finds_it_the_next_time(pg_store: PostgresStore) -> None:
    """A lane that is late does not undo what was begun for it."""
    await pg_store.add(HERE, [record("a", "a house by the lake")])
    asked = asyncio.create_task(found(pg_store, simple("house")))
    while not pg_store._configurations._building:  # noqa: ASYNC110 (the store has no event to tell)
        await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    assert await found(pg_store, simple("house")) == ["a"]


async def test_a_large_store_says_how_far_its_index_is(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question does not wait for the index, others write meanwhile, and once it is there it is used; whichever
    process builds it.
    """
    monkeypatch.setattr(text_indexes, "WAITED_FOR_BYTES", 0)
    monkeypatch.setattr(text_indexes, "BATCH", 2)
    await pg_store.add(HERE, [record(f"a{n}", f"house {n}") for n in range(5)])
    column = "words_simple"
    async with pg_store._connections.autocommit() as other:
        await other.execute(text_indexes.Q["try_lock"], {"column": column})  # another process builds
        for _ in range(2):
            with pytest.raises(IndexBuilding, match="the index of 'simple' words is being built: 0 of about"):
                await found(pg_store, simple("house"))
        await pg_store.add(HERE, [record("b", "another house")])
        await other.execute(text_indexes.Q["unlock"], {"column": column})
    await asyncio.gather(*pg_store._configurations._building.values())
    assert sorted(await found(pg_store, simple("house"))) == ["a0", "a1", "a2", "a3", "a4", "b"]


async def test_the_next_process_goes_on_where_one_was_stopped(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of the memories, or of the index."""
    monkeypatch.setattr(text_indexes, "BATCH", 2)
    await pg_store.add(HERE, [record(f"a{n}", f"house {n}") for n in range(5)])
    fill, filled = text_indexes._fill_some, []

    async def stopped(db: Any, configuration: str, progress: Any) -> Any:
        filled.append(progress.done)
        if filled == [0, 0, 2]:
            raise BackendError("stopped", backend="postgres")
        return await fill(db, configuration, progress)

    monkeypatch.setattr(text_indexes, "_fill_some", stopped)
    with pytest.raises(BackendError, match="stopped"):
        await add_configuration(pg_store, "simple")
    monkeypatch.setattr(text_indexes, "BUILT_IN", ())
    with pytest.raises(IndexBuilding, match="2 of about"):
        await found(pg_store, simple("house"))
    async with pg_store._connections.autocommit() as db:
        state = await text_indexes.look(db, "simple")
        assert (state.ready, state.progress and state.progress.done) == (False, 2)
    await add_configuration(pg_store, "simple")
    assert filled == [0, 0, 2, 2, 4, 5]
    assert len(await found(pg_store, simple("house"))) == 5


async def test_a_word_at_the_end_of_a_long_text_is_found(pg_store: PostgresStore) -> None:
    """Also where the text is longer than a column once held, or as long as a text may be."""
    for name in ("simple", "english"):
        await add_configuration(pg_store, name)
    prose = "the quick brown fox jumps over the lazy dog " * 23_000
    await pg_store.add(HERE, [record("a", f"{prose[:250_000]} zeppelin"), record("b", f"{prose} zeppelin")])
    for name in ("simple", "english"):
        search = WordSearch("zeppelin", words=name, match="plain", score="ts_rank")
        assert sorted(await found(pg_store, search)) == ["a", "b"]
    assert sorted(await found(pg_store, question("zeppelin"))) == ["a", "b"]
    numbers = " ".join(map(str, range(150_000)))  # more words than one column can hold: the first are found
    await pg_store.add(HERE, [record("c", numbers)])
    assert await found(pg_store, simple("99")) == ["c"]


@pytest.mark.parametrize("name", ["klingon", "ger'man", "German", ""])
async def test_a_configuration_that_is_not_installed_is_refused(pg_store: PostgresStore, name: str) -> None:
    """With those that are; and nothing of a strange name reaches a statement."""
    await pg_store.add(HERE, [record("a")])
    search = WordSearch("a", words=name, match="plain", score="ts_rank")
    expected = "it has: .*english.*simple" if name == "klingon" else "not the name of a text-search .* such as english"
    with pytest.raises(InvalidRequest, match=expected):
        await found(pg_store, search)
    with pytest.raises(InvalidRequest, match=expected):
        await add_configuration(pg_store, name)


async def test_a_search_in_an_added_configuration_uses_its_index(pg_store: PostgresStore) -> None:
    """Each configuration has a GIN index of its own."""
    await add_configuration(pg_store, "german")
    sql = "SELECT indexdef FROM pg_indexes WHERE indexname = 'memories_words_german' AND schemaname = current_schema()"

    async def definition(db: Any) -> Any:
        return await (await db.execute(sql)).fetchone()

    made = await pg_store._connections.read(definition)
    assert "USING gin (words_german)" in made[0]
