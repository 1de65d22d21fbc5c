"""The word index inside the SQLite store, on a bare connection with the store's schema."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isclose, log, sqrt
from pathlib import Path

import apsw
import pytest

from recollect.errors import InvalidRequest
from recollect.ports import Term, WordHits, WordSearch
from recollect.stores import bm25
from recollect.stores.named_sql import load, read
from recollect.stores.sqlite import postings, text_indexes, word_scores, words
from recollect.stores.sqlite.postings import LONGEST
from recollect.stores.sqlite.rows import tick
from recollect.stores.threads import WordRow
from recollect.text.analyzer import terms
from recollect.types import Filter

OPEN = Filter()


class Index:
    """Memories and their words in one connection; a memory's id is its row number in four digits."""

    def __init__(self, path: str = ":memory:") -> None:
        self.db = apsw.Connection(path)
        self.db.execute(read("recollect.stores.sqlite.store", "schema.sql"))
        self.db.execute("INSERT INTO spaces (number, name) VALUES (1, 'a'), (2, 'b')")
        words.register(self.db)
        self.counts = word_scores.Counts()
        self.texts: dict[int, WordRow] = {}

    def put(
        self, *texts: str, space: int = 1, thread: str | None = None, title: str = "", kind: str = "fact"
    ) -> list[int]:
        """Store texts at the end of a thread."""
        first: int = self.db.execute("SELECT coalesce(max(row), 0) + 1 FROM memories").get
        rows = [
            WordRow(row, title, text, "default", thread, row if thread else None)
            for row, text in enumerate(texts, start=first)
        ]
        self.insert(rows, space, kind)
        words.put(self.db, space, rows)
        return [row.row for row in rows]

    def insert(self, rows: Sequence[WordRow], space: int = 1, kind: str = "fact") -> None:
        tick(self.db)
        self.db.executemany(
            "INSERT INTO memories (row, space, id, hash, namespace, kind, text, title, tags, source, thread, place,"
            " metadata, created_at, updated_at, embedding)"
            " VALUES (?, ?, ?, randomblob(8), 'default', ?, ?, ?, '[]', '', ?, ?, '{}', 0, 0, 'pending')",
            [(r.row, space, f"{r.row:04}", kind, r.text, r.title, r.thread, r.place) for r in rows],
        )

    def change(self, row: int, text: str) -> None:
        tick(self.db)
        self.db.execute("UPDATE memories SET text = ? WHERE row = ?", (text, row))
        ((title, thread, place),) = self.db.execute("SELECT title, thread, place FROM memories WHERE row = ?", (row,))
        words.put(self.db, 1, [WordRow(row, title, text, "default", thread, place)])

    def remove(self, *rows: int) -> None:
        tick(self.db)
        words.remove(self.db, 1, rows)
        self.db.executemany("DELETE FROM memories WHERE row = ?", [(row,) for row in rows])

    def search(self, search: WordSearch, *, space: int = 1, where: Filter = OPEN, limit: int = 100) -> WordHits:
        if search.match != "any":
            return text_indexes.search(self.db, space, search, where, limit)
        return word_scores.search(self.db, space, search, where, limit, self.counts)

    def find(self, text: str, *, space: int = 1, where: Filter = OPEN, context: bool = True) -> dict[int, float]:
        """The score of each row that holds any of the text's terms, best first."""
        asked = WordSearch(text, tuple(Term(term) for term in dict.fromkeys(terms(text))), context=context)
        return {int(hit.id): hit.score for hit in self.search(asked, space=space, where=where).hits}

    def match(self, text: str, *, boost: float = 0.0, limit: int = 100, **reading: str) -> dict[int, float]:
        """The score of each row that matches in one of the seeds' ways; the index is built first."""
        asked = WordSearch(text, title_boost=boost, **reading)  # type: ignore[arg-type]
        if name := text_indexes.missing_index(self.db, asked):
            while not text_indexes.build_index(self.db, name, batch=2):
                pass
        return {int(hit.id): hit.score for hit in self.search(asked, limit=limit).hits}


@pytest.fixture
def index() -> Iterator[Index]:
    made = Index()
    yield made
    made.db.close()


