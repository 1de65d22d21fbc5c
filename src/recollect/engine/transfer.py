"""import and export: a space as JSON Lines with every field, streamed. Both are safe to run again.

Neither holds more than a batch of lines in memory. What an import must remember until its end goes to a temporary file.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from uuid import UUID, uuid5

from recollect.engine.drafts import complete, to_draft
from recollect.engine.remember import BATCH_CHARACTERS, EMBED_BATCH, Rememberer, length_of
from recollect.errors import InvalidRequest, NotFound
from recollect.limits import check_name
from recollect.options import Link, declared
from recollect.ports import Store
from recollect.types import Draft, Edge, Filter, Memory, Remembered

PAGE = 500
STRENGTH = declared(Link)["strength"]
BROKEN_NAMED = 1_000
"""The most broken or dangling lines that an import lists."""
REASON_CHARACTERS = 500
"""The longest reason given for a broken line. It may quote the line."""
AWAITED_BYTES = 1024 * 1024
"""How much an import remembers in memory about superseded lines before it uses a temporary file."""
LINES = UUID("6f0d7c5e-52a7-4b1e-9d3c-1f2ad9c4b7e0")
"""The namespace of ids that are derived from lines."""
EVERYTHING = Filter(include_superseded=True, include_expired=True)


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line that could not be imported, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class DanglingLine:
    """An imported line whose memory is superseded by one that is neither in the space nor in another line."""

    number: int
    superseded_by: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did so far."""

    read: int = 0
    created: int = 0
    copies: int = 0
    links: int = 0
    broken: tuple[BrokenLine, ...] = ()
    """The first broken lines; `broken_count` counts all."""
    broken_count: int = 0
    dangling: tuple[DanglingLine, ...] = ()
    """The first dangling lines, known at the end. Their memories stay superseded, and are only recalled with
    `include_superseded`. `dangling_count` counts all.
    """
    dangling_count: int = 0


async def export(store: Store, space: str) -> AsyncIterator[dict[str, Any]]:
    """Every memory of the space in id order, then every link, as JSON-ready lines. `linked` says whether a memory's
    automatic links are included, so that an import does not make them again.
    """
    async for memories in pages(store, space):
        marks = await store.marks(space, [memory.id for memory in memories])
        for memory in memories:
            if memory.id in marks:  # else it was forgotten just now
                yield {**memory_line(memory), "linked": marks[memory.id].linked}
    async for memories in pages(store, space):
        for edge in await _links_from(store, space, {memory.id for memory in memories}):
            yield {"from": edge.source, "to": edge.target, "relation": edge.relation, "strength": edge.strength}


async def _links_from(store: Store, space: str, ids: set[str]) -> list[Edge]:
    edges = [edge async for edge in store.edges(space, list(ids)) if edge.source in ids]
    return sorted(edges, key=lambda edge: (edge.source, edge.target, edge.relation))


async def pages(store: Store, space: str) -> AsyncIterator[Sequence[Memory]]:
    """Every memory of the space in id order, including superseded and expired ones, page by page."""
    after: str | None = None
    while True:
        page = await store.list(space, EVERYTHING, limit=PAGE, after=after)
        if page.memories:
            yield page.memories
        if page.cursor is None:
            return
        after = page.cursor


def memory_line(memory: Memory) -> dict[str, Any]:
    """A memory as a JSON-ready object: times in ISO 8601, unset fields as null."""
    line = {f.name: getattr(memory, f.name) for f in fields(memory)}
    return {
        name: value.isoformat() if isinstance(value, datetime) else list(value) if isinstance(value, tuple) else value
        for name, value in line.items()
    }


async def import_lines(
    store: Store,
    rememberer: Rememberer,
    space: str,
    lines: Iterable[str] | AsyncIterable[str],
    on_progress: Callable[[Imported], None] | None = None,
) -> Imported:
    """Import lines as `export` writes them, or plain `{"text": …}` ones. Broken lines are counted and the first listed;
    the good ones are stored. What exists already is not stored again, so an interrupted import can be repeated.
    A superseded memory stays superseded even if its successor is missing; such lines are listed as dangling.
    """
    if isinstance(lines, str):
        raise InvalidRequest("import needs a list or file of lines, not one text: use text.splitlines()")
    with SpooledTemporaryFile(AWAITED_BYTES, "w+", encoding="utf-8", newline="\n") as file:
        awaited = _Awaited(store, space, file)
        importing = _Import(store, rememberer, space, awaited)
        async for batch in _batches(lines):
            await importing.take(batch)
            if on_progress is not None:
                on_progress(importing.done)
        return replace(importing.done, **await awaited.missing())


Line = tuple[int, str]


