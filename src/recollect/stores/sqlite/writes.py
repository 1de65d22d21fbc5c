"""Storing, changing and forgetting memories with all that hangs on them: words, tags, vectors, links.

Functions of a connection, inside the write transaction of their caller. A memory's rows in the tables come first:
the word index reads the thread around it from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from recollect.errors import EmbeddingMismatch, InvalidRequest, NotFound
from recollect.stores.sqlite import graph, records, vectors, words
from recollect.stores.sqlite.rows import (
    Q,
    as_json,
    content_hash,
    decode,
    encode,
    fetch,
    is_over,
    micros,
    row_numbers,
    tick,
)
from recollect.types import EmbeddingState, Memory, Record, Remembered

if TYPE_CHECKING:
    from recollect.types import Vector

CHANGEABLE = (
    "text", "title", "kind", "namespace", "tags", "source", "metadata",
    "occurred_at", "expires_at", "quality", "thread", "place",
)  # fmt: skip


class _New(NamedTuple):
    """A record that is not in the store yet."""

    row: int
    hash: bytes
    record: Record


class _Answer(NamedTuple):
    """Which memory answers a record, and whether it is the record itself."""

    id: str
    created: bool


def add(db: apsw.Connection, space: int, name: str, batch: Sequence[Record]) -> list[Remembered]:
    """Store what is new; what is not is answered with the memory that was there first."""
    new, answers = _sift(db, space, batch)
    stored = _insert(db, space, name, new) if new else {}
    _link(db, space, new, {record.memory.id: answer for record, answer in zip(batch, answers, strict=True)})
    copied = {answer.id for answer in answers if answer.id not in stored}
    memories = stored | (fetch(db, space, name, copied) if copied else {})
    return [Remembered(memories[answer.id], answer.created) for answer in answers]


def update(
    db: apsw.Connection,
    space: int,
    name: str,
    id: str,
    changes: Mapping[str, Any],
    vector: Vector | None,
    now: datetime,
) -> Memory:
    """Change the named fields, and with them the hash, the words and the tags. What belonged to another title or text
    goes: the vector, and the memory's own links to its nearest.
    """
    unknown = ", ".join(sorted(changes.keys() - set(CHANGEABLE)))
    if unknown:
        raise InvalidRequest(f"{unknown} cannot be changed; only {', '.join(CHANGEABLE)} can.")
    row = row_numbers(db, space, [id]).get(id)
    if row is None:
        raise NotFound(f"No memory {id!r} in this space.")
    old = fetch(db, space, name, [id])[id]
    new = _changed(db, space, old, changes, vector, now)
    _refuse_copy(db, space, new)
    _replace(db, space, row, old, new)
    seq = tick(db)
    if vector is not None:
        _put_vectors(db, space, seq, [(row, vector)])
    elif _passage(new) != _passage(old):
        vectors.remove(db, space, seq, [row])
    return new


def forget(db: apsw.Connection, space: int, ids: Sequence[str]) -> int:
    """Delete memories and all that hangs on them. A memory that a forgotten one had superseded stays superseded:
    what was once corrected does not come back because the correction is gone.
    """
    rows = list(row_numbers(db, space, ids).values())
    if not rows:
        return 0
    words.remove(db, space, rows)
    vectors.remove(db, space, tick(db), rows)
    graph.remove(db, space, rows)
    for statement in ("delete_tags", "delete_memories"):
        db.execute(Q[statement], (as_json(rows),))
    return len(rows)


def put_vectors(db: apsw.Connection, space: int, name: str, embedded: Sequence[tuple[Memory, Vector]]) -> None:
    """Attach vectors; those of memories that are gone meanwhile, or say something else, are dropped."""
    stored = fetch(db, space, name, [memory.id for memory, _ in embedded])
    fitting = {
        memory.id: vector
        for memory, vector in embedded
        if memory.id in stored and _passage(stored[memory.id]) == _passage(memory)
    }
    rows = row_numbers(db, space, fitting)
    if rows:
        _put_vectors(db, space, tick(db), [(row, fitting[id]) for id, row in rows.items()])
        db.executemany(Q["set_ready"], ((row,) for row in rows.values()))


def _sift(db: apsw.Connection, space: int, batch: Sequence[Record]) -> tuple[list[_New], list[_Answer]]:
    """The records that are new, and for every record the memory that answers it: one of the store, one that comes
    earlier in the batch, or itself.
    """
    hashes = [content_hash(record.memory) for record in batch]
    current = [hash for hash, record in zip(hashes, batch, strict=True) if not is_over(record.memory)]
    db.execute(Q["release_expired"], (space, as_json(hash.hex() for hash in current), micros(datetime.now(UTC))))
    stored = records.originals(db, space, [record.memory.id for record in batch], hashes)
    last: int = db.execute(Q["last_row"]).get
    new: list[_New] = []
    answers: list[_Answer] = []
    earlier: dict[str | bytes, str] = {}
    for record, hash, original in zip(batch, hashes, stored, strict=True):
        id = record.memory.id
        answer = original or earlier.get(id) or earlier.get(hash)
        if answer is None:
            new.append(_New(last + len(new) + 1, hash, record))
            earlier[id] = earlier[hash] = id
        answers.append(_Answer(answer or id, created=answer is None))
    return new, answers


def _insert(db: apsw.Connection, space: int, name: str, new: Sequence[_New]) -> dict[str, Memory]:
    """The rows, tags, words and vectors of new records; the memories as they are stored."""
    seq = tick(db)
    places = _places(db, space, (record.memory for _, _, record in new))
    columns = [
        encode(record.memory, place=place, embedding=_state(record))
        for (_, _, record), place in zip(new, places, strict=True)
    ]
    heads = ((row, space, hash, int(record.linked)) for row, hash, record in new)
    db.executemany(Q["insert_memory"], (head + rest for head, rest in zip(heads, columns, strict=True)))
    stored = [decode(name, values) for values in columns]
    rows = [row for row, _, _ in new]
    _put_tags(db, space, zip(rows, stored, strict=True))
    words.put(db, space, [_word_row(row, memory) for row, memory in zip(rows, stored, strict=True)])
    _put_vectors(db, space, seq, [(row, record.vector) for row, _, record in new if record.vector is not None])
    return {memory.id: memory for memory in stored}


def _link(db: apsw.Connection, space: int, new: Sequence[_New], answers: Mapping[str, _Answer]) -> None:
    """The first links of new records. An end that turned out to be a copy is the memory that was there first; a link
    whose end is gone meanwhile is left out.
    """
    edges = [edge for _, _, record in new for edge in record.edges]
    graph.check(edges)

    def end(id: str) -> str:
        return answers[id].id if id in answers else id

    settled = (replace(edge, source=end(edge.source), target=end(edge.target)) for edge in edges)
    graph.link_present(db, space, [edge for edge in settled if edge.source != edge.target])


def _changed(
    db: apsw.Connection, space: int, old: Memory, changes: Mapping[str, Any], vector: Vector | None, now: datetime
) -> Memory:
    """A memory after an update, as it will read when it is fetched again."""
    new = replace(old, **changes, updated_at=now)
    if "place" not in changes and (new.namespace, new.thread) != (old.namespace, old.thread):
        new = replace(new, place=None)
    if new.thread is None and new.place is not None:
        raise InvalidRequest(f"{old.id!r} is in no thread and can have no place, such as {new.place}: name its thread.")
    (place,) = _places(db, space, [new])
    embedding: EmbeddingState = old.embedding if _passage(new) == _passage(old) else "pending"
    if vector is not None:
        embedding = "ready"
    return decode(old.space, encode(new, place=place, embedding=embedding))


def _refuse_copy(db: apsw.Connection, space: int, memory: Memory) -> None:
    for other in records.ids_by_hash(db, space, [content_hash(memory)]).values():
        if other != memory.id:
            raise InvalidRequest(
                f"This would make {memory.id!r} an exact copy of {other!r}: forget one of them instead."
            )


def _replace(db: apsw.Connection, space: int, row: int, old: Memory, new: Memory) -> None:
    """Write a changed memory over the old one. What moves in its thread leaves its old neighbours first."""
    if _position(new) != _position(old):
        words.remove(db, space, [row])
    if _passage(new) != _passage(old):
        graph.unlink_nearest(db, space, row)
    db.execute(Q["delete_tags"], (as_json([row]),))
    columns = encode(new, place=new.place, embedding=new.embedding)
    db.execute(Q["update_memory"], (row, content_hash(new), *columns))
    _put_tags(db, space, [(row, new)])
    if _word_row(row, new) != _word_row(row, old):
        words.put(db, space, [_word_row(row, new)])


def _places(db: apsw.Connection, space: int, memories: Iterable[Memory]) -> Iterator[int | None]:
    """Each memory's place in its thread: its own, or after the last one."""
    ends: dict[tuple[str, str], int] = {}
    for memory in memories:
        if memory.thread is None:
            yield None
            continue
        thread = (memory.namespace, memory.thread)
        if thread not in ends:
            last: int | None = db.execute(Q["last_place"], (space, *thread)).get
            ends[thread] = -1 if last is None else last
        place = ends[thread] + 1 if memory.place is None else memory.place
        ends[thread] = max(ends[thread], place)
        yield place