def own_idf(size: int, rows: int) -> float:
    return log(1 + (size - rows + 0.5) / (rows + 0.5))


def saturated(frequency: float, length: float, average: float) -> float:
    return frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / average))


# BM25


def test_bm25_is_the_textbooks(index: Index) -> None:
    """k1 1.2, b 0.75, lengths against the average, idf = ln(1 + (N - n + 0.5) / (n + 0.5)): by hand."""
    index.put("plum plum banana", "banana cherry", "cherry cherry cherry cherry")
    hits = index.find("plum banana")
    average = (3 + 2 + 4) / 3
    plum, banana = own_idf(3, 1), own_idf(3, 2)
    assert list(hits) == [1, 2]
    assert isclose(hits[1], plum * saturated(2, 3, average) + banana * saturated(1, 3, average), rel_tol=1e-12)
    assert isclose(hits[2], banana * saturated(1, 2, average), rel_tol=1e-12)


def test_very_long_texts_come_and_go(index: Index) -> None:
    """A text with more terms than a key has room for is scored as if it had as many, changed and removed."""
    long = "plum " * (LONGEST + 100)
    index.put(long, "plum", "banana")
    found = index.find("plum")
    average = index.db.execute("SELECT terms FROM spaces WHERE number = 1").get / 3
    assert isclose(found[1], own_idf(3, 2) * saturated(LONGEST + 100, LONGEST, average), rel_tol=1e-9)
    index.change(1, long + "cherry")
    assert index.find("cherry").keys() == {1}
    index.remove(1)
    assert index.find("plum").keys() == {2}
    assert index.db.execute("SELECT count(*) FROM words_docsize").get == 2


def test_a_term_that_the_index_would_fold_or_split(index: Index) -> None:
    """It is read as FTS5 reads it, in the index and in the question alike."""
    index.put("plum", "banana")
    assert [hit.id for hit in index.search(WordSearch("", (Term("PLUM"),))).hits] == ["0001"]
    assert index.search(WordSearch("", (Term('pl"um'), Term("(plum)x")))).hits == []


def test_a_terms_weight_multiplies_its_share(index: Index) -> None:
    """A term of weight 2 counts twice."""
    index.put("plum", "banana", "cherry")
    plain = index.search(WordSearch("", (Term("plum"),)))
    double = index.search(WordSearch("", (Term("plum", 2.0),)))
    assert isclose(double.hits[0].score, 2 * plain.hits[0].score)


def test_the_background_is_told_by_the_document_frequencies(index: Index) -> None:
    """Mean p x idf and variance p (1 - p) x idf^2, summed over the terms, p being the share that holds one."""
    index.put("plum", "banana", "banana", "cherry")
    background = index.search(WordSearch("", (Term("plum"), Term("banana"), Term("zebra")))).background
    assert background is not None
    plum, banana = own_idf(4, 1), own_idf(4, 2)
    assert isclose(background.mean, plum / 4 + banana / 2)
    assert isclose(background.deviation, sqrt(3 / 16 * plum**2 + 1 / 4 * banana**2))
    assert background.count == 4


@pytest.mark.parametrize("places", [postings.PLACES_PER_ROW, 1])
def test_random_texts_score_as_a_brute_force_search(index: Index, monkeypatch: pytest.MonkeyPatch, places: int) -> None:
    """Two spaces, titles, threads, changes and removals: the same order as plain Python, scores within 1e-9, whether a
    term is read as a whole or row by row.
    """
    monkeypatch.setattr(postings, "PLACES_PER_ROW", places)
    chance = random.Random(7)
    vocabulary = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "islet", "jewel", "knoll"]

    def sentence() -> str:
        return " ".join(chance.choices(vocabulary, range(1, 12), k=chance.randint(1, 12)))

    for _ in range(30):
        thread = chance.choice([None, "t1", "t2"])
        index.put(*(sentence() for _ in range(chance.randint(1, 4))), thread=thread, title=chance.choice(["", "amber"]))
        index.put(sentence(), space=2, thread=thread)
    first_space = [row for (row,) in index.db.execute("SELECT row FROM memories WHERE space = 1")]
    index.remove(*chance.sample(first_space, 12))
    for (row,) in list(index.db.execute("SELECT row FROM memories WHERE space = 1 AND row % 5 = 0")):
        index.change(row, sentence())
    for _ in range(20):
        question = " ".join(chance.sample(vocabulary, chance.randint(1, 4)))
        for space in (1, 2):
            expected = brute_force(index.db, space, question)
            found = index.find(question, space=space)
            assert found.keys() == expected.keys()
            assert all(isclose(found[row], expected[row], abs_tol=1e-9) for row in found)
            assert list(found.values()) == sorted(found.values(), reverse=True)


