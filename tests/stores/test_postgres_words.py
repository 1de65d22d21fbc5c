"""The word index inside the Postgres store: BM25, contexts, what is counted and what is remembered of it."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from itertools import count
from math import isclose, log, sqrt
from typing import Any

import pytest

from recollect.conformance.samples import HERE, NOW, question, record
from recollect.ports import Store, Term, WordHits, WordSearch
from recollect.settings import PostgresSettings
from recollect.stores import bm25
from recollect.stores.postgres import word_counts, word_scores, words
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.rows import rows_of
from recollect.stores.postgres.store import PostgresStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.text.analyzer import terms
from recollect.types import Filter
from tests.stores.statements import Statement, record_statements

OPEN = Filter(now=NOW)
PLUM = WordSearch("", (Term("plum"),))
NUMBERS = count(1)


async def put(store: Store, *texts: str, space: str = HERE, **fields: Any) -> list[str]:
    """Store texts; their ids are in the order in which they were stored, and no text is a copy of another."""
    ids = [f"{next(NUMBERS):06}" for _ in texts]
    await store.add(space, [record(id, text, kind=id, **fields) for id, text in zip(ids, texts, strict=True)])
    return ids


async def scores(
    store: Store, text: str, *, space: str = HERE, where: Filter = OPEN, limit: int = 100, context: bool = True
) -> dict[str, float]:
    """The score of each memory that holds any of the text's terms, best first."""
    search = WordSearch(text, tuple(Term(term) for term in dict.fromkeys(terms(text))), context=context)
    return {hit.id: hit.score for hit in (await store.search_words(space, search, where, limit=limit)).hits}


async def answer(store: Store, search: WordSearch, where: Filter = OPEN, limit: int = 200) -> WordHits:
    return await store.search_words(HERE, search, where, limit=limit)


async def execute(store: PostgresStore, sql: str) -> None:
    async with store._connections.autocommit() as db:
        await db.execute(sql)


def own_idf(size: int, rows: int) -> float:
    return log(1 + (size - rows + 0.5) / (rows + 0.5))


def saturated(frequency: float, length: float, average: float) -> float:
    return frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / average))


# BM25


async def test_bm25_is_the_textbooks(pg_store: PostgresStore) -> None:
    """k1 1.2, b 0.75, lengths against the average, idf = ln(1 + (N - n + 0.5) / (n + 0.5)): by hand."""
    first, second, _ = await put(pg_store, "plum plum banana", "banana cherry", "cherry cherry cherry cherry")
    hits = await scores(pg_store, "plum banana")
    average = (3 + 2 + 4) / 3
    plum, banana = own_idf(3, 1), own_idf(3, 2)
    assert list(hits) == [first, second]
    assert isclose(hits[first], plum * saturated(2, 3, average) + banana * saturated(1, 3, average), rel_tol=1e-9)
    assert isclose(hits[second], banana * saturated(1, 2, average), rel_tol=1e-9)


async def test_title_text_and_context_count_by_their_weights(pg_store: PostgresStore) -> None:
    """1 in the title, 1 in the text, 0.2 in a text beside it; without context only own words count and match."""
    fields = {"thread": "t", "title": "plum"}
    one, other = await put(pg_store, "plum plum banana", "cherry", **fields)
    own = own_idf(2, 2)
    lengths = {one: 1 + 3 + 1, other: 1 + 1 + 3}
    hits = await scores(pg_store, "plum")
    assert isclose(hits[one], own * saturated(3, lengths[one], 5), rel_tol=1e-6)
    assert isclose(hits[other], own * saturated(1.4, lengths[other], 5), rel_tol=1e-6)
    alone = await scores(pg_store, "banana", context=False)
    assert alone.keys() == {one}
    assert isclose(alone[one], own_idf(2, 1) * saturated(1, lengths[one], 5), rel_tol=1e-6)


async def test_the_background_is_told_by_the_document_frequencies(pg_store: PostgresStore) -> None:
    """Mean p x idf and variance p (1 - p) x idf^2, summed over the terms, p being the share that holds one."""
    await put(pg_store, "plum", "banana", "banana", "cherry")
    background = (await answer(pg_store, WordSearch("", (Term("plum"), Term("banana"), Term("zebra"))))).background
    assert background is not None
    plum, banana = own_idf(4, 1), own_idf(4, 2)
    assert isclose(background.mean, plum / 4 + banana / 2)
    assert isclose(background.deviation, sqrt(3 / 16 * plum**2 + 1 / 4 * banana**2))
    assert background.count == 4


