"""The keyword leg's index: the analyzer's terms of each memory, and those of the memories beside it in its thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from threading import Lock
from typing import Final, NamedTuple

from recollect.ports import WordHits, WordSearch
from recollect.stores.contents import Thread
from recollect.stores.named_sql import load
from recollect.stores.postgres import text_indexes, word_scores
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.lexemes import Document, document
from recollect.stores.postgres.rows import firsts, rows_of
from recollect.stores.threads import REACH, WordRow, beside, by_thread
from recollect.text.analyzer import terms
from recollect.types import Filter

__all__ = ["WordRow", "put", "remove", "search"]

FEW: Final = 20
"""Memories analyzed on the event loop; more are analyzed in a thread."""
ROWS_AT_ONCE: Final = 200
"""Rows per statement: each may have a megabyte, and an array may have a thousand."""
LONG_LEDGER: Final = 50
"""Entries of a space's ledger beyond which they are added up into one."""

_turn: Final = Lock()
"""One thread analyzes at a time: two would only compete for the interpreter, also with the event loop."""

Q = load(__name__, "words.sql")


class _Passage(NamedTuple):
    """The terms of a memory's title and text."""

    title: list[str]
    text: list[str]

    @classmethod
    def of(cls, title: str, text: str) -> _Passage:
        return cls(terms(title) if title else [], terms(text))


async def put(db: Database, space: int, rows: Sequence[WordRow]) -> None:
    """Index memories whose rows are already written, and update the context of their neighbours. Remove a memory that
    moves before it is put. The caller holds the locks of their threads.
    """
    if not rows:
        return
    contexts: dict[int, list[int]] = {row.row: [] for row in rows}
    threads = by_thread((row.row, row.namespace, row.thread, row.place) for row in rows)
    for members, order in zip(threads.values(), await _stretches(db, space, threads), strict=True):
        contexts |= beside(order, changed=members)
    await _write(db, space, contexts, {row.row: (row.title, row.text) for row in rows})


async def remove(db: Database, space: int, rows: Sequence[int]) -> None:
    """Take memories out of the index and out of the context of others, while their rows are still there. The caller
    holds the locks of their threads.
    """
    contexts: dict[int, list[int]] = {}
    threads = by_thread(await rows_of(db, Q["places"], space=space, rows=rows))
    for members, order in zip(threads.values(), await _stretches(db, space, threads), strict=True):
        contexts |= beside(order, gone=members)
    await _write(db, space, contexts, {}, gone=rows)


async def search(
    db: Database, space: int, search: WordSearch, where: Filter, limit: int, counts: word_scores.Counts
) -> WordHits:
    """The memories that answer a question best, ties by id."""
    if search.match == "any":
        return await word_scores.search(db, space, search, where, limit, counts)
    return await text_indexes.search(db, space, search, where, limit)


async def _stretches(db: Database, space: int, threads: Mapping[Thread, Mapping[int, int]]) -> list[list[int]]:
    """The rows of each thread around some places, far enough to give every affected row its context."""
    if not threads:
        return []
    return await firsts(
        db,
        Q["stretches"],
        space=space,
        namespaces=[thread.namespace for thread in threads],
        threads=[thread.name for thread in threads],
        lowest=[min(members.values()) for members in threads.values()],
        highest=[max(members.values()) for members in threads.values()],
        reach=2 * REACH,
    )


async def _write(
    db: Database,
    space: int,
    contexts: Mapping[int, Sequence[int]],
    given: Mapping[int, tuple[str, str]],
    gone: Sequence[int] = (),
) -> None:
    """Write rows with the words of their neighbours, and remove rows that are gone. Titles and texts that are not given
    are read from the memories.
    """
    unread = {*contexts, *chain.from_iterable(contexts.values())} - given.keys()
    texts = dict(given)
    if unread:
        for row, title, text in await rows_of(db, Q["texts"], space=space, rows=[*unread]):
            texts[row] = (title, text)
    if len(texts) <= FEW:
        documents = _documents(space, contexts, texts)
    else:
        documents = await asyncio.to_thread(_documents_in_turn, space, contexts, texts)
    for start in range(0, max(len(documents), 1), ROWS_AT_ONCE):
        some = dict(islice(documents.items(), start, start + ROWS_AT_ONCE))
        entries = await _write_some(db, space, some, () if start else gone)
    if entries > LONG_LEDGER:
        await db.execute(Q["add_up"], {"space": space})


async def _write_some(db: Database, space: int, documents: Mapping[int, Document], gone: Sequence[int]) -> int:
    """Write some rows and remove others; how many ledger entries the space has."""
    lengths = [document.length for document in documents.values()]
    (entries,) = await firsts(
        db,
        Q["write_words"],
        space=space,
        rows=[*documents],
        words=[document.words for document in documents.values()],
        lengths=lengths,
        gone=[*gone],
        count=len(documents),
        length=sum(lengths),
        changes=len(documents) + len(gone),
    )
    return int(entries)


def _documents_in_turn(
    space: int, contexts: Mapping[int, Sequence[int]], texts: Mapping[int, tuple[str, str]]
) -> dict[int, Document]:
    with _turn:
        return _documents(space, contexts, texts)


def _documents(
    space: int, contexts: Mapping[int, Sequence[int]], texts: Mapping[int, tuple[str, str]]
) -> dict[int, Document]:
    shared = {row: _Passage.of(*texts[row]) for row in {*chain.from_iterable(contexts.values())}}
    return {
        row: document(space, *(shared.get(row) or _Passage.of(*texts[row])), [shared[other].text for other in around])
        for row, around in contexts.items()
    }