def brute_force(db: apsw.Connection, space: int, question: str) -> dict[int, float]:
    """BM25 over every memory of a space, from nothing but the table `memories`."""
    documents = {row: (space, fields) for row, space, fields in _documents(db)}
    here = {row: fields for row, (owner, fields) in documents.items() if owner == space}
    average = sum(len(field) for fields in here.values() for field in fields) / len(here)
    scores: dict[int, float] = {}
    for term in dict.fromkeys(terms(question)):
        holding = {row: fields for row, fields in here.items() if any(term in field for field in fields)}
        for row, (title, text, context) in holding.items():
            frequency = title.count(term) + text.count(term) + bm25.CONTEXT * context.count(term)
            length = len(title) + len(text) + len(context)
            share = own_idf(len(here), len(holding)) * saturated(frequency, length, average)
            scores[row] = scores.get(row, 0.0) + share
    return scores


def _documents(db: apsw.Connection) -> Iterator[tuple[int, int, list[list[str]]]]:
    rows = list(db.execute("SELECT row, space, thread, title, text FROM memories ORDER BY space, thread, place, row"))
    for at, (row, space, thread, title, text) in enumerate(rows):
        context = [
            term
            for near in (at - 2, at - 1, at + 1, at + 2)
            if thread is not None and 0 <= near < len(rows) and rows[near][1:3] == (space, thread)
            for term in terms(rows[near][4])
        ]
        yield row, space, [terms(title), terms(text), context]


# Spaces, filters, bounds


def test_another_spaces_lengths_do_not_count(index: Index) -> None:
    """A space's scores stay to the last digits what they are, however long the memories of another one are."""
    index.put("plum plum banana", "banana cherry", "cherry cherry cherry cherry plum")
    alone = index.find("plum banana")
    index.put(*["banana " * 40] * 5, space=2)
    beside = index.find("plum banana")
    assert list(beside) == list(alone)
    assert all(isclose(beside[row], alone[row], rel_tol=1e-12) for row in alone)


def test_two_spaces_never_meet(index: Index) -> None:
    """A space's hits and document frequencies are its own, however often another space says the word."""
    index.put("plum", "banana", "cherry")
    before = index.search(WordSearch("", (Term("plum"),)))
    index.put(*["plum"] * 50, space=2)
    after = index.search(WordSearch("", (Term("plum"),)))
    assert [hit.id for hit in after.hits] == ["0001"]
    assert isclose(after.hits[0].score, before.hits[0].score, rel_tol=1e-12)
    assert after.background == before.background
    assert len(index.find("plum", space=2)) == 50
    assert index.find("banana", space=2) == {}


def test_a_written_word_is_counted_at_the_next_search(index: Index) -> None:
    """Cached counts go with the clock: the next search sees what was written, by whichever connection."""
    index.put("plum", "banana", "cherry")
    first = index.find("plum")[1]
    index.put("plum pie")
    assert index.find("plum").keys() == {1, 4}
    assert index.find("plum")[1] < first


def test_another_connection_sees_the_write(tmp_path: Path) -> None:
    """Two connections on one file: what one writes, the other counts and finds."""
    one = Index(str(tmp_path / "m.db"))
    one.put("plum", "banana")
    other = apsw.Connection(str(tmp_path / "m.db"))
    words.register(other)
    counts = word_scores.Counts()
    asked = WordSearch("", (Term("plum"),))
    assert word_scores.search(other, 1, asked, OPEN, 10, counts) == one.search(asked)
    one.put("plum")
    assert len(word_scores.search(other, 1, asked, OPEN, 10, counts).hits) == 2
    assert word_scores.search(other, 1, asked, OPEN, 10, counts) == one.search(asked)
    one.db.close()
    other.close()


