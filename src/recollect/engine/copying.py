"""copy: copies spaces from one store to another, and verifies that both hold the same.

A batch of memories with their vectors and links is one transaction. What the target already holds is left as it is, so
an interrupted copy can be repeated. Tokens and idempotency keys are not copied: they belong to the servers of a store.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict, astuple, dataclass
from functools import partial
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias

from recollect.engine.transfer import memory_line, pages
from recollect.engine.usage import EVER
from recollect.errors import ConfigError, InvalidRequest
from recollect.ports import Store
from recollect.types import Bucket, Edge, Grant, Record, Use

IDS_NAMED = 5
"""The most ids of differing memories to report."""


Stage: TypeAlias = Literal["copying", "indexing", "comparing"]


class CopyProgress(NamedTuple):
    """How far a copy is: `done` of `total` memories are copied, indexed or compared."""

    stage: Stage
    space: str
    done: int
    total: int


OnProgress: TypeAlias = Callable[[CopyProgress], None]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a store holds of a space. `digest` covers every field, mark, vector, link, grant and usage count. Vectors
    count in half precision, because a store may round them to that.
    """

    memories: int
    vectors: int
    links: int
    grants: int
    recalls: int
    digest: str


@dataclass(frozen=True, slots=True)
class IdSample:
    """A number of memories, and the first of their ids."""

    count: int = 0
    first: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopiedSpace:
    """A space after a copy: which memories are `missing` in the target, `extra` there, or `different`; `beside` names
    what else differs, `grants` or `usage`. `rounded` counts the vectors that the target keeps in half precision.
    """

    space: str
    new: int
    source: Contents
    target: Contents
    missing: IdSample
    extra: IdSample
    different: IdSample
    beside: tuple[str, ...]
    rounded: int

    @property
    def verified(self) -> bool:
        return self.source == self.target


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a copy; `verified` says that both stores hold the same."""

    spaces: tuple[CopiedSpace, ...]

    @property
    def verified(self) -> bool:
        return all(space.verified for space in self.spaces)


async def copy(
    source: Store, target: Store, spaces: Sequence[str] | None = None, on_progress: OnProgress = lambda _: None
) -> Copied:
    """Copy all or the named spaces between two closed stores, then compare them. Raises EmbeddingMismatch before
    anything is copied if another model made the target's vectors.
    """
    refuse_same(source, target)
    async with opened(source):
        names = await chosen(source, spaces)
        async with opened(target):
            return await copy_open(source, target, names, on_progress)


async def copy_open(
    source: Store, target: Store, names: Sequence[str], on_progress: OnProgress = lambda _: None
) -> Copied:
    """Copy spaces between two open stores, then compare them."""
    generation = await source.generation()
    if generation is not None:
        await target.set_generation(generation)
    sizes = await _sizes(source, names)
    new = await _fill(source, target, sizes, on_progress)
    meter = _Meter("comparing", sizes, on_progress)
    return Copied(tuple([await _compare(source, target, name, new[name], meter) for name in names]))


async def compare(source: Store, target: Store, space: str) -> CopiedSpace:
    """How a space differs between two open stores."""
    return await _compare(source, target, space, 0, _Meter("comparing", {}, lambda _: None))


def refuse_same(source: Store, target: Store) -> None:
    if (source.name, source.location) == (target.name, target.location):
        raise ConfigError(f"{source.location} cannot be copied to itself: name another target")


@asynccontextmanager
async def opened(store: Store) -> AsyncIterator[None]:
    await store.open()
    try:
        yield
    finally:
        await store.close()


async def chosen(source: Store, wanted: Sequence[str] | None) -> list[str]:
    here = list(await source.spaces())
    if wanted is None:
        return here
    for name in wanted:
        if name not in here:
            raise InvalidRequest(f"space {name!r} does not exist in {source.location}: use one of {', '.join(here)}")
    return list(dict.fromkeys(wanted))


class _Meter:
    def __init__(self, stage: Stage, sizes: Mapping[str, int], report: OnProgress) -> None:
        self._stage = stage
        self._total = sum(sizes.values())
        self._report = report
        self._done = 0

    def add(self, space: str, memories: int) -> None:
        self._done += memories
        self._report(CopyProgress(self._stage, space, self._done, self._total))


async def _sizes(store: Store, names: Sequence[str]) -> dict[str, int]:
    return {name: (await store.stats(name)).memories for name in names}


async def _fill(source: Store, target: Store, sizes: Mapping[str, int], on_progress: OnProgress) -> Mapping[str, int]:
    """Store and index what the target lacks. Returns the number of new memories by space."""
    there = await _sizes(target, list(sizes))
    lacking = sum(max(size - there[name], 0) for name, size in sizes.items())
    new = dict.fromkeys(sizes, 0)
    meter = _Meter("copying", sizes, on_progress)
    async with target.bulk(lacking):
        for name in sizes:
            async for records in _records(source, name):
                new[name] += sum(answer.created for answer in await target.add(name, records))
                meter.add(name, len(records))
    meter = _Meter("indexing", sizes, on_progress)
    for name, size in sizes.items():
        await _fill_beside(source, target, name)
        await target.settle(name)
        meter.add(name, size)
    return new


async def _records(store: Store, space: str) -> AsyncIterator[list[Record]]:
    """Everything in a space, page by page in id order: each memory with its vector, marks and links. A link between two
    pages is on both, because `add` skips it until both of its ends exist.
    """
    async for memories in pages(store, space):
        ids = [memory.id for memory in memories]
        vectors = await store.vectors(space, ids)
        marks = await store.marks(space, ids)
        links: defaultdict[str, list[Edge]] = defaultdict(list)
        async for edge in store.edges(space, ids):
            links[edge.source if edge.source in marks else edge.target].append(edge)
        yield [
            Record(memory, vectors.get(memory.id), tuple(links[memory.id]), mark.linked, mark.hash, joins=False)
            for memory in memories
            if (mark := marks.get(memory.id))
        ]


class _Beside(NamedTuple):
    """What a space holds beside its memories: its grants, its usage by the hour, and the questions that led to uses."""

    grants: tuple[Grant, ...]
    usage: tuple[Bucket, ...]
    uses: tuple[Use, ...]

    def digest(self) -> bytes:
        hours = [(hour.start.isoformat(), asdict(hour.usage)) for hour in self.usage]
        uses = [(use.question, use.id, use.at.isoformat()) for use in self.uses]
        told = [[astuple(grant) for grant in self.grants], hours, uses]
        return sha256(json.dumps(told, sort_keys=True).encode()).digest()


async def _beside(store: Store, space: str) -> _Beside:
    """The usage of an empty space is ignored."""
    hours = await store.ledger.usage(space, EVER) if (await store.stats(space)).memories else ()
    uses = sorted(await store.ledger.uses(space), key=lambda use: (use.at, use.question, use.id))
    return _Beside(tuple(await store.ledger.granted_by(space)), tuple(hours), tuple(uses))


async def _fill_beside(source: Store, target: Store, space: str) -> None:
    """Copy the grants, the hours of usage and the uses that the target lacks. Usage goes in one call, because counting
    an hour twice would add it up.
    """
    here, there = await _beside(source, space), await _beside(target, space)
    granted = {(grant.namespace, grant.to) for grant in there.grants}
    for grant in here.grants:
        if (grant.namespace, grant.to) not in granted:
            await target.ledger.grant(space, grant.namespace, grant.to, grant.access)
            if grant.accepted:
                await target.ledger.accept(space, grant.namespace, grant.to)
    counted = {hour.start for hour in there.usage}
    await target.ledger.count_usage(space, [hour for hour in here.usage if hour.start not in counted])
    noted = {*there.uses}
    await target.ledger.note_uses(space, [use for use in here.uses if use not in noted])


async def _compare(source: Store, target: Store, space: str, new: int, meter: _Meter) -> CopiedSpace:
    here, there = _Tally(), _Tally()
    missing, extra, different = _Ids(), _Ids(), _Ids()
    rounded = 0
    async for one, other in _pairs(source, target, space, partial(meter.add, space)):
        here.add(one)
        there.add(other)
        if one is None or other is None:
            (missing if other is None else extra).add(one or other)
        elif one.coarse != other.coarse:
            different.add(one)
        else:
            rounded += one.exact != other.exact
    ours, theirs = await _beside(source, space), await _beside(target, space)
    found = (missing.some(), extra.some(), different.some())
    beside = tuple(what for what in _Beside._fields if getattr(ours, what) != getattr(theirs, what))
    return CopiedSpace(space, new, here.contents(ours), there.contents(theirs), *found, beside, rounded)


class _Fingerprint(NamedTuple):
    """Two hashes of a memory and all that belongs to it: with its exact vector, and in half precision."""

    id: str
    exact: bytes
    coarse: bytes
    has_vector: bool
    links: int


def _fingerprint(record: Record) -> _Fingerprint:
    """Only links from the memory count, so that each counts once."""
    own = [edge for edge in record.edges if edge.source == record.memory.id]
    links = sorted((edge.target, edge.relation, edge.strength) for edge in own)
    mark = (record.linked, record.hash and record.hash.hex())
    fields = json.dumps([memory_line(record.memory), mark, links], sort_keys=True).encode()
    exact, coarse = (
        sha256(fields if record.vector is None else fields + record.vector.astype(precision).tobytes()).digest()
        for precision in ("<f4", "<f2")
    )
    return _Fingerprint(record.memory.id, exact, coarse, record.vector is not None, len(links))


async def _fingerprints(
    store: Store, space: str, on_page: Callable[[int], object] = lambda _: None
) -> AsyncGenerator[_Fingerprint, None]:
    async for records in _records(store, space):
        for record in records:
            yield _fingerprint(record)
        on_page(len(records))


async def _pairs(
    source: Store, target: Store, space: str, on_page: Callable[[int], object]
) -> AsyncIterator[tuple[_Fingerprint | None, _Fingerprint | None]]:
    """What the two stores hold under each id, in id order; None if a store lacks the id."""
    async with (
        aclosing(_fingerprints(source, space, on_page)) as ours,
        aclosing(_fingerprints(target, space)) as theirs,
    ):
        one, other = await anext(ours, None), await anext(theirs, None)
        while one or other:
            first = min(each.id for each in (one, other) if each)
            left = one if one and one.id == first else None
            right = other if other and other.id == first else None
            yield left, right
            one = await anext(ours, None) if left else one
            other = await anext(theirs, None) if right else other


class _Tally:
    def __init__(self) -> None:
        self._memories = self._vectors = self._links = 0
        self._digest = sha256()

    def add(self, one: _Fingerprint | None) -> None:
        if one is not None:
            self._memories += 1
            self._vectors += one.has_vector
            self._links += one.links
            self._digest.update(one.coarse)

    def contents(self, beside: _Beside) -> Contents:
        recalls = sum(hour.usage.recalls for hour in beside.usage)
        digest = sha256(self._digest.digest() + beside.digest()).hexdigest()
        return Contents(self._memories, self._vectors, self._links, len(beside.grants), recalls, digest)


class _Ids:
    def __init__(self) -> None:
        self._count = 0
        self._first: list[str] = []

    def add(self, one: _Fingerprint | None) -> None:
        if one is not None:
            self._count += 1
            if len(self._first) < IDS_NAMED:
                self._first.append(one.id)

    def some(self) -> IdSample:
        return IdSample(self._count, tuple(self._first))
