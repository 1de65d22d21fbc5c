"""Storing, changing and forgetting memories, with their words, tags, vectors and links.

Functions of a connection, inside the write transaction of their caller. A memory's rows in the tables come first:
the word index reads the thread around it from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import apsw

from recollect.limits import check_same_text
from recollect.stores import contents
from recollect.stores.contents import Answer, New, Space, Thread
from recollect.stores.nearest import text_digest
from recollect.stores.sqlite import graph, records, vectors, words
from recollect.stores.sqlite.generations import current_for, model_of
from recollect.stores.sqlite.rows import Q, as_json, decode, encode, fetch, micros, row_numbers, tick
from recollect.stores.threads import WordRow
from recollect.types import Generation, Memory, Record, Remembered

if TYPE_CHECKING:
    from recollect.types import Vector


def add(db: apsw.Connection, space: Space, batch: Sequence[Record]) -> list[Remembered]:
    """Store what is new; what is not is answered with the memory that was there first, and joins it."""
    now = datetime.now(UTC)
    batch = contents.of_current_model(batch, model_of(db))
    new, answers = _sift(db, space.number, batch, now)
    stored = _insert(db, space, new) if new else {}
    graph.link_present(db, space.number, contents.first_links(batch, answers))
    copied = {answer.id for answer in answers if answer.id not in stored}
    memories = stored | (fetch(db, space, copied) if copied else {})
    for record, answer in zip(batch, answers, strict=True):
        if record.joins and not answer.created and record.memory.text == memories[answer.id].text:
            memories[answer.id] = _join(db, space, memories[answer.id], record, now)
    return [Remembered(memories[answer.id], answer.created) for answer in answers]


def supersede(db: apsw.Connection, space: Space, old: str, new: Record | str, *, now: datetime) -> Memory:
    """Mark a memory as replaced by another, which is stored first if it is new. An error undoes both."""
    by = new if isinstance(new, str) else _successor(db, space, old, new)
    contents.check_succession(fetch(db, space, (old, by)), old, by)
    if old in records.successors(db, space.number, by):
        raise contents.superseding_refused(old, by)
    tick(db)
    db.execute(Q["supersede"], (space.number, old, by, micros(now)))
    return fetch(db, space, [by])[by]


def _successor(db: apsw.Connection, space: Space, old: str, record: Record) -> str:
    """The id of what is to replace a memory that is here, stored now or before."""
    if not row_numbers(db, space.number, [old]):
        raise contents.missing(old)
    ((memory, _),) = add(db, space, [record])
    check_same_text(record.memory, memory)
    return memory.id


def update(
    db: apsw.Connection,
    space: Space,
    id: str,
    changes: Mapping[str, Any],
    *,
    vector: Vector | None = None,
    now: datetime,
    generation: Generation | None = None,
) -> Memory:
    """Change the named fields, and with them the hash, words and tags. A new title or text removes the vector and the
    memory's links to its nearest.
    """
    contents.check_changes(changes)
    old = fetch(db, space, [id]).get(id)
    if old is None:
        raise contents.missing(id)
    fits = generation in (None, model_of(db))
    return _change(db, space, old, changes, vector if fits else None, now)


def _join(db: apsw.Connection, space: Space, copy: Memory, record: Record, now: datetime) -> Memory:
    """A memory with what its copy says beside it; a vector is that of both, with the title that it takes over."""
    changes = contents.joining(copy, record.memory, now)
    return _change(db, space, copy, changes, record.vector if "title" in changes else None, now) if changes else copy


def _change(
    db: apsw.Connection, space: Space, old: Memory, changes: Mapping[str, Any], vector: Vector | None, now: datetime
) -> Memory:
    id, number = old.id, space.number
    row, mark = row_numbers(db, number, [id])[id], records.marks(db, space, [id])[id]
    new = _placed(db, number, contents.changed(old, changes, vector, now))
    hash = contents.changed_hash(mark.hash, old, new)
    for other in records.ids_by_hash(db, number, [hash]).values():
        if other != id:
            raise contents.copy_refused(id, other)
    _replace(db, number, row, hash, old, new)
    seq = tick(db)
    if contents.passage(new) != contents.passage(old):
        vectors.remove(db, number, seq, [row])
    if vector is not None:
        _put_vectors(db, number, seq, [_vector_row(row, new, vector)])
    return new


def forget(db: apsw.Connection, space: Space, ids: Sequence[str]) -> int:
    """Delete memories with their words, vectors and links. A memory that a forgotten one had superseded stays
    superseded: forgetting a correction does not bring back what it corrected.
    """
    number = space.number
    rows = list(row_numbers(db, number, ids).values())
    if not rows:
        return 0
    words.remove(db, number, rows)
    vectors.remove(db, number, tick(db), rows)
    graph.unlink_nearest(db, number, rows)
    graph.remove(db, number, rows)
    for statement in ("delete_tags", "delete_uses", "delete_memories"):
        db.execute(Q[statement], (as_json(rows),))
    return len(rows)


def put_vectors(
    db: apsw.Connection,
    space: Space,
    embedded: Sequence[tuple[Memory, Vector]],
    *,
    generation: Generation | None = None,
) -> None:
    """Attach vectors, except to memories that were forgotten or changed meanwhile."""
    contents.check_is_current(generation, model_of(db))
    stored = fetch(db, space, [memory.id for memory, _ in embedded])
    made = contents.fitting(embedded, {id: contents.passage(memory) for id, memory in stored.items()})
    rows = row_numbers(db, space.number, made)
    if rows:
        _put_vectors(db, space.number, tick(db), [_vector_row(row, stored[id], made[id]) for id, row in rows.items()])
        db.executemany(Q["set_ready"], ((row,) for row in rows.values()))


def _sift(db: apsw.Connection, space: int, batch: Sequence[Record], now: datetime) -> tuple[list[New], list[Answer]]:
    hashes = [contents.record_hash(record) for record in batch]
    db.execute(Q["release_expired"], (space, as_json(hash.hex() for hash in hashes), micros(now)))
    stored = records.originals(db, space, [record.memory.id for record in batch], hashes)
    return contents.sift(batch, hashes, stored)


def _insert(db: apsw.Connection, space: Space, new: Sequence[New]) -> dict[str, Memory]:
    """The rows, tags, words and vectors of new records; the memories as they are stored."""
    seq, number = tick(db), space.number
    last: int = db.execute(Q["last_row"]).get
    rows = range(last + 1, last + 1 + len(new))
    memories = [record.memory for _, record in new]
    columns = [
        encode(record.memory, place=place, embedding=contents.embedding_state(record))
        for (_, record), place in zip(new, _places(db, number, memories), strict=True)
    ]
    heads = ((row, number, hash, int(record.linked)) for row, (hash, record) in zip(rows, new, strict=True))
    db.executemany(Q["insert_memory"], (head + rest for head, rest in zip(heads, columns, strict=True)))
    stored = [decode(space.name, values) for values in columns]
    _put_tags(db, number, zip(rows, stored, strict=True))
    words.put(db, number, [WordRow.of(row, memory) for row, memory in zip(rows, stored, strict=True)])
    embedded = [
        _vector_row(row, record.memory, record.vector)
        for row, (_, record) in zip(rows, new, strict=True)
        if record.vector is not None
    ]
    _put_vectors(db, number, seq, embedded)
    return {memory.id: memory for memory in stored}


def _placed(db: apsw.Connection, space: int, memory: Memory) -> Memory:
    """A changed memory with its place, as a later fetch returns it."""
    (place,) = _places(db, space, [memory])
    return decode(memory.space, encode(memory, place=place, embedding=memory.embedding))


def _replace(db: apsw.Connection, space: int, row: int, hash: bytes, old: Memory, new: Memory) -> None:
    """Overwrite the old memory. If it moves in its thread, its old neighbours lose its words first."""
    if contents.position(new) != contents.position(old):
        words.remove(db, space, [row])
    if contents.passage(new) != contents.passage(old):
        graph.unlink_nearest(db, space, [row])
    db.execute(Q["delete_tags"], (as_json([row]),))
    columns = encode(new, place=new.place, embedding=new.embedding)
    db.execute(Q["update_memory"], (row, hash, *columns))
    _put_tags(db, space, [(row, new)])
    if WordRow.of(row, new) != WordRow.of(row, old):
        words.put(db, space, [WordRow.of(row, new)])


def _places(db: apsw.Connection, space: int, memories: Sequence[Memory]) -> list[int | None]:
    """Each memory's place in its thread."""
    lasts: dict[Thread, int | None] = {
        thread: db.execute(Q["last_place"], (space, *thread)).get for thread in contents.threads_of(memories)
    }
    return [*contents.places(memories, {thread: last for thread, last in lasts.items() if last is not None})]


def _put_tags(db: apsw.Connection, space: int, memories: Iterable[tuple[int, Memory]]) -> None:
    db.executemany(Q["insert_tag"], ((space, tag, row) for row, memory in memories for tag in memory.tags))


def _put_vectors(db: apsw.Connection, space: int, seq: int, given: Sequence[vectors.VectorRow]) -> None:
    if not given:
        return
    vectors.put(db, space, current_for(db, [one.vector for one in given]), seq, given)


def _vector_row(row: int, memory: Memory, vector: Vector) -> vectors.VectorRow:
    return vectors.VectorRow(row, text_digest(*contents.passage(memory)), vector)
