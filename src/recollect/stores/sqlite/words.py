"""The keyword leg's index: the analyzer's terms of each memory, and those of the memories beside it in its thread."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import apsw

from recollect.stores.contents import Thread
from recollect.stores.named_sql import load
from recollect.stores.sqlite import postings, text_indexes
from recollect.stores.threads import REACH, WordRow, beside, by_thread
from recollect.text.analyzer import terms

__all__ = ["WordRow", "put", "register", "remove"]

Q = load(__name__, "words.sql")


class _Own(NamedTuple):
    """A memory's own words, each with its space, ready for FTS5."""

    title: str
    text: str


def register(db: apsw.Connection) -> None:
    """Register what searches need on a new connection."""
    postings.register(db)
    text_indexes.register(db)


def put(db: apsw.Connection, space: int, rows: Sequence[WordRow]) -> None:
    """Index memories whose rows are already written, and update the context of their neighbours. Remove a memory that
    moves before it is put.
    """
    contexts: dict[int, list[int]] = {row.row: [] for row in rows}
    for thread, members in by_thread((row.row, row.namespace, row.thread, row.place) for row in rows).items():
        order = _stretch(db, space, thread, members.values())
        contexts |= beside(order, changed=members)
    _index(db, space, contexts, {row.row: _own(space, row.title, row.text) for row in rows})
    text_indexes.put(db, space, [(row.row, row.text) for row in rows])


def remove(db: apsw.Connection, space: int, rows: Sequence[int]) -> None:
    """Take memories out of the index and out of the context of others, while their rows are still there."""
    contexts: dict[int, list[int]] = {}
    for thread, members in by_thread(db.execute(Q["places"], (json.dumps(rows),))).items():
        order = _stretch(db, space, thread, members.values())
        contexts |= beside(order, gone=members)
    for statement in ("remove_words", "remove_lengths"):
        db.execute(Q[statement], (json.dumps(rows),))
    _index(db, space, contexts, {})
    text_indexes.remove(db, rows)


def _stretch(db: apsw.Connection, space: int, thread: Thread, places: Collection[int]) -> list[int]:
    """The rows of a thread around some places, far enough to give every affected row its context."""
    whole = {"space": space, "namespace": thread.namespace, "thread": thread.name}
    part = {"low": min(places), "high": max(places), "reach": 2 * REACH}
    return [row for (row,) in db.execute(Q["stretch"], whole | part)]


def _index(db: apsw.Connection, space: int, contexts: Mapping[int, Sequence[int]], own: dict[int, _Own]) -> None:
    """Write rows with the words of their neighbours. Words that are not in `own` are read from the memories."""
    unread = {row for at, around in contexts.items() for row in (at, *around)} - own.keys()
    if unread:
        for row, title, text in db.execute(Q["texts"], (json.dumps(list(unread)),)):
            own[row] = _own(space, title, text)
    fields = {row: (*own[row], " ".join([own[other].text for other in around])) for row, around in contexts.items()}
    lengths = {row: sum(len(words.split()) for words in rest) for row, rest in fields.items()}
    db.execute(Q["remove_words"], (json.dumps(list(contexts)),))
    db.executemany(Q["put_words"], ((postings.key(row, lengths[row]), *rest) for row, rest in fields.items()))
    db.executemany(Q["put_length"], ((row, space, length) for row, length in lengths.items()))


def _own(space: int, title: str, text: str) -> _Own:
    return _Own(_joined(space, title), _joined(space, text))


def _joined(space: int, text: str) -> str:
    words = terms(text) if text else []
    return f"{space}:" + f" {space}:".join(words) if words else ""
