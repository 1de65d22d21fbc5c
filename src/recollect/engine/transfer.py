"""import and export: a space as JSON Lines, every field, streamed; safe to run again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import islice
from typing import Any

from recollect.engine.drafts import complete, to_draft
from recollect.engine.remember import EMBED_BATCH, Rememberer
from recollect.errors import InvalidRequest, NotFound
from recollect.limits import check_name, check_strength
from recollect.ports import Store
from recollect.types import Draft, Edge, Filter, Memory, Remembered

PAGE = 500
BROKEN_NAMED = 1_000
"""Broken lines that an import names: who has more of them gave it another kind of file."""


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line of an import that could not be taken, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did so far."""

    read: int = 0
    created: int = 0
    copies: int = 0
    links: int = 0
    broken: tuple[BrokenLine, ...] = ()
    """The first that could not be taken; `broken_count` counts all of them."""
    broken_count: int = 0


async def export(store: Store, space: str) -> AsyncIterator[dict[str, Any]]:
    """Every memory of the space in id order, then every link, as JSON-ready lines."""
    async for memories in pages(store, space):
        for memory in memories:
            yield memory_line(memory)
    async for edge in store.edges(space):
        yield {"from": edge.source, "to": edge.target, "relation": edge.relation, "strength": edge.strength}


async def pages(store: Store, space: str) -> AsyncIterator[Sequence[Memory]]:
    """Every memory of the space in id order, superseded and expired ones included, some at a time."""
    everything = Filter(include_superseded=True, include_expired=True)
    after: str | None = None
    while True:
        page = await store.list(space, everything, limit=PAGE, after=after)
        if page.memories:
            yield page.memories
        if page.cursor is None:
            return
        after = page.cursor


def memory_line(memory: Memory) -> dict[str, Any]:
    """A memory as a JSON-ready object: times in ISO 8601, what is not set left as null."""
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
    """Take in lines as `export` writes them, or plain `{"text": …}` ones. Broken lines are counted and the first
    of them named, the good ones are kept; what is there already is not stored again, so a cut-off import is simply run
    again.
    """
    if isinstance(lines, str):
        raise InvalidRequest("import takes the lines of a file, one text each, not one text: use text.splitlines()")
    done = Imported()
    async for batch in _batches(lines):
        good: list[Numbered] = []
        broken: list[BrokenLine] = []
        for number, line in batch:
            try:
                if not isinstance(line, str) or line.strip():
                    good.append((number, _parse(space, line)))
            except InvalidRequest as error:
                broken.append(BrokenLine(number, str(error)))
        done = await _take(store, rememberer, space, good, replace(done, read=done.read + len(batch)), broken)
        if on_progress is not None:
            on_progress(done)
    return done


async def _batches(lines: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[list[tuple[int, str]]]:
    """The lines with their numbers, some at a time."""
    if isinstance(lines, AsyncIterable):
        batch: list[tuple[int, str]] = []
        number = 0
        async for line in lines:
            number += 1
            batch.append((number, line))
            if len(batch) == EMBED_BATCH:
                yield batch
                batch = []
        if batch:
            yield batch
        return
    source = enumerate(lines, 1)
    # read in a thread: where the lines come from (a pipe, a slow disk) must not hold up the event loop
    while batch := await asyncio.to_thread(lambda: list(islice(source, EMBED_BATCH))):
        yield batch


Numbered = tuple[int, Draft | Edge]


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
            check_strength(value.get("strength", 1.0)),
        )
    draft = to_draft(value)
    complete(space, draft, datetime.min)  # so that a bad field is this line's fault, and not its batch's
    return draft


async def _take(
    store: Store, rememberer: Rememberer, space: str, good: list[Numbered], done: Imported, broken: list[BrokenLine]
) -> Imported:
    drafts = [(number, one) for number, one in good if isinstance(one, Draft)]
    answers = await rememberer.remember_each(space, [draft for _, draft in drafts]) if drafts else []
    broken += [
        BrokenLine(number, str(answer))
        for (number, _), answer in zip(drafts, answers, strict=True)
        if isinstance(answer, InvalidRequest)
    ]
    taken = [answer for answer in answers if isinstance(answer, Remembered)]
    created = sum(one.created for one in taken)
    links = await _link(store, space, [(number, one) for number, one in good if isinstance(one, Edge)], broken)
    return replace(
        done,
        created=done.created + created,
        copies=done.copies + len(taken) - created,
        links=done.links + links,
        broken=_named(done.broken, broken),
        broken_count=done.broken_count + len(broken),
    )


def _named(before: tuple[BrokenLine, ...], broken: list[BrokenLine]) -> tuple[BrokenLine, ...]:
    """The broken lines of the batches before, and those of this one in their order, as far as they are named."""
    if not broken or len(before) >= BROKEN_NAMED:
        return before
    return (*before, *sorted(broken, key=lambda line: line.number))[:BROKEN_NAMED]


async def _link(store: Store, space: str, edges: list[tuple[int, Edge]], broken: list[BrokenLine]) -> int:
    """How many links were made: all at once, or one by one when some end is missing, so that its line can be named."""
    if not edges:
        return 0
    try:
        await store.link(space, [edge for _, edge in edges])
        return len(edges)
    except (NotFound, InvalidRequest) as error:
        if len(edges) == 1:
            broken.append(BrokenLine(edges[0][0], str(error)))
            return 0
    return sum([await _link(store, space, [one], broken) for one in edges])
