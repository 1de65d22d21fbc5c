"""Looking memories up and marking them, in SQL: functions of a connection, inside the transaction of their caller."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter

import apsw

from recollect.ports import Beside, Mark, Sample
from recollect.stores.contents import Space, content_hash, standing
from recollect.stores.sqlite.rows import Q, as_json, fetch, micros, row_numbers, tick, where_clause
from recollect.types import Filter, Memory, Page, SpaceStats


def copies(db: apsw.Connection, space: Space, memories: Sequence[Memory]) -> list[Memory | None]:
    """For each memory the one that is stored already, if there is one and it has not expired."""
    ids = originals(db, space.number, [memory.id for memory in memories], [content_hash(memory) for memory in memories])
    found = fetch(db, space, {id for id in ids if id})
    return [standing(memory, found[id] if id else None) for memory, id in zip(memories, ids, strict=True)]


def originals(db: apsw.Connection, space: int, ids: Sequence[str], hashes: Sequence[bytes]) -> list[str | None]:
    """For each pair of id and hash the stored memory that has the same id, or else is an exact copy."""
    here = row_numbers(db, space, ids)
    copied = ids_by_hash(db, space, hashes)
    return [id if id in here else copied.get(hash) for id, hash in zip(ids, hashes, strict=True)]


def ids_by_hash(db: apsw.Connection, space: int, hashes: Iterable[bytes]) -> dict[bytes, str]:
    return dict(db.execute(Q["ids_by_hash"], (space, as_json(hash.hex() for hash in hashes))))


def page(
    db: apsw.Connection,
    space: Space,
    where: Filter,
    *,
    limit: int,
    after: str | None = None,
    newest_first: bool = False,
) -> Page:
    """One page in id order, or with the highest ids first; the cursor is the last id on it."""
    condition, values = where_clause(space.number, where)
    if not newest_first:
        statement, begin = Q["page"], [after or ""]
    else:
        statement, begin = (Q["newest_page"], []) if after is None else (Q["newest_page_after"], [after])
    ids = _firsts(db.execute(statement.format(where=condition), (*values, *begin, limit + 1)))
    memories = tuple(fetch(db, space, ids[:limit]).values())
    return Page(memories, memories[-1].id if len(ids) > limit else None)


def visible(db: apsw.Connection, space: Space, ids: Sequence[str], where: Filter) -> set[str]:
    condition, values = where_clause(space.number, where)
    return set(_firsts(db.execute(Q["visible"].format(where=condition), (as_json(ids), *values))))


def sample(db: apsw.Connection, space: Space, namespaces: Sequence[str], *, limit: int) -> Sample:
    count, ids = db.execute(Q["sample"], (space.number, as_json(namespaces), limit)).get
    return Sample(count, json.loads(ids))


def beside(db: apsw.Connection, space: Space, ids: Sequence[str], reach: int) -> dict[str, Beside]:
    return {
        id: Beside(tuple(json.loads(before)), tuple(json.loads(after)))
        for id, before, after in db.execute(Q["beside"], (space.number, as_json(ids), reach))
    }


def pending(db: apsw.Connection, space: Space, *, limit: int) -> list[Memory]:
    ids = _firsts(db.execute(Q["pending"], (space.number, limit)))
    return [*fetch(db, space, ids).values()]


def fail_vectors(db: apsw.Connection, space: Space, ids: Sequence[str]) -> None:
    """No tick: searches do not change."""
    db.execute(Q["set_failed"], (space.number, as_json(ids)))


def unlinked(db: apsw.Connection, space: Space, *, limit: int) -> list[str]:
    return _firsts(db.execute(Q["unlinked"], (space.number, limit)))


def marks(db: apsw.Connection, space: Space, ids: Sequence[str]) -> dict[str, Mark]:
    return {id: Mark(hash, bool(linked)) for id, hash, linked in db.execute(Q["marks"], (space.number, as_json(ids)))}


def successors(db: apsw.Connection, space: int, id: str) -> list[str]:
    """A memory and those that replaced it, one after the other."""
    return _firsts(db.execute(Q["successors"], (space, id)))


def history(db: apsw.Connection, space: Space, id: str, *, limit: int) -> list[str]:
    return _firsts(db.execute(Q["history"], (space.number, id, limit)))


def mark_hits(db: apsw.Connection, space: Space, hits: Mapping[str, int], *, now: datetime) -> None:
    """No tick: searches do not depend on hits."""
    db.executemany(Q["mark_hits"], [(space.number, id, count, micros(now)) for id, count in hits.items()])


def mark_used(db: apsw.Connection, space: Space, ids: Sequence[str], *, now: datetime) -> int:
    return len(list(db.executemany(Q["mark_used"], [(space.number, id, micros(now)) for id in ids])))


def most_useful(db: apsw.Connection, space: Space, per_hit: float) -> float:
    most: float = db.execute(Q["most_useful"], (space.number, per_hit)).get
    return most


def set_qualities(db: apsw.Connection, space: Space, qualities: Mapping[str, float]) -> int:
    changed = len(list(db.executemany(Q["set_quality"], [(space.number, *one) for one in qualities.items()])))
    if changed:
        tick(db)  # filters use quality
    return changed


def spaces(db: apsw.Connection) -> list[str]:
    return _firsts(db.execute(Q["spaces"]))


def stats(db: apsw.Connection, space: Space) -> SpaceStats:
    memories, superseded, pending, edges = db.execute(Q["counts"], (space.number,)).get
    kinds, namespaces = (dict(db.execute(Q[query], (space.number,))) for query in ("count_kinds", "count_namespaces"))
    return SpaceStats(space.name, memories, superseded, pending, edges, kinds, namespaces)


def _firsts(rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [*map(itemgetter(0), rows)]
