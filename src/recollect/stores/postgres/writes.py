"""Storing, changing and forgetting memories, with their words, tags, vectors and links.

Functions of a connection, inside the write transaction of their caller. Others write at the same time: whoever writes
into a thread holds its lock before reading it, rows are locked in their order, and what somebody else has stored
meanwhile makes a unique index refuse it, after which the whole transaction is run again. A memory's rows in the tables
come first: the word index reads the thread around it from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from recollect.limits import check_same_text, utc
from recollect.stores import contents
from recollect.stores.contents import Answer, New, Space, Thread
from recollect.stores.postgres import graph, vectors, words
from recollect.stores.postgres.bulk import MANY, Database, Table, write_rows
from recollect.stores.postgres.rows import COLUMNS, Q, Stored, decode, encode, fetch, firsts, new_rows, rows_of, stored
from recollect.stores.threads import WordRow
from recollect.types import Generation, Memory, Record, Remembered

if TYPE_CHECKING:
    from recollect.types import Vector

MEMORIES: Final = Table("memories", {"space": "int4", "row": "int8", "hash": "bytea", **COLUMNS})
_COUNTED: Final = {"hits": "int8", "last_hit_at": "timestamptz", "used": "int8", "last_used_at": "timestamptz"}
HITS: Final = Table("hits", {"space": "int4", "row": "int8", **_COUNTED})


async def add(db: Database, space: Space, batch: Sequence[Record], rows: Sequence[int] = ()) -> list[Remembered]:
    """Store what is new, in rows of these numbers if they were chosen before; what is not new is answered with the
    memory that was there first, and joins it.
    """
    now = datetime.now(UTC)
    batch = contents.of_current_model(batch, await _model(db))
    await _lock_threads(db, space.number, contents.threads_of(record.memory for record in batch))
    new, answers = await _sift(db, space.number, batch, now)
    added = await _insert(db, space, new, rows[: len(new)] or await new_rows(db, len(new))) if new else {}
    await graph.link_present(db, space.number, contents.first_links(batch, answers))
    copied = {answer.id for answer in answers if answer.id not in added}
    memories = added | (await fetch(db, space, copied) if copied else {})
    for record, answer in zip(batch, answers, strict=True):
        if record.joins and not answer.created and record.memory.text == memories[answer.id].text:
            memories[answer.id] = await _join(db, space, memories[answer.id], record, now)
    if len(new) >= MANY:
        await _analyze_if_new(db)
    return [Remembered(memories[answer.id], answer.created) for answer in answers]


async def supersede(db: Database, space: Space, old: str, new: Record | str, *, now: datetime) -> Memory:
    """Mark a memory as replaced by another, which is stored first if it is new. An error undoes both."""
    await db.execute(Q["lock_successions"], {"space": space.number})
    by = new if isinstance(new, str) else await _successor(db, space, old, new)
    contents.check_succession(await fetch(db, space, (old, by)), old, by)
    if old in await firsts(db, Q["successors"], space=space.number, id=by):
        raise contents.superseding_refused(old, by)
    await db.execute(Q["supersede"], {"space": space.number, "old": old, "new": by, "now": utc(now)})
    return (await fetch(db, space, [by]))[by]


async def _successor(db: Database, space: Space, old: str, record: Record) -> str:
    """The id of what is to replace a memory that is here, stored now or before. The memory is locked before anything is
    stored: others that remember the same texts wait for this transaction, and it does not wait for them.
    """
    await _lock_threads(db, space.number, contents.threads_of([record.memory]))
    if not await rows_of(db, Q["forgetting"], space=space.number, ids=[old]):
        raise contents.missing(old)
    ((memory, _),) = await add(db, space, [record])
    check_same_text(record.memory, memory)
    return memory.id


async def update(
    db: Database,
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
    if vector is not None and generation not in (None, await _model(db)):
        vector = None
    return await _change(db, space, await _hold(db, space, id, changes), changes, vector, now)


async def _join(db: Database, space: Space, copy: Memory, record: Record, now: datetime) -> Memory:
    """A memory with what its copy says beside it; a vector is that of both, with the title that it takes over. What
    others join at the same time is kept: it is read again once nobody else can change it.
    """
    if not contents.joining(copy, record.memory, now):
        return copy
    held = await _hold(db, space, copy.id, {})
    changes = contents.joining(held.memory, record.memory, now)
    vector = record.vector if "title" in changes else None
    return await _change(db, space, held, changes, vector, now) if changes else held.memory


async def _change(
    db: Database, space: Space, old: Stored, changes: Mapping[str, Any], vector: Vector | None, now: datetime
) -> Memory:
    number = space.number
    new = await _placed(db, number, contents.changed(old.memory, changes, vector, now))
    hash = contents.changed_hash(old.hash, old.memory, new)
    for other in await firsts(db, Q["ids_by_hash"], space=number, hash=hash):
        if other != new.id:
            raise contents.copy_refused(new.id, other)
    await _replace(db, number, hash, old, new)
    if contents.passage(new) != contents.passage(old.memory):
        await vectors.remove(db, number, [old.row])
    if vector is not None:
        pairs = [(old.row, vector)]
        await vectors.put(db, number, await _generation_for(db, pairs), pairs)
    return new


async def forget(db: Database, space: Space, ids: Sequence[str]) -> int:
    """Delete memories with their words, vectors and links. A memory that a forgotten one had superseded stays
    superseded: forgetting a correction does not bring back what it corrected.
    """
    number = space.number
    here = {"space": number, "ids": list(ids)}
    held = {Thread(*thread) for thread in await rows_of(db, Q["threads"], **here)}
    await _lock_threads(db, number, held)
    found = await rows_of(db, Q["forgetting"], **here)
    rows = [row for row, _, _ in found]
    if not rows:
        return 0
    entered = {Thread(namespace, thread) for _, namespace, thread in found if thread is not None}
    await _lock_threads(db, number, entered - held)
    await words.remove(db, number, rows)
    await graph.unlink_others(db, number, rows)
    await db.execute(Q["delete_memories"], {"space": number, "rows": rows})
    return len(rows)


async def put_vectors(
    db: Database, space: Space, embedded: Sequence[tuple[Memory, Vector]], *, generation: Generation | None = None
) -> None:
    """Attach vectors, except to memories that were forgotten or changed meanwhile."""
    contents.check_is_current(generation, await _model(db))
    found = await rows_of(db, Q["embedding"], space=space.number, ids=[memory.id for memory, _ in embedded])
    made = contents.fitting(embedded, {id: (title, text) for id, _, title, text in found})
    pairs = [(row, made[id]) for id, row, _, _ in found if id in made]
    if pairs:
        await vectors.put(db, space.number, await _generation_for(db, pairs), pairs)
        await db.execute(Q["set_ready"], {"space": space.number, "rows": [row for row, _ in pairs]})


async def _analyze_if_new(db: Database) -> None:
    """Run ANALYZE on a new store as soon as it holds something. Autovacuum does that within minutes, and until then the
    planner takes every space for small, however large it grows.
    """
    if (await firsts(db, Q["is_unanalyzed"]))[0]:
        await db.execute(Q["analyze"])


async def _sift(db: Database, space: int, batch: Sequence[Record], now: datetime) -> tuple[list[New], list[Answer]]:
    """What is new, and what answers the rest, which nobody else forgets until the transaction ends."""
    hashes = [contents.record_hash(record) for record in batch]
    ids = [record.memory.id for record in batch]
    found = await rows_of(db, Q["originals"], space=space, ids=ids, hashes=hashes, now=now)
    if released := [hash for id, hash, over in found if over and hash != id.encode()]:
        await db.execute(Q["release_expired"], {"space": space, "hashes": released, "now": now})
    held = await rows_of(db, Q["hold_originals"], space=space, ids=[id for id, _, _ in found]) if found else []
    here = {id for id, _ in held}
    copied = {hash: id for id, hash in held}
    originals = [id if id in here else copied.get(hash) for id, hash in zip(ids, hashes, strict=True)]
    return contents.sift(batch, hashes, originals)


async def _insert(db: Database, space: Space, new: Sequence[New], rows: Sequence[int]) -> dict[str, Memory]:
    """The rows, tags, words and vectors of new records; the memories as they are stored."""
    number = space.number
    memories = [record.memory for _, record in new]
    columns = [
        encode(record.memory, place=place, embedding=contents.embedding_state(record))
        for (_, record), place in zip(new, await _places(db, number, memories), strict=True)
    ]
    heads = [(number, row, hash) for row, (hash, _) in zip(rows, new, strict=True)]
    await write_rows(db, MEMORIES, [head + rest[: len(COLUMNS)] for head, rest in zip(heads, columns, strict=True)])
    added = [decode(space.name, values) for values in columns]
    await _put_hits(db, number, zip(rows, added, strict=True))
    await _add(db, "add_tags", number, [row for row, memory in zip(rows, added, strict=True) if memory.tags])
    unlinked = [row for row, (_, record) in zip(rows, new, strict=True) if not record.linked]
    await _add(db, "add_unlinked", number, unlinked)
    await words.put(db, number, [WordRow.of(row, memory) for row, memory in zip(rows, added, strict=True)])
    given = ((row, record.vector) for row, (_, record) in zip(rows, new, strict=True))
    if pairs := [(row, vector) for row, vector in given if vector is not None]:
        await vectors.add(db, number, await _generation_for(db, pairs), pairs)
    return {memory.id: memory for memory in added}


async def _hold(db: Database, space: Space, id: str, changes: Mapping[str, Any]) -> Stored:
    """A memory that nobody else changes until the transaction ends, nor the threads that it is in and goes to."""
    seen = await stored(db, space, Q["memories"], ids=[id])
    held = contents.threads_of(memory for one in seen for memory in (one.memory, replace(one.memory, **changes)))
    await _lock_threads(db, space.number, held)
    here = await stored(db, space, Q["changing"], id=id)
    if not here:
        raise contents.missing(id)
    await _lock_threads(db, space.number, contents.threads_of([here[0].memory]) - held)
    return here[0]


async def _lock_threads(db: Database, space: int, threads: Iterable[Thread]) -> None:
    """Let nobody else write into these threads until the transaction ends."""
    names = ["\n".join(thread) for thread in threads]
    if names:
        await db.execute(Q["lock_threads"], {"space": space, "threads": names})


async def _places(db: Database, space: int, memories: Sequence[Memory]) -> list[int | None]:
    """Each memory's place in its thread, which is locked."""
    threads = list(contents.threads_of(memories))
    if not threads:
        return [None] * len(memories)
    namespaces, names = [thread.namespace for thread in threads], [thread.name for thread in threads]
    found = await rows_of(db, Q["last_places"], space=space, namespaces=namespaces, threads=names)
    ends = {Thread(namespace, name): last for namespace, name, last in found if last is not None}
    return [*contents.places(memories, ends)]