@pytest.mark.parametrize("few", [0, 2_000])
@pytest.mark.parametrize("where", [Filter(kinds=("fact",)), Filter(tags=("ripe",), kinds=("fact",))])
def test_the_filter_comes_before_the_limit(
    index: Index, monkeypatch: pytest.MonkeyPatch, where: Filter, few: int
) -> None:
    """Better hits that the filter hides do not use up the limit, whether few or many rows pass it, and those of a tag
    that do not pass the rest of it do not either.
    """
    monkeypatch.setattr(bm25, "FEW", few)
    monkeypatch.setattr(bm25, "FEW_LISTED", few)
    index.put(*["plum plum"] * 300, kind="message")
    wanted = index.put("plum and quite a few other words that make it score less", "plum pie")
    index.db.execute("INSERT INTO tags (space, tag, row) SELECT space, 'ripe', row FROM memories WHERE row > 200")
    asked = WordSearch("", (Term("plum"),))
    hits = index.search(asked, where=where, limit=2).hits
    assert [int(hit.id) for hit in hits] == wanted[::-1]
    assert hits == index.search(asked, limit=400).hits[-2:]


def test_superseded_memories_are_left_out_unless_asked_for(index: Index) -> None:
    """An open filter still hides what was superseded."""
    index.put("plum", "plum")
    index.db.execute("UPDATE memories SET superseded_by = '0002' WHERE row = 1")
    assert index.find("plum").keys() == {2}
    assert index.find("plum", where=Filter(include_superseded=True)).keys() == {1, 2}


def test_equal_scores_are_ordered_by_id(index: Index) -> None:
    """At the limit's edge, too: of equal hits those with the smallest ids are kept."""
    index.put(*["plum"] * 40)
    index.db.execute("UPDATE memories SET id = printf('%04d', 1000 - row)")
    hits = index.search(WordSearch("", (Term("plum"),)), limit=3).hits
    assert [hit.id for hit in hits] == ["0960", "0961", "0962"]