async def test_random_memories_score_as_in_a_file(pg_store: PostgresStore) -> None:
    """Titles, threads, phrases, changes, removals: the SQLite store's hits and holders, scores within a millionth."""
    file = SqliteStore.temporary()
    await file.open()
    await _scramble([file, pg_store], random.Random(7))
    chance = random.Random(8)
    for _ in range(40):
        search = _random_question(chance)
        ours, theirs = await answer(pg_store, search), await answer(file, search)
        expected = {hit.id: hit.score for hit in theirs.hits}
        assert {hit.id for hit in ours.hits} == expected.keys()
        assert all(isclose(hit.score, expected[hit.id], rel_tol=1e-6) for hit in ours.hits)
        assert ours.hits == sorted(ours.hits, key=lambda hit: (-hit.score, hit.id))
        assert ours.holders == theirs.holders
        assert ours.background == theirs.background
    await file.close()


def _random_question(chance: random.Random) -> WordSearch:
    """Some words, and sometimes a phrase of own words: in a file a phrase may reach from one text beside a memory into
    the next, here it may not.
    """
    asked = " ".join(chance.sample(VOCABULARY, chance.randint(1, 4)))
    if chance.random() < 0.5:
        return question(asked)
    return question(f'{asked} "{" ".join(chance.sample(VOCABULARY[6:], 2))}"', context=False)


VOCABULARY = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "islet", "jewel", "knoll"]


async def _scramble(stores: list[Store], chance: random.Random) -> None:
    """Write, change and forget the same in each store."""

    def sentence() -> str:
        return " ".join(chance.choices(VOCABULARY, range(1, 12), k=chance.randint(1, 12)))

    ids = [f"m{number:03}" for number in range(120)]
    for at in range(0, len(ids), 4):
        fields: dict[str, Any] = {
            "thread": chance.choice([None, "t1", "t2"]),
            "title": chance.choice(["", "amber birch"]),
        }
        batch = [record(id, sentence(), kind=id, **fields) for id in ids[at : at + 4]]
        for store in stores:
            await store.add(HERE, batch)
    for id in chance.sample(ids, 20):
        changes = chance.choice([{"text": sentence()}, {"thread": "t2"}, {"title": "cedar"}])
        for store in stores:
            await store.update(HERE, id, changes, now=NOW)
    gone = chance.sample(ids, 12)
    for store in stores:
        await store.forget(HERE, gone)


# Spaces, filters, bounds


async def test_two_spaces_never_meet(pg_store: PostgresStore) -> None:
    """A space's hits, document frequencies and lengths are its own, however often another space says the word."""
    (plum, *_) = await put(pg_store, "plum", "banana", "cherry")
    before = await answer(pg_store, PLUM)
    await put(pg_store, *["plum plum and a lot more of it"] * 50, space="there")
    pg_store._counts = word_scores.Counts()
    assert await answer(pg_store, PLUM) == before
    assert [hit.id for hit in before.hits] == [plum]
    assert len(await scores(pg_store, "plum", space="there")) == 50
    assert await scores(pg_store, "banana", space="there") == {}