async def _placed(db: Database, space: int, memory: Memory) -> Memory:
    """A changed memory with its place, as a later fetch returns it."""
    (place,) = await _places(db, space, [memory])
    return decode(memory.space, encode(memory, place=place, embedding=memory.embedding))


async def _replace(db: Database, space: int, hash: bytes, old: Stored, new: Memory) -> None:
    """Overwrite the old memory. If it moves in its thread, its old neighbours lose its words first."""
    row = old.row
    if contents.position(new) != contents.position(old.memory):
        await words.remove(db, space, [row])
    if contents.passage(new) != contents.passage(old.memory):
        await graph.unlink_nearest(db, space, row)
        await graph.unlink_others(db, space, [row])
        await _add(db, "add_unlinked", space, [row])
    columns = encode(new, place=new.place, embedding=new.embedding)
    named = dict(zip(COLUMNS, columns[: len(COLUMNS)], strict=True))
    await db.execute(Q["update_memory"], {"space": space, "row": row, "hash": hash, **named})
    if new.tags != old.memory.tags:
        await db.execute(Q["delete_tags"], {"space": space, "row": row})
        await _add(db, "add_tags", space, [row])
    if WordRow.of(row, new) != WordRow.of(row, old.memory):
        await words.put(db, space, [WordRow.of(row, new)])


async def _add(db: Database, statement: str, space: int, rows: Sequence[int]) -> None:
    """Run a statement that adds something to rows, if there are any."""
    if rows:
        await db.execute(Q[statement], {"space": space, "rows": rows})


async def _put_hits(db: Database, space: int, memories: Iterable[tuple[int, Memory]]) -> None:
    """How often new memories were recalled and used before they came here, for those that were."""
    counted = [(space, row, m.hits, m.last_hit_at, m.used, m.last_used_at) for row, m in memories]
    await write_rows(db, HITS, [columns for columns in counted if any(columns[2:])])


async def _generation_for(db: Database, given: Iterable[tuple[int, Vector]]) -> vectors.GenerationRow:
    """The generation that these vectors of rows belong to."""
    generation = await vectors.generation(db)
    if generation is None:
        raise contents.unknown_generation()
    contents.check_dimensions((vector for _, vector in given), generation.generation)
    return generation


async def _model(db: Database) -> Generation | None:
    """The model of the vectors that answer, which stays so until the transaction ends."""
    known = await vectors.held(db)
    return known.generation if known else None
