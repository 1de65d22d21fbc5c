"""The keyword leg's index: the analyzer's terms of each memory, and those of the memories beside it in its thread."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import apsw

from recollect.ports import WordHits, WordSearch
from recollect.stores.named_sql import load
from recollect.stores.sqlite import text_indexes, word_scores
from recollect.text.analyzer import terms
from recollect.types import Filter

REACH: Final = 2
"""How many memories before and after one in its thread make up its context."""

Q = load(__name__, "words.sql")


class WordRow(NamedTuple):
    """What the index needs of one memory."""

    row: int
    title: str
    text: str
    namespace: str
    thread: str | None = None
    place: int | None = None


class _Thread(NamedTuple):
    """The same name in another namespace is another thread."""

    namespace: str
    name: str


class _Own(NamedTuple):
    """A memory's own words, each with its space, ready for FTS5."""

    title: str
    text: str


def register(db: apsw.Connection) -> None:
    """Give a connection what the searches need. Call it once for each connection that is opened."""
    word_scores.register(db)
    text_indexes.register(db)


def put(db: apsw.Connection, space: int, rows: Sequence[WordRow]) -> None:
    """Index memories whose rows are already written, anew if they were indexed before, and bring the context of
    what stands beside them up to date. A memory that moves to another place is removed first, then put.
    """
    contexts: dict[int, list[int]] = {row.row: [] for row in rows}
    for thread, members in _by_thread((row.row, row.namespace, row.thread, row.place) for row in rows).items():
        order = _stretch(db, space, thread, members.values())
        contexts |= beside(order, changed=members)
    _index(db, space, contexts, {row.row: _own(space, row.title, row.text) for row in rows})
    text_indexes.put(db, space, [(row.row, row.text) for row in rows])


def remove(db: apsw.Connection, space: int, rows: Sequence[int]) -> None:
    """Take memories out of the index and out of the context of others. Call it while their rows are still there."""
    contexts: dict[int, list[int]] = {}
    for thread, members in _by_thread(db.execute(Q["places"], (json.dumps(rows),))).items():
        order = _stretch(db, space, thread, members.values())
        contexts |= beside(order, gone=members)
    db.execute(Q["remove_words"], (json.dumps(rows),))
    _index(db, space, contexts, {})
    text_indexes.remove(db, rows)


def search(
    db: apsw.Connection, space: int, search: WordSearch, where: Filter, limit: int, counts: word_scores.Counts
) -> WordHits:
    """The memories that answer a question best, ties by id."""
    if search.match == "any":
        return word_scores.search(db, space, search, where, limit, counts)
    return text_indexes.search(db, space, search, where, limit)


def beside(order: Sequence[int], *, changed: Collection[int] = (), gone: Collection[int] = ()) -> dict[int, list[int]]:
    """For each row of a stretch of a thread whose context is affected, the rows that now make it up.

    `order` holds the rows in the thread's order, those that go included.
    """
    kept = [row for row in order if row not in gone]
    affected: set[int] = set()
    place = 0
    for row in order:
        if row in gone:
            affected.update(range(place - REACH, place + REACH))
            continue
        if row in changed:
            affected.update(range(place - REACH, place + REACH + 1))
        place += 1
    return {
        kept[at]: kept[max(at - REACH, 0) : at] + kept[at + 1 : at + 1 + REACH]
        for at in affected
        if 0 <= at < len(kept)
    }


def _by_thread(rows: Iterable[tuple[int, str, str | None, int | None]]) -> dict[_Thread, dict[int, int]]:
    """The place of each row, thread by thread."""
    threads: defaultdict[_Thread, dict[int, int]] = defaultdict(dict)
    for row, namespace, name, place in rows:
        if name is not None and place is not None:
            threads[_Thread(namespace, name)][row] = place
    return threads


def _stretch(db: apsw.Connection, space: int, thread: _Thread, places: Collection[int]) -> list[int]:
    """The rows of a thread around some places: far enough to know the context of every row that they affect."""
    whole = {"space": space, "namespace": thread.namespace, "thread": thread.name}
    part = {"low": min(places), "high": max(places), "reach": 2 * REACH}
    return [row for (row,) in db.execute(Q["stretch"], whole | part)]


def _index(db: apsw.Connection, space: int, contexts: Mapping[int, Sequence[int]], own: dict[int, _Own]) -> None:
    """Write rows with the words of what stands beside them; words that are not in `own` are read from the memories."""
    unread = {row for at, around in contexts.items() for row in (at, *around)} - own.keys()
    if unread:
        for row, title, text in db.execute(Q["texts"], (json.dumps(list(unread)),)):
            own[row] = _own(space, title, text)
    db.executemany(
        Q["put_words"],
        ((row, *own[row], " ".join([own[other].text for other in around])) for row, around in contexts.items()),
    )


def _own(space: int, title: str, text: str) -> _Own:
    return _Own(_joined(space, title), _joined(space, text))


def _joined(space: int, text: str) -> str:
    words = terms(text) if text else []
    return f"{space}:" + f" {space}:".join(words) if words else ""
