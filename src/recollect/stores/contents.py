"""The rules for a store's contents that all databases share: copies, changes, threads, vectors, links, filters."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from recollect.errors import EmbeddingMismatch, InvalidRequest, NotFound
from recollect.limits import METADATA_BYTES, TAGS, check_supersedable, utc
from recollect.ports import GenerationState
from recollect.types import Edge, EmbeddingState, Generation, Memory, Record

if TYPE_CHECKING:
    from recollect.types import Vector

CHANGEABLE: Final = (
    "text", "title", "kind", "namespace", "tags", "source", "metadata",
    "occurred_at", "expires_at", "quality", "thread", "place",
)  # fmt: skip


class Space(NamedTuple):
    """A space, and the number that stands for it in a database."""

    number: int
    name: str


class Thread(NamedTuple):
    """The same name in another namespace is another thread."""

    namespace: str
    name: str


class New(NamedTuple):
    """A record that is not in the store yet."""

    hash: bytes
    record: Record


class Answer(NamedTuple):
    """The memory that stands for a record, and whether it is the record itself."""

    id: str
    created: bool


def json_text(value: Sequence[str] | Mapping[str, Any]) -> str:
    """Tags or metadata as JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"tags and metadata must be JSON: {error}") from error


# Copies


def content_hash(memory: Memory) -> bytes:
    """The hash that exact copies share: of namespace, kind and text, and in a thread also of the thread and the given
    place, because a conversation may repeat itself. Superseded and expired memories have no copies, because they may
    be true again: their hash is their id, also in the queries `supersede` and `release_expired`.
    """
    if memory.superseded_by is not None or is_over(memory):
        return memory.id.encode()
    parts = [memory.namespace, memory.kind, memory.text]
    if memory.thread is not None:
        parts += [memory.thread, "" if memory.place is None else str(memory.place)]
    return sha256("\0".join(parts).encode()).digest()


def record_hash(record: Record) -> bytes:
    """The hash that a record brought from another store, or that of its memory."""
    return record.hash or content_hash(record.memory)


def is_over(memory: Memory, now: datetime | None = None) -> bool:
    """Whether a memory has expired, now or at a moment."""
    return memory.expires_at is not None and utc(memory.expires_at) <= (now or datetime.now(UTC))


def standing(memory: Memory, copy: Memory | None) -> Memory | None:
    """The copy, unless it has expired and is not the memory itself."""
    replaced = copy and copy.id != memory.id and is_over(copy)
    return None if replaced else copy


def sift(
    batch: Sequence[Record], hashes: Sequence[bytes], stored: Sequence[str | None]
) -> tuple[list[New], list[Answer]]:
    """The new records, and for every record the memory that stands for it: a stored one (its id in `stored`), an
    earlier one of the batch, or itself.
    """
    new: list[New] = []
    answers: list[Answer] = []
    earlier: dict[str | bytes, str] = {}
    for record, hash, original in zip(batch, hashes, stored, strict=True):
        id = record.memory.id
        answer = original or earlier.get(id) or earlier.get(hash)
        if answer is None:
            new.append(New(hash, record))
            earlier[id] = earlier[hash] = id
        answers.append(Answer(answer or id, created=answer is None))
    return new, answers


def changed_hash(hash: bytes, old: Memory, new: Memory) -> bytes:
    """The hash of a changed memory: a new one only if a hashed field changed."""
    wanted = content_hash(new)
    return hash if wanted == content_hash(old) else wanted


def joining(copy: Memory, said: Memory, now: datetime) -> dict[str, Any]:
    """What changes in a memory when its exact copy is remembered. It gains new tags and metadata keys, within a
    memory's limits, a title, source and time if it has none, and the later expiry. Nothing is overwritten. A
    superseded or expired memory does not change. `now` is when the copy was found: one that expires later is still
    joined.
    """
    if copy.superseded_by is not None or is_over(copy, now):
        return {}
    metadata = {**copy.metadata, **{key: value for key, value in said.metadata.items() if key not in copy.metadata}}
    fits = len(json_text(metadata).encode()) <= METADATA_BYTES
    joined = {
        "title": copy.title or said.title,
        "tags": tuple(dict.fromkeys((*copy.tags, *said.tags)))[:TAGS],
        "source": copy.source or said.source,
        "metadata": metadata if fits else copy.metadata,
        "occurred_at": copy.occurred_at or said.occurred_at,
        "expires_at": _longer(copy.expires_at, said.expires_at),
    }
    return {name: value for name, value in joined.items() if value != getattr(copy, name)}


