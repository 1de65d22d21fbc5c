"""Searching by words: what the questions' own words find, and in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from recollect.conformance.records import SYNTAX
from recollect.conformance.samples import ALL, HERE, NOW, found, question, record
from recollect.ports import Store
from recollect.types import Filter

PLAIN: dict[str, Any] = {"words": "simple", "match": "plain", "score": "ts_rank_cd"}
ENGLISH: dict[str, Any] = {"words": "english", "match": "plain", "score": "ts_rank_cd"}
WEBSEARCH: dict[str, Any] = {"words": "simple", "match": "websearch", "score": "ts_rank"}


async def spec_any_term_matches(store: Store) -> None:
    """A memory need not hold every word of the question."""
    await store.add(HERE, [record("a", "The invoice was paid in May"), record("b", "A walk in the park")])
    assert await found(store, "who settled that invoice yesterday evening?") == ["a"]


async def spec_rarer_terms_count_more(store: Store) -> None:
    """Of two memories with one word of the question each, the one with the rarer word comes first."""
    common = [record(f"c{number}", f"meeting about topic {number}") for number in range(20)]
    await store.add(HERE, [*common, record("rare", "zeppelin about topic 99")])
    assert (await found(store, "zeppelin meeting", limit=30))[0] == "rare"


async def spec_more_matching_terms_rank_higher(store: Store) -> None:
    """A memory with both words is above those with one of them; raw scores fall from hit to hit."""
    await store.add(HERE, [record("a", "red kite"), record("b", "red bicycle"), record("c", "green bicycle")])
    hits = (await store.search_words(HERE, question("red bicycle"), ALL, limit=10)).hits
    assert hits[0].id == "b"
    assert {hit.id for hit in hits} == {"a", "b", "c"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def spec_ties_go_by_id(store: Store) -> None:
    """The same score is ordered by id, also at the limit."""
    await store.add(HERE, [record(id, f"umbrella {number}") for number, id in enumerate("dbac")])
    assert await found(store, "umbrella") == ["a", "b", "c", "d"]
    assert await found(store, "umbrella", limit=2) == ["a", "b"]


async def spec_an_identifier_finds_its_memory(store: Store) -> None:
    """Among a hundred memories that differ only in the number, the asked one is first."""
    await store.add(HERE, [record(f"m{n}", f"Invoice {n} was paid, see ERR_{n}_X") for n in range(12300, 12400)])
    assert (await found(store, "when was invoice 12346 paid?"))[0] == "m12346"
    assert (await found(store, "ERR_12399_X"))[0] == "m12399"


async def spec_titles_are_words_too(store: Store) -> None:
    """A memory is found by the words of its title."""
    await store.add(HERE, [record("a", "It was paid.", title="Invoice 77"), record("b", "Something else")])
    assert await found(store, "invoice") == ["a"]


async def spec_words_without_spaces_between(store: Store) -> None:
    """Chinese and Japanese are found by a part of a sentence."""
    await store.add(HERE, [record("zh", "我们昨天在北京大学见面"), record("ja", "会議は東京で行われた")])
    assert (await found(store, "北京大学"))[0] == "zh"
    assert (await found(store, "東京"))[0] == "ja"


async def spec_a_phrase_wants_its_order(store: Store) -> None:
    """Words in quotes count as one when they stand side by side."""
    texts = {"a": "the lake is over the hill, black and deep", "b": "we swam in the black lake at night"}
    await store.add(HERE, [record(id, text) for id, text in texts.items()])
    assert (await found(store, '"black lake"'))[0] == "b"


async def spec_holders_say_it_themselves(store: Store) -> None:
    """`holders` names the hits whose own words hold an identifier or a phrase, not those that only stand beside it."""
    texts = {"a": "Please pay INV-2077", "b": "I will, at the black lake", "c": "black, the lake is"}
    await store.add(HERE, [record(id, text, thread="t") for id, text in texts.items()])
    search = question('INV-2077 at the "black lake"')
    answer = await store.search_words(HERE, search, ALL, limit=10)
    (identifier,) = (term.term for term in search.terms if term.names)
    assert {hit.id for hit in answer.hits} == {"a", "b", "c"}
    assert answer.holders[identifier] == {"a"}
    assert answer.holders[" ".join(search.phrases[0])] == {"b"}


async def spec_background_is_the_space_at_large(store: Store) -> None:
    """`background` counts the whole space, and a hit stands out from it."""
    await store.add(HERE, [record(f"m{number}", f"kite number {number}") for number in range(9)])
    await store.add(HERE, [record("a", "a red umbrella")])
    answer = await store.search_words(HERE, question("umbrella"), ALL, limit=10)
    assert answer.background is not None
    assert answer.background.count == 10
    assert answer.background.mean < answer.hits[0].score


async def spec_nothing_found_is_an_empty_answer(store: Store) -> None:
    """No such word, no terms at all, or an empty space: no hits, no error."""
    assert await found(store, "umbrella") == []
    await store.add(HERE, [record("a", "bicycle")])
    assert await found(store, "umbrella") == []
    assert await found(store, "") == []
    assert await found(store, "?!") == []


async def spec_questions_have_no_syntax(store: Store) -> None:
    """Operators in a question are ordinary text, in every reading of it."""
    await store.add(HERE, [record("a", "a plain umbrella")])
    for text in (
        SYNTAX,
        'umbrella"',
        "umbrella*",
        "NEAR(umbrella)",
        "title:umbrella",
        "umbrella AND",
        "^umbrella",
        "(",
        "%",
    ):
        assert set(await found(store, text)) <= {"a"}
        for settings in (PLAIN, WEBSEARCH):
            for words in ("simple", "english"):
                assert set(await found(store, text, **{**settings, "words": words})) <= {"a"}


async def spec_changed_and_forgotten_words(store: Store) -> None:
    """Words that are gone from a memory do not find it any more, in no index."""
    await store.add(HERE, [record("a", "umbrella"), record("b", "umbrella stand")])
    assert set(await found(store, "umbrella", **PLAIN)) == {"a", "b"}
    await store.update(HERE, "a", {"text": "bicycle"}, now=NOW)
    await store.forget(HERE, ["b"])
    assert await found(store, "umbrella") == await found(store, "umbrella", **PLAIN) == []
    assert await found(store, "bicycle") == await found(store, "bicycle", **PLAIN) == ["a"]


async def spec_neighbours_in_a_thread_lend_their_words(store: Store) -> None:
    """A memory is found by the words of up to two neighbours on each side, after the one that says them itself."""
    texts = ["zero", "one", "two", "where is the umbrella?", "four", "five", "six"]
    await store.add(HERE, [record(f"{place}", text, thread="t") for place, text in enumerate(texts)])
    hits = await found(store, "umbrella")
    assert hits[0] == "3"
    assert set(hits[1:]) == {"1", "2", "4", "5"}
    assert await found(store, "umbrella", context=False) == ["3"]


async def spec_a_thread_of_another_namespace_lends_nothing(store: Store) -> None:
    """The same thread name in another namespace is another thread."""
    await store.add(HERE, [record("a", "umbrella", thread="t"), record("b", "kite", thread="t", namespace="other")])
    assert await found(store, "umbrella") == ["a"]
    await store.update(HERE, "b", {"namespace": "default"}, now=NOW)
    assert await found(store, "umbrella") == ["a", "b"]


async def spec_neighbours_may_come_and_go(store: Store) -> None:
    """A neighbour that arrives later, changes or leaves changes what a memory is found by."""
    await store.add(HERE, [record("a", "one", thread="t")])
    await store.add(HERE, [record("b", "umbrella", thread="t")])
    assert set(await found(store, "umbrella")) == {"a", "b"}
    await store.update(HERE, "b", {"text": "bicycle"}, now=NOW)
    assert await found(store, "umbrella") == []
    assert set(await found(store, "bicycle")) == {"a", "b"}
    await store.update(HERE, "b", {"thread": "u"}, now=NOW)
    assert await found(store, "bicycle") == ["b"]
    await store.update(HERE, "b", {"thread": "t"}, now=NOW)
    await store.forget(HERE, ["b"])
    assert await found(store, "bicycle") == []


async def spec_plain_wants_every_word(store: Store) -> None:
    """`plain` matches a memory that has all words; `english` knows their stems, `simple` does not."""
    await store.add(HERE, [record("a", "She paid the invoices"), record("b", "She paid")])
    assert await found(store, "paid invoices", **PLAIN) == ["a"]
    assert await found(store, "paid invoice", **PLAIN) == []
    assert await found(store, "paying invoice", **ENGLISH) == []
    assert await found(store, "the invoice paid", **ENGLISH) == ["a"]


async def spec_websearch_reads_quotes_or_and_minus(store: Store) -> None:
    """`websearch` knows "quotes", `or` and `-not`."""
    await store.add(HERE, [record("a", "black lake"), record("b", "lake so black"), record("c", "white kite")])
    assert await found(store, '"black lake"', **WEBSEARCH) == ["a"]
    assert set(await found(store, "kite or lake", **WEBSEARCH)) == {"a", "b", "c"}
    assert await found(store, "lake -so", **WEBSEARCH) == ["a"]


async def spec_all_words_modes_are_filtered(store: Store) -> None:
    """Filters hold for the all-words modes as well, before the limit."""
    crowd = [record(f"m{number:02}", f"umbrella {number}") for number in range(30)]
    await store.add(HERE, [*crowd, record("z", "an umbrella somewhere in a corner", kind="rare")])
    assert await found(store, "umbrella", Filter(kinds=("rare",)), limit=1, **PLAIN) == ["z"]
    assert await found(store, "umbrella", replace(ALL, kinds=("none",)), **PLAIN) == []


async def spec_a_title_may_be_worth_more(store: Store) -> None:
    """`title_boost` is added when the title contains the whole question."""
    batch = [record("a", "deploy deploy deploy"), record("b", "deploy once", title="How to deploy")]
    await store.add(HERE, batch)
    assert await found(store, "deploy", **PLAIN) == ["a", "b"]
    assert await found(store, "deploy", title_boost=5.0, **PLAIN) == ["b", "a"]


async def spec_words_are_counted_within_namespaces(store: Store) -> None:
    """Asked `within` some namespaces, scores and the background are those of a space that holds nothing else."""
    notes = {f"n{n}": f"umbrella number {n}" + " of the kite" * (n % 3) for n in range(9)}
    await store.add(HERE, [record(id, text, namespace="notes") for id, text in notes.items()])
    asked = replace(question("kite umbrella 3"), within=("notes",))
    where = replace(ALL, namespaces=("notes",))
    before = await store.search_words(HERE, asked, where, limit=20)
    whole = await store.search_words(HERE, replace(asked, within=()), where, limit=20)
    assert (before.hits, before.background) == (whole.hits, whole.background)
    await store.add(HERE, [record(f"s{n}", f"kite {n} {n}", namespace="secret") for n in range(30)])
    assert await store.search_words(HERE, asked, where, limit=20) == before
    whole = await store.search_words(HERE, replace(asked, within=()), where, limit=20)
    assert whole.background != before.background


async def spec_a_sample_stands_for_its_namespaces(store: Store) -> None:
    """It is the same whatever else is there, whatever came first; and all of what is asked for, where that is few."""
    await store.add(HERE, [record(f"n{n}", f"umbrella {n}", namespace="notes") for n in range(20)])
    total, ids = await store.sample(HERE, ["notes"], limit=5)
    assert (total, len(set(ids))) == (20, 5)
    await store.add(HERE, [record(f"s{n}", f"kite {n}", namespace="secret") for n in range(20)])
    assert await store.sample(HERE, ["notes"], limit=5) == (total, ids)
    total, ids = await store.sample(HERE, ["secret", "notes"], limit=100)
    assert (total, len(set(ids))) == (40, 40)
    assert await store.sample(HERE, ["nothing"], limit=5) == (0, [])
