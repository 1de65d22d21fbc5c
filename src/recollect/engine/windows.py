"""The thread neighbours returned with a hit: those that the caller may see and that fit into the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from recollect.engine.engines import Rows
from recollect.engine.sizes import by_distance, full, read_windows
from recollect.legs.question import Question
from recollect.ports import Beside
from recollect.types import Filter, Hit, Memory


async def with_windows(
    rows: Rows, question: Question, hits: Sequence[Hit], reach: int, room: int
) -> tuple[tuple[Hit, ...], str]:
    """The hits with up to `reach` neighbours on each side, and a sentence about what was left out."""
    spaces = {hit.memory.space: [h for h in hits if h.memory.space == hit.memory.space] for hit in hits}
    windows: dict[tuple[str, str], Hit] = {}
    left: int | None = room
    for space, here in spaces.items():
        if left is not None:
            found, left = await _in_space(rows, space, here, reach, question.where_in(space), left)
            windows |= {(space, hit.memory.id): hit for hit in found}
    truncated = f"{full()}: the farthest neighbours are left out" if left is None else ""
    return tuple(windows.get((hit.memory.space, hit.memory.id), hit) for hit in hits), truncated


async def _in_space(
    rows: Rows, space: str, hits: Sequence[Hit], reach: int, where: Filter, room: int
) -> tuple[list[Hit], int | None]:
    """The hits of one space with their visible neighbours, and the room left; None if some did not fit."""
    ids = [hit.memory.id for hit in hits]
    beside = await rows.beside(space, ids, reach)
    wanted = [id for b in beside.values() for id in (*b.before, *b.after)]
    seen = await rows.visible(space, wanted, neighbours_filter(where))
    pairs = [pair for pair in by_distance(beside, ids) if pair[1] in seen]
    memories, left = await read_windows(pairs, partial(rows.get, space), room)
    return [_with_window(hit, beside, memories) for hit in hits], left


def _with_window(hit: Hit, beside: Mapping[str, Beside], rows: Mapping[tuple[str, str], Memory]) -> Hit:
    id = hit.memory.id
    if id not in beside:
        return hit
    before, after = beside[id]
    return replace(
        hit,
        before=tuple(rows[id, other] for other in reversed(before) if (id, other) in rows),
        after=tuple(rows[id, other] for other in after if (id, other) in rows),
    )


def neighbours_filter(where: Filter) -> Filter:
    """The part of a filter that applies to neighbours: namespaces, superseded and expired."""
    return Filter(
        namespaces=where.namespaces,
        include_superseded=where.include_superseded,
        include_expired=where.include_expired,
        now=where.now,
    )