@pytest.mark.parametrize("few", [0, 2_000])
async def test_the_filter_comes_before_the_limit(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Better hits that the filter hides do not use up the limit, whether few or many rows pass it."""
    monkeypatch.setattr(bm25, "FEW", few)
    await put(pg_store, *["plum plum"] * 300)
    wanted = await put(pg_store, "plum and quite a few other words that make it score less", "plum pie", source="s")
    hits = await scores(pg_store, "plum", where=replace(OPEN, source_prefix="s"), limit=2)
    assert list(hits) == [wanted[1], wanted[0]]
    assert hits == {id: score for id, score in (await scores(pg_store, "plum", limit=400)).items() if id in wanted}


async def test_superseded_memories_are_left_out_unless_asked_for(pg_store: PostgresStore) -> None:
    """An open filter still hides what was superseded."""
    old, new = await put(pg_store, "plum", "plum")
    await pg_store.supersede(HERE, old, new, now=NOW)
    assert (await scores(pg_store, "plum")).keys() == {new}
    assert (await scores(pg_store, "plum", where=replace(OPEN, include_superseded=True))).keys() == {old, new}


async def test_equal_scores_are_ordered_by_id(pg_store: PostgresStore) -> None:
    """At the limit's edge, too: of equal hits those with the smallest ids are kept."""
    ids = [f"{number:03}" for number in range(40)]
    await pg_store.add(HERE, [record(id, "plum", kind=id) for id in reversed(ids)])
    assert list(await scores(pg_store, "plum", limit=3)) == ["000", "001", "002"]


async def test_the_commonest_terms_are_dropped_beyond_the_budget(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rarest terms are scored until the budget is spent; the rarest one in any case."""
    plums = await put(pg_store, *["plum"] * 12)
    rare = await put(pg_store, "banana", "banana", "cherry")
    monkeypatch.setattr(bm25, "BUDGET", 5)
    assert (await scores(pg_store, "plum banana cherry")).keys() == set(rare)
    assert (await scores(pg_store, "plum")).keys() == set(plums)


async def test_a_filter_that_hides_the_rare_terms_brings_the_common_ones_back(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropped terms are looked up after all when a filter, or what is superseded, leaves too few hits."""
    plums = await put(pg_store, *["plum"] * 12)
    (banana,) = await put(pg_store, "banana")
    (here,) = await put(pg_store, "plum here", source="s")
    monkeypatch.setattr(bm25, "BUDGET", 5)
    assert (await scores(pg_store, "plum banana")).keys() == {banana}
    assert (await scores(pg_store, "plum banana", where=replace(OPEN, source_prefix="s"))).keys() == {here}
    await pg_store.supersede(HERE, banana, here, now=NOW)
    assert (await scores(pg_store, "plum banana")).keys() == {*plums, here}


# Parts: phrases and names


async def test_what_very_many_hold_is_no_name(pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with too many holders has none, while a phrase has all the hits that hold it."""
    monkeypatch.setattr(bm25, "MOST_HOLDERS", 5)
    five = await put(pg_store, *["quick fox"] * 5)
    await put(pg_store, "banana")
    quick, fox = terms("quick")[0], terms("fox")[0]
    asked = WordSearch("", (Term(quick, names=True), Term(fox)), phrases=((quick, fox),))
    assert (await answer(pg_store, asked)).holders == {quick: set(five), f"{quick} {fox}": set(five)}
    more = await put(pg_store, "quick fox")
    assert (await answer(pg_store, asked)).holders == {f"{quick} {fox}": {*five, *more}}


async def test_a_phrase_is_adjacent_terms_of_one_text(pg_store: PostgresStore) -> None:
    """It is scored like one term; it reaches neither from a title into a text nor from one memory into the next."""
    (wanted,) = await put(pg_store, "the black lake, that black lake", thread="t")
    await put(pg_store, "black", "lake", thread="t")
    await put(pg_store, "lake", title="black")
    await put(pg_store, "lake so black")
    asked = WordSearch("", (), phrases=(("black", "lake"),))
    found = await answer(pg_store, asked)
    assert found.holders == {"black lake": {wanted}}
    assert found.hits[0].id == wanted
    rows, average = 3, (8 + 8 + 8 + 2 + 3) / 5
    assert isclose(found.hits[0].score, own_idf(5, rows) * saturated(2, 8, average), rel_tol=1e-6)
    assert len(found.hits) == rows


@pytest.mark.parametrize(
    "text", ["o'neill", 'say "x" \\ here', "a:b & c | !d <-> e", "'; DROP TABLE words", "100% _x_"]
)
async def test_a_text_means_nothing_to_postgres(pg_store: PostgresStore, text: str) -> None:
    """Quotes, backslashes and operators are neither lost nor obeyed."""
    (id,) = await put(pg_store, text)
    assert (await scores(pg_store, text)).keys() == {id}


# Long texts


async def test_a_megabyte_of_distinct_words_is_stored_and_found(pg_store: PostgresStore) -> None:
    """As many words as a tsvector holds are indexed, the first ones, and its title and neighbours' words with them."""
    text = " ".join(f"w{number:06}x" for number in range(116_000))
    (long,) = await put(pg_store, text, title="plum", thread="t")
    (short,) = await put(pg_store, "banana", thread="t")
    assert len(text) > 1_000_000
    for word in ("plum", "w000000x", "w030000x"):
        assert next(iter(await scores(pg_store, word))) == long
    assert (await scores(pg_store, "w000001x")).keys() == {long, short}


async def test_a_long_text_is_found_by_its_last_word(pg_store: PostgresStore) -> None:
    """Positions end at 16,383, and the words after it are still words."""
    (long,) = await put(pg_store, "sand " * 40_000 + "pearl")
    assert (await scores(pg_store, "pearl")).keys() == (await scores(pg_store, "sand")).keys() == {long}


async def test_a_text_without_words_is_no_trouble(pg_store: PostgresStore) -> None:
    """It is stored, found by nothing, and counts as a memory."""
    await put(pg_store, "?!", "...")
    assert await scores(pg_store, "plum") == {}
    background = (await answer(pg_store, PLUM)).background
    assert background
    assert background.count == 2


# What is counted, and remembered


def counted(sent: list[Statement]) -> list[str]:
    """The words that were counted, sorted; clears the list."""
    asked = [query for one in sent if "asked.query LIMIT" in one.sql for query in one.values["queries"]]
    sent.clear()
    return sorted(query.rpartition(":")[2].strip("'") for query in asked)


async def test_counts_are_remembered_until_the_space_changes(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second search counts nothing anew; after any write, by whichever process, everything is."""
    ids = await put(pg_store, *[f"plum w{number}" for number in range(300)])
    sent = record_statements(monkeypatch)
    await scores(pg_store, "plum w7")
    assert counted(sent) == ["plum", "w7"]
    await scores(pg_store, "plum w7 w8")
    assert counted(sent) == ["w8"]
    await put(pg_store, "plum pie")
    sent.clear()
    assert len(await scores(pg_store, "plum w7", limit=400)) == 301
    assert counted(sent) == ["plum", "w7"]
    await pg_store.forget(HERE, ids[:1])
    sent.clear()
    await scores(pg_store, "plum w7")
    assert counted(sent) == ["plum", "w7"]


async def test_every_write_counts(pg_store: PostgresStore, pg_dsn: str, pg_schema: str) -> None:
    """The next search sees what was written, by whichever process, in a large space too."""
    (first, *_) = await put(pg_store, "plum", *[f"banana {number}" for number in range(300)])
    other = PostgresStore(pg_dsn, PostgresSettings(schema=pg_schema))
    await other.open()
    before = (await scores(other, "plum"))[first]
    (second,) = await put(pg_store, "plum pie")
    assert (await scores(other, "plum")).keys() == {first, second}
    assert (await scores(other, "plum"))[first] < before
    await other.close()


async def test_very_common_words_are_not_counted(pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Postgres noted about them is enough to leave them out, and of several to take the rarest, which is counted
    because its score depends on it.
    """
    monkeypatch.setattr(bm25, "BUDGET", 50)
    await put(pg_store, *["plum pear fig"] * 100, *["plum pear"] * 100, *["plum"] * 100)
    (rare,) = await put(pg_store, "quince and plum")
    await execute(pg_store, "ANALYZE words")
    sent = record_statements(monkeypatch)
    assert (await scores(pg_store, "plum quince")).keys() == {rare}
    assert counted(sent) == ["quinc"]
    assert len(await scores(pg_store, "plum fig pear", limit=400)) == 100
    assert counted(sent) == ["fig"]


async def test_a_very_common_word_alone_is_scored_up_to_a_bound(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three budgets: what follows would cost more than a question of such a word is worth."""
    monkeypatch.setattr(bm25, "BUDGET", 5)
    await put(pg_store, *["plum"] * 14)
    assert len(await scores(pg_store, "plum")) == 14
    await put(pg_store, *["plum"] * 14)
    assert len(await scores(pg_store, "plum")) == 15


async def test_memory_for_counts_is_bounded(pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """When too much is known all of it is forgotten, and counted again when asked for."""
    monkeypatch.setattr(word_counts, "MOST_COUNTS", 5)
    await put(pg_store, "plum pear fig quince")
    await scores(pg_store, "plum pear fig quince")
    sent = record_statements(monkeypatch)
    await scores(pg_store, "plum apple cherry")
    assert counted(sent) == ["appl", "cherri"]
    await scores(pg_store, "plum")
    assert counted(sent) == ["plum"]


# Threads


async def test_writes_in_pieces_and_at_once_are_the_same(pg_store: PostgresStore) -> None:
    """However a thread is written, backwards, in pieces or at once, every context ends up right."""
    rows = [record(f"{place:02}", f"{chr(97 + place)}k", thread="t", place=place) for place in range(20)]
    for batch in (1, 3, 20):
        space = f"space{batch}"
        order = random.Random(batch).sample(rows, 20)
        for at in range(0, 20, batch):
            await pg_store.add(space, order[at : at + batch])
        for place in range(20):
            near = range(max(place - 2, 0), min(place + 2, 19) + 1)
            found = await scores(pg_store, f"{chr(97 + place)}k", space=space)
            assert found.keys() == {f"{other:02}" for other in near}


async def test_a_batch_larger_than_a_statement_is_whole(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are written some at a time, and every one is there once."""
    monkeypatch.setattr(words, "ROWS_AT_ONCE", 7)
    ids = await put(pg_store, *[f"plum w{number}" for number in range(50)])
    assert (await scores(pg_store, "plum")).keys() == set(ids)
    assert (await _sizes(pg_store))[::2] == (50, 50)


# The ledger


async def _sizes(store: PostgresStore) -> tuple[int, int, int]:
    """The memories, terms and changes of the space."""
    sql = "SELECT sum(memories)::int, sum(length)::int, sum(changes)::int FROM sizes WHERE space = %(space)s"
    number = await store._numbers.of(HERE)
    (found,) = await store._connections.read(lambda db: rows_of(db, sql, space=number), space=number)
    memories, length, changes = found
    return memories, length, changes


async def _entries(store: PostgresStore) -> int:
    ((entries,),) = await store._connections.read(lambda db: rows_of(db, "SELECT count(*) FROM sizes"))
    return int(entries)


async def test_the_ledger_says_what_the_space_holds(pg_store: PostgresStore) -> None:
    """Memories and terms add up through adding, changing, moving and forgetting; every written row is a change."""
    one, two, three = await put(pg_store, "plum", "plum pie", "plum pie jam", thread="t")
    assert await _sizes(pg_store) == (3, 3 * 6, 3)
    await pg_store.update(HERE, one, {"text": "fig fig fig"}, now=NOW)
    assert await _sizes(pg_store) == (3, 3 * 8, 6)
    await pg_store.update(HERE, three, {"thread": None}, now=NOW)
    assert (await _sizes(pg_store))[:2] == (3, 2 * 5 + 3)
    await pg_store.forget(HERE, [two, three])
    assert (await _sizes(pg_store))[:2] == (1, 3)
    stored = "SELECT count(*)::int, sum(length)::int FROM words"
    assert await pg_store._connections.read(lambda db: rows_of(db, stored)) == [(1, 3)]


async def test_a_long_ledger_is_added_up(pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays short, and says the same."""
    monkeypatch.setattr(words, "LONG_LEDGER", 5)
    for number in range(20):
        await put(pg_store, f"plum {number}")
        assert await _entries(pg_store) <= 7
    assert await _sizes(pg_store) == (20, 40, 20)


async def test_writers_of_one_space_do_not_wait_for_each_other(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not done yet, having added the ledger up, holds up neither a writer nor another adding up."""
    monkeypatch.setattr(words, "LONG_LEDGER", 1)
    ids = await put(pg_store, "plum", "pear")
    await put(pg_store, "fig")
    number = await pg_store._numbers.of(HERE)
    writing, done = asyncio.Event(), asyncio.Event()

    async def slow(db: Database) -> None:
        await words.remove(db, number, [1])
        writing.set()
        await done.wait()
        raise ConnectionError

    task = asyncio.create_task(pg_store._connections.write(slow, space=number))
    await writing.wait()
    for text in ("quince", "apple", "cherry"):
        await asyncio.wait_for(put(pg_store, text), 10)
    done.set()
    with pytest.raises(ConnectionError):
        await task
    assert await _sizes(pg_store) == (6, 6, 6)
    assert (await scores(pg_store, "plum")).keys() == {ids[0]}