def _put_tags(db: apsw.Connection, space: int, memories: Iterable[tuple[int, Memory]]) -> None:
    db.executemany(Q["insert_tag"], ((space, tag, row) for row, memory in memories for tag in memory.tags))


def _put_vectors(db: apsw.Connection, space: int, seq: int, given: Sequence[tuple[int, Vector]]) -> None:
    if not given:
        return
    found = records.generation(db)
    if found is None:
        raise InvalidRequest("This store does not know yet which model makes its vectors: set its generation first.")
    number, generation = found
    for _, vector in given:
        if len(vector) != generation.dimensions:
            raise EmbeddingMismatch(
                f"A vector of {len(vector)} numbers cannot be stored: {generation.model!r}, which made this store's "
                f"vectors, makes {generation.dimensions}."
            )
    vectors.put(db, space, number, seq, given)


def _state(record: Record) -> EmbeddingState:
    """A memory is ready when its vector is there, whatever it says itself."""
    if record.vector is not None:
        return "ready"
    return "failed" if record.memory.embedding == "failed" else "pending"


def _word_row(row: int, memory: Memory) -> words.WordRow:
    return words.WordRow(row, memory.title, memory.text, *_position(memory))


def _position(memory: Memory) -> tuple[str, str | None, int | None]:
    """Where a memory stands: a thread belongs to its namespace."""
    return memory.namespace, memory.thread, memory.place


def _passage(memory: Memory) -> tuple[str, str]:
    """What a vector is made of."""
    return memory.title, memory.text