def _longer(one: datetime | None, other: datetime | None) -> datetime | None:
    """The later of two expiries; None never expires."""
    return None if one is None or other is None else max(utc(one), utc(other))


def copy_refused(id: str, other: str) -> InvalidRequest:
    return InvalidRequest(f"this would make {id!r} an exact copy of {other!r}: forget one of them instead")


# Changes


def missing(id: str) -> NotFound:
    return NotFound(f"no memory {id!r} in this space")


def check_changes(changes: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for a field that cannot be changed."""
    unknown = ", ".join(sorted(changes.keys() - set(CHANGEABLE)))
    if unknown:
        raise InvalidRequest(f"{unknown} cannot be changed; only {', '.join(CHANGEABLE)} can")


def changed(old: Memory, changes: Mapping[str, Any], vector: Vector | None, now: datetime) -> Memory:
    """A memory after an update. If it moves to another thread without a place, the store gives it one."""
    new = replace(old, **changes, updated_at=now)
    if "place" not in changes and thread_of(new) != thread_of(old):
        new = replace(new, place=None)
    if new.thread is None and new.place is not None:
        raise InvalidRequest(f"{old.id!r} is in no thread, so it cannot have place {new.place}: name its thread")
    embedding: EmbeddingState = old.embedding if passage(new) == passage(old) else "pending"
    return replace(new, embedding=embedding if vector is None else "ready")


def check_succession(here: Mapping[str, Memory], old: str, new: str) -> None:
    """Raise NotFound if a memory is missing, and InvalidRequest if the old one has another successor."""
    for id in (old, new):
        if id not in here:
            raise missing(id)
    check_supersedable(here[old], new)


def superseding_refused(old: str, new: str) -> InvalidRequest:
    if old == new:
        return InvalidRequest(f"memory {old!r} cannot supersede itself: its text says the same already")
    return InvalidRequest(f"{old!r} cannot be superseded by {new!r}, because it supersedes that memory")


# Threads


def position(memory: Memory) -> tuple[str, str | None, int | None]:
    """A memory's namespace, thread and place."""
    return memory.namespace, memory.thread, memory.place


def thread_of(memory: Memory) -> Thread | None:
    return None if memory.thread is None else Thread(memory.namespace, memory.thread)


def threads_of(memories: Iterable[Memory]) -> set[Thread]:
    return {thread for memory in memories if (thread := thread_of(memory))}


def places(memories: Iterable[Memory], ends: Mapping[Thread, int]) -> Iterator[int | None]:
    """Each memory's place in its thread: its own, or after the last one. `ends` are the last places of the threads."""
    last = dict(ends)
    for memory in memories:
        thread = thread_of(memory)
        if thread is None:
            yield None
            continue
        end = last.get(thread, -1)
        place = end + 1 if memory.place is None else memory.place
        last[thread] = max(end, place)
        yield place


# Vectors


def passage(memory: Memory) -> tuple[str, str]:
    """The text that is embedded."""
    return memory.title, memory.text


def embedding_state(record: Record) -> EmbeddingState:
    """`ready` if the record has a vector, whatever the memory says."""
    if record.vector is not None:
        return "ready"
    return "failed" if record.memory.embedding == "failed" else "pending"


def fitting(embedded: Iterable[tuple[Memory, Vector]], passages: Mapping[str, tuple[str, str]]) -> dict[str, Vector]:
    """The vectors, by id, of stored memories whose title and text have not changed since."""
    return {memory.id: vector for memory, vector in embedded if passages.get(memory.id) == passage(memory)}


def unknown_generation() -> InvalidRequest:
    return InvalidRequest("this store has no embedding model yet: set its generation first")


def check_dimensions(vectors: Iterable[Vector], generation: Generation) -> None:
    """Raise EmbeddingMismatch for a vector of another length."""
    for vector in vectors:
        if len(vector) != generation.dimensions:
            raise EmbeddingMismatch(
                f"a vector of {len(vector)} numbers cannot be stored: this store's vectors, by {generation.model!r}, "
                f"have {generation.dimensions}"
            )


def of_current_model(records: Sequence[Record], current: Generation | None) -> list[Record]:
    """The records without vectors of other models than the current one: those memories wait for a vector."""
    return [
        record
        if record.generation in (None, current)
        else replace(record, vector=None, edges=(), linked=False, generation=None)
        for record in records
    ]


def check_is_current(given: Generation | None, current: Generation | None) -> None:
    """Raise EmbeddingMismatch if a generation is no longer the current one."""
    if given is not None and current is not None and given != current:
        raise EmbeddingMismatch.between(current, given.model, given.dimensions)


def check_may_begin(wanted: Generation, known: Iterable[GenerationState]) -> bool:
    """Whether a generation is the next one already. Raises InvalidRequest if it cannot become that."""
    for generation, state, _, _ in known:
        if state == "current" and generation == wanted:
            raise InvalidRequest(f"this store already uses {wanted.model}: there is nothing to change")
        if state == "next" and generation != wanted:
            raise InvalidRequest(
                f"the change to {generation.model} is not complete: finish it, or give it up with `recollect reembed "
                "--abandon`"
            )
    return any(generation == wanted and state == "next" for generation, state, _, _ in known)


def check_may_drop(wanted: Generation, state: str) -> None:
    if state == "current":
        raise InvalidRequest(f"the vectors of {wanted.model} are in use: they cannot be dropped")


def not_next(wanted: Generation) -> InvalidRequest:
    return InvalidRequest(f"this store is no longer being changed to {wanted.model}: begin again")


# Links

EdgeKey: TypeAlias = tuple[int, int, str]
"""The key of an edge in its table: source, target, relation."""
EDGES_PER_READ: Final = 1_000


async def stream_edges(
    read: Callable[[EdgeKey, int], Awaitable[Sequence[tuple[EdgeKey, Edge]]]],
) -> AsyncIterator[Edge]:
    """All edges of a space, a page at a time. `read` gives the edges after a key, each with its own key."""
    last: EdgeKey = (0, 0, "")
    while page := await read(last, EDGES_PER_READ):
        for last, edge in page:  # noqa: B007 (the next page begins after the last key of this one)
            yield edge


def check_edges(edges: Iterable[Edge]) -> None:
    """Raise InvalidRequest for a link to itself or an impossible strength."""
    for edge in edges:
        if edge.source == edge.target:
            raise InvalidRequest(f"memory {edge.source!r} cannot be linked to itself")
        if not 0 < edge.strength <= 1:  # NaN fails this as well
            raise InvalidRequest(f"the strength of a link must be above 0 and at most 1, not {edge.strength}")


def ends_of(edges: Iterable[Edge]) -> list[str]:
    """The ids at both ends of each edge."""
    return [end for edge in edges for end in (edge.source, edge.target)]


def check_ends(edges: Iterable[Edge], rows: Mapping[str, int]) -> None:
    """Raise NotFound unless every end has a row."""
    for end in ends_of(edges):
        if end not in rows:
            raise NotFound(f"no memory {end!r} in this space: a link needs both its ends")


def present(edges: Iterable[Edge], rows: Mapping[str, int]) -> list[Edge]:
    """Those edges whose ends both have a row."""
    return [edge for edge in edges if edge.source in rows and edge.target in rows]


def first_links(batch: Sequence[Record], answers: Sequence[Answer]) -> list[Edge]:
    """The links of a batch's new records. An end that is a copy is replaced by its original."""
    stands_for = {record.memory.id: answer.id for record, answer in zip(batch, answers, strict=True)}
    edges = [edge for record, answer in zip(batch, answers, strict=True) if answer.created for edge in record.edges]
    check_edges(edges)
    settled = (
        replace(edge, source=stands_for.get(edge.source, edge.source), target=stands_for.get(edge.target, edge.target))
        for edge in edges
    )
    return [edge for edge in settled if edge.source != edge.target]