async def _batches(lines: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[list[Line]]:
    """The lines with their numbers, in batches; fewer to a batch if they are long."""
    if not isinstance(lines, AsyncIterable):
        source = enumerate(lines, 1)
        # in a thread, because a pipe or a slow disk must not block the event loop
        while batch := await asyncio.to_thread(_next_batch, source):
            yield batch
        return
    number, batch = 0, []
    async for line in lines:
        number += 1
        batch.append((number, line))
        if _is_full(batch):
            yield batch
            batch = []
    if batch:
        yield batch


def _next_batch(source: Iterator[Line]) -> list[Line]:
    batch: list[Line] = []
    for line in source:
        batch.append(line)
        if _is_full(batch):
            break
    return batch


def _is_full(batch: Sequence[Line]) -> bool:
    return len(batch) == EMBED_BATCH or sum(length_of(line) for _, line in batch) >= BATCH_CHARACTERS


def _parse(space: str, line: str) -> Draft | Edge:
    if not isinstance(line, str):
        raise InvalidRequest(f"it is a {type(line).__name__}, not a text")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"it is not JSON: {error}") from None
    if isinstance(value, dict) and "from" in value and "to" in value and "text" not in value:
        return Edge(
            check_name("from", value["from"]),
            check_name("to", value["to"]),
            check_name("relation", value.get("relation", "related")),
            STRENGTH.number(value.get("strength", 1.0)),
        )
    draft = to_draft(value)
    complete(space, draft, datetime.now(UTC))  # so that a bad field breaks this line, not its batch
    if draft.id is None and (draft.superseded_by is not None or draft.expires_at is not None):
        # Copies of superseded and expired texts are not detected, so the id comes from the line itself.
        return replace(draft, id=str(uuid5(LINES, json.dumps(value, sort_keys=True))))
    return draft


class _Awaited:
    """Superseded lines and their successors. Successors come later in an export, so only the end shows which are
    missing.
    """

    def __init__(self, store: Store, space: str, file: IO[str]) -> None:
        self._store = store
        self._space = space
        self._lines = file

    def add(self, number: int, successor: str) -> None:
        self._lines.write(json.dumps([number, successor]) + "\n")

    async def missing(self) -> dict[str, Any]:
        """The first lines whose successor is missing, and how many there are: fields of `Imported`."""
        first: list[DanglingLine] = []
        count = 0
        self._lines.seek(0)
        while some := list(islice(self._lines, PAGE)):
            lines = [DanglingLine(*json.loads(line)) for line in some]
            here = await self._store.visible(self._space, list({line.superseded_by for line in lines}), EVERYTHING)
            dangling = [line for line in lines if line.superseded_by not in here]
            first += dangling[: BROKEN_NAMED - len(first)]
            count += len(dangling)
        return {"dangling": tuple(first), "dangling_count": count}


class _Import:
    """What an import did so far."""

    def __init__(self, store: Store, rememberer: Rememberer, space: str, awaited: _Awaited) -> None:
        self._store = store
        self._rememberer = rememberer
        self._space = space
        self._awaited = awaited
        self.done = Imported()

    async def take(self, batch: Sequence[Line]) -> None:
        """Store the good lines of a batch, and list the broken ones."""
        good: list[tuple[int, Draft | Edge]] = []
        broken: list[BrokenLine] = []
        for number, line in batch:
            try:
                if not isinstance(line, str) or line.strip():
                    good.append((number, _parse(self._space, line)))
            except InvalidRequest as error:
                broken.append(_broken(number, error))
        taken = await self._remember([(number, one) for number, one in good if isinstance(one, Draft)], broken)
        edges = [(number, one) for number, one in good if isinstance(one, Edge)]
        created = sum(one.created for one in taken)
        self.done = replace(
            self.done,
            read=self.done.read + len(batch),
            created=self.done.created + created,
            copies=self.done.copies + len(taken) - created,
            links=self.done.links + await _link(self._store, self._space, edges, broken),
            broken=_named(self.done.broken, broken),
            broken_count=self.done.broken_count + len(broken),
        )

    async def _remember(self, drafts: list[tuple[int, Draft]], broken: list[BrokenLine]) -> list[Remembered]:
        """Store drafts, and remember the successors of superseded ones."""
        if not drafts:
            return []
        answers = await self._rememberer.remember_each(self._space, [draft for _, draft in drafts])
        taken: list[Remembered] = []
        for (number, _), answer in zip(drafts, answers, strict=True):
            if isinstance(answer, InvalidRequest):
                broken.append(_broken(number, answer))
                continue
            taken.append(answer)
            if (successor := answer.memory.superseded_by) is not None:
                self._awaited.add(number, successor)
        return taken


def _broken(number: int, error: Exception) -> BrokenLine:
    reason = str(error)
    return BrokenLine(number, reason if len(reason) <= REASON_CHARACTERS else f"{reason[:REASON_CHARACTERS]}…")


def _named(before: tuple[BrokenLine, ...], broken: list[BrokenLine]) -> tuple[BrokenLine, ...]:
    """The broken lines to list so far, in order."""
    if not broken or len(before) >= BROKEN_NAMED:
        return before
    return (*before, *sorted(broken, key=lambda line: line.number))[:BROKEN_NAMED]


async def _link(store: Store, space: str, edges: list[tuple[int, Edge]], broken: list[BrokenLine]) -> int:
    """Make links together, or one by one if one fails, so that its line can be listed. Returns how many."""
    if not edges:
        return 0
    try:
        await store.link(space, [edge for _, edge in edges])
        return len(edges)
    except (NotFound, InvalidRequest) as error:
        if len(edges) == 1:
            broken.append(_broken(edges[0][0], error))
            return 0
    return sum([await _link(store, space, [one], broken) for one in edges])