def test_the_commonest_terms_are_dropped_beyond_the_budget(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rarest terms are scored until the budget is spent; the rarest one in any case."""
    index.put(*["plum"] * 12, "banana", "banana", "cherry")
    monkeypatch.setattr(word_scores, "BUDGET", 5)
    assert index.find("plum banana cherry").keys() == {13, 14, 15}
    assert len(index.find("plum")) == 12


def test_a_filter_that_hides_the_rare_terms_brings_the_common_ones_back(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropped terms are looked up after all when a filter leaves too few hits."""
    index.put(*["plum"] * 12, "banana")
    index.put("plum here", kind="message")
    monkeypatch.setattr(word_scores, "BUDGET", 5)
    assert index.find("plum banana").keys() == {13}
    assert index.find("plum banana", where=Filter(kinds=("message",))).keys() == {14}


def test_a_superseded_rare_word_does_not_leave_the_answer_empty(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """When all that holds the rare terms is superseded, the common ones are looked up; a hit is enough otherwise."""
    index.put(*["plum"] * 12, "banana", "banana")
    monkeypatch.setattr(word_scores, "BUDGET", 5)
    index.db.execute("UPDATE memories SET superseded_by = '0001' WHERE row = 13")
    assert index.find("plum banana").keys() == {14}
    index.db.execute("UPDATE memories SET superseded_by = '0001' WHERE row = 14")
    assert index.find("plum banana").keys() == set(range(1, 13))


# Parts: phrases and names


def test_what_very_many_hold_is_no_name(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with too many holders has none, while a phrase has all the hits that hold it, wherever they are."""
    monkeypatch.setattr(bm25, "MOST_HOLDERS", 5)
    index.put(*["quick fox"] * 5, "banana")
    quick, fox = terms("quick")[0], terms("fox")[0]
    asked = WordSearch("", (Term(quick, names=True), Term(fox)), phrases=((quick, fox),))
    five = {f"{row:04}" for row in range(1, 6)}
    assert index.search(asked).holders == {quick: five, f"{quick} {fox}": five}
    index.put("quick fox")
    assert index.search(asked).holders == {f"{quick} {fox}": {*five, "0007"}}


def test_a_phrase_is_adjacent_terms(index: Index) -> None:
    """A phrase is scored like one term with its own frequency, and whoever holds it is reported."""
    index.put("quick fox", "fox quick", "quick brown fox")
    quick, fox = terms("quick")[0], terms("fox")[0]
    found = index.search(WordSearch("", (Term(quick), Term(fox)), phrases=((quick, fox),)))
    assert found.holders == {f"{quick} {fox}": {"0001"}}
    assert found.hits[0].id == "0001"


def test_a_phrase_counts_where_it_stands(index: Index) -> None:
    """As a term does: in title and text once, in the context a fifth."""
    index.put("quick fox and another quick fox", title="quick fox")
    index.put("quick fox", "nothing", "banana", thread="t")
    quick, fox = terms("quick")[0], terms("fox")[0]
    found = {int(hit.id): hit.score for hit in index.search(WordSearch("", (), phrases=((quick, fox),))).hits}
    lengths = dict(index.db.execute("SELECT row, terms FROM lengths"))
    average = sum(lengths.values()) / 4
    times = {1: 3.0, 2: 1.0, 3: bm25.CONTEXT, 4: bm25.CONTEXT}
    assert found.keys() == times.keys()
    for row, count in times.items():
        assert isclose(found[row], own_idf(4, 4) * saturated(count, lengths[row], average), rel_tol=1e-12)


def test_a_hundred_terms_are_one_question(index: Index) -> None:
    """Every term counts."""
    many = [f"{letter}{other}k" for letter in "abcdefghij" for other in "klmnopqrst"]
    index.put(" ".join(many), "akk")
    found = index.search(WordSearch("", tuple(Term(terms(word)[0]) for word in many)))
    assert [hit.id for hit in found.hits] == ["0001", "0002"]


def test_thousands_of_terms(index: Index) -> None:
    """A question longer than a statement can hold is answered by its rarest terms."""
    index.put("plum", *["common"] * 3)
    asked = (Term("common"), *(Term(f"t{number}") for number in range(3000)), Term("plum"))
    assert "0001" in {hit.id for hit in index.search(WordSearch("", asked)).hits}


@pytest.mark.parametrize(
    "hostile",
    ['"', '""', "*", "plu*", "NEAR(plum banana)", "title:plum", "title : plum", "'; DROP TABLE memories; --",
     "-plum", "^plum", "plum OR banana", "(plum", "{title text}", "plum + banana", "\\", "%", "2:plum", "AND"],
)  # fmt: skip
def test_a_question_is_never_syntax(index: Index, hostile: str) -> None:
    """Whatever is in a term or phrase is looked up as it is: no error, no operator, no other space."""
    index.put("banana", "cherry")
    index.put("plum secret", space=2)
    found = index.search(WordSearch(hostile, (Term(hostile),), phrases=((hostile, hostile),)))
    assert found.hits == []
    for match in ("plain", "websearch"):
        index.match(hostile, words="simple", match=match, score="ts_rank")
        index.match(hostile, words="english", match=match, score="ts_rank_cd", boost=0.5)
    assert index.find("banana").keys() == {1}


@pytest.mark.parametrize(
    "hostile", ['say "hi"', "f(x) * NEAR(y)", "title:x ' ; DROP", "ERR_CONN_REFUSED v1.2.3", "日本語の文"]
)
def test_a_text_is_never_syntax(index: Index, hostile: str) -> None:
    """Whatever a memory says is indexed and found by its own terms."""
    index.put("banana", hostile)
    assert next(iter(index.find(hostile))) == 2


def test_other_scripts(index: Index) -> None:
    """Terms of any script are found."""
    index.put("Zürich grüßt", "Москва слезам не верит", "東京の天気は晴れ", "서울 날씨")
    assert list(index.find("Zürich")) == [1]
    assert list(index.find("Москва слезам не верит")) == [2]
    assert list(index.find("東京の天気")) == [3]
    assert list(index.find("서울")) == [4]


# Threads


def test_what_stands_beside_a_memory_finds_it(index: Index) -> None:
    """Two before and two after count, weaker than own words; a third does not, nor does another thread."""
    rows = index.put("one", "two", "three", "plum", "five", "six", "seven", thread="t")
    index.put("other thread", thread="u")
    found = index.find("plum")
    assert next(iter(found)) == rows[3]
    assert found.keys() == {rows[i] for i in (1, 2, 3, 4, 5)}
    assert max(score for row, score in found.items() if row != rows[3]) < found[rows[3]] / 2


def test_a_name_beside_is_not_ones_own(index: Index) -> None:
    """Holders are those that hold a name themselves, so a neighbour's identifier is not taken for their own."""
    index.put("plum", "banana", thread="t")
    found = index.search(WordSearch("", (Term("plum", names=True),)))
    assert {hit.id for hit in found.hits} == {"0001", "0002"}
    assert found.holders == {"plum": {"0001"}}


def test_the_plain_turns_can_be_searched_alone(index: Index) -> None:
    """Without context a neighbour's word is no match, and frequencies count own words only."""
    index.put("plum", "banana", "cherry", thread="t")
    found = index.find("plum", context=False)
    assert list(found) == [1]
    average = (1 + 2) * 3 / 3
    assert isclose(found[1], own_idf(3, 1) * saturated(1, 3, average))


def test_later_neighbours_update_earlier_memories(index: Index) -> None:
    """One at a time or in a batch, the index is the same."""
    index.put("one", thread="t")
    assert index.find("plum") == {}
    index.put("plum", thread="t")
    assert index.find("plum").keys() == {1, 2}
    index.put("three", thread="t")
    index.put("four", thread="t")
    index.put("five", thread="t")
    assert index.find("plum").keys() == {1, 2, 3, 4}


def test_a_changed_text_changes_its_neighbours(index: Index) -> None:
    """The old words leave the neighbours' context and the new ones enter it."""
    index.put("one", "plum", "three", thread="t")
    index.change(2, "banana")
    assert index.find("plum") == {}
    assert index.find("banana").keys() == {1, 2, 3}


def test_a_removed_memory_leaves_its_neighbours(index: Index) -> None:
    """Those left behind close ranks: what stood third is now second."""
    index.put("plum", "two", "three", "four", thread="t")
    assert index.find("plum").keys() == {1, 2, 3}
    index.remove(2)
    assert index.find("plum").keys() == {1, 3, 4}
    index.remove(1)
    assert index.find("plum") == {}


@pytest.mark.parametrize("batch", [1, 2, 5, 40])
def test_batches_and_order_make_no_difference(index: Index, batch: int) -> None:
    """However a thread is written, backwards, in pieces or at once, every context ends up right."""
    rows = [WordRow(row, "", f"{chr(96 + row)}{chr(96 + row)}k", "default", "t", row) for row in range(1, 21)]
    random.Random(batch).shuffle(rows)
    for at in range(0, len(rows), batch):
        index.insert(rows[at : at + batch])
        words.put(index.db, 1, rows[at : at + batch])
    for row in range(1, 21):
        assert index.find(f"{chr(96 + row)}{chr(96 + row)}k").keys() == set(
            range(max(row - 2, 1), min(row + 2, 20) + 1)
        )


def test_neighbours_are_found_through_the_threads_index(index: Index) -> None:
    """Reading a stretch of a thread never scans the memories."""
    bounds = {"space": 1, "namespace": "n", "thread": "t", "low": 1, "high": 2, "reach": 4}
    plan = [
        str(row[3])
        for row in index.db.execute(
            "EXPLAIN QUERY PLAN " + load("recollect.stores.sqlite.store", "words.sql")["stretch"], bounds
        )
    ]
    assert sum("COVERING INDEX memories_by_thread" in step for step in plan) == 3
    assert not any("SCAN memories" in step for step in plan)


# The seeds' text indexes


def test_a_text_index_is_built_once_and_then_kept(index: Index) -> None:
    """It is missing until built, batch by batch; memories written, changed or removed later are in step."""
    index.put("one plum", "two plums", "three")
    asked = WordSearch("plum", words="english", match="plain", score="ts_rank")
    assert text_indexes.missing_index(index.db, asked) == "words_english"
    assert index.match("plum", words="english", match="plain", score="ts_rank").keys() == {1, 2}
    assert text_indexes.missing_index(index.db, asked) is None
    assert text_indexes.missing_index(index.db, replace(asked, words="simple")) == "words_simple"
    index.put("four plums")
    index.change(1, "one banana")
    index.remove(2)
    assert index.match("plum", words="english", match="plain", score="ts_rank").keys() == {4}


def test_a_file_knows_two_configurations(index: Index) -> None:
    """Others are Postgres' own; the refusal names those that there are."""
    with pytest.raises(InvalidRequest, match="use one of simple, english"):
        index.match("plum", words="german", match="plain", score="ts_rank")


def test_memories_written_while_an_index_is_built_are_in_it(index: Index) -> None:
    """Between two batches other writers have their turn."""
    index.put("plum one", "plum two", "plum three")
    assert text_indexes.build_index(index.db, "words_simple", batch=2) is False
    index.put("plum four")
    index.remove(1)
    index.change(3, "pear")
    assert index.match("plum", words="simple", match="plain", score="ts_rank").keys() == {2, 4}


def test_the_seeds_scores_are_postgres_own(index: Index) -> None:
    """Literal numbers from a Postgres 18 server, through the index."""
    index.put("The quick brown fox jumps over the lazy dog", "no such animal", space=1)
    rank = index.match("dog quick", words="english", match="plain", score="ts_rank")
    density = index.match("dog quick", words="english", match="plain", score="ts_rank_cd")
    assert rank.keys() == density.keys() == {1}
    assert isclose(rank[1], 0.07614762, rel_tol=1e-6)
    assert isclose(density[1], 0.014285714, rel_tol=1e-6)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("rose", {1, 2, 3}),
        ("rose tulip", {2}),
        ("rose -tulip", {1, 3}),
        ("tulip or thorn", {2, 3}),
        ('"red rose"', {1}),
        ('rose -"red rose"', {2, 3}),
        ('(rose thorn) or "tulip field"', {3}),
        ("-rose", {4}),
        ("rose or -rose", {1, 2, 3, 4}),
        ("...", set()),
    ],
)
def test_websearch_finds_what_postgres_finds(index: Index, question: str, expected: set[int]) -> None:
    """All words, phrases, alternatives and exclusions."""
    index.put("a red rose", "rose and tulip", "rose with thorn red", "field of grass")
    index.put("red rose tulip thorn", space=2)
    assert index.match(question, words="simple", match="websearch", score="ts_rank_cd").keys() == expected


def test_a_phrase_over_stop_words_keeps_its_distance(index: Index) -> None:
    """Any two words may stand in for "of the", but not none and not three."""
    index.put("cats of the dogs", "cats big red dogs", "cats dogs", "cats one two three dogs")
    found = index.match('"cats of the dogs"', words="english", match="websearch", score="ts_rank")
    assert found.keys() == {1, 2}


def test_a_title_that_contains_the_question_is_a_match_and_a_boost(index: Index) -> None:
    """Half a point more for the title, with or without the words in the text; wildcards are plain characters."""
    index.put("tea is brewed at 100% heat", title="Brewing TEA at home")
    index.put("tea only")
    index.put("nothing", title="all about tea")
    index.put("nothing", title="100 percent")
    found = index.match("tea", words="simple", match="plain", score="ts_rank_cd", boost=0.5)
    assert list(found) == [1, 3, 2]
    assert isclose(found[1], 0.6, rel_tol=1e-6)
    assert found[3] == 0.5
    assert isclose(found[2], 0.1, rel_tol=1e-6)
    assert 4 not in index.match("100%", words="simple", match="plain", score="ts_rank_cd", boost=0.5)
    assert index.match("  ", words="simple", match="plain", score="ts_rank_cd", boost=0.5) == {}


def test_a_long_question_of_all_words(index: Index) -> None:
    """As many words as a question of 8 KiB can hold."""
    text = " ".join(f"w{number}" for number in range(1500))
    index.put(text, "w1 w2")
    assert index.match(text, words="simple", match="plain", score="ts_rank_cd").keys() == {1}
    either = " or ".join(f"w{number}" for number in range(800))
    assert index.match(either, words="simple", match="websearch", score="ts_rank").keys() == {1, 2}
