"""Looking memories up and marking them, in SQL: functions of a connection, inside the transaction of their caller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from recollect.limits import utc
from recollect.ports import Beside, Mark, Sample
from recollect.stores.contents import Space, content_hash, standing
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.filters import rows_clause, where_clause
from recollect.stores.postgres.rows import Q, firsts, rows_of, stored
from recollect.types import Filter, Memory, Page, SpaceStats


async def copies(db: Database, space: Space, memories: Sequence[Memory]) -> list[Memory | None]:
    """For each memory the one that is stored already, if there is one and it has not expired."""
    ids, hashes = [memory.id for memory in memories], [content_hash(memory) for memory in memories]
    found = await stored(db, space, Q["copies"], ids=ids, hashes=hashes)
    by_id = {one.memory.id: one.memory for one in found}
    by_hash = {one.hash: one.memory for one in found}
    return [
        standing(memory, by_id.get(memory.id) or by_hash.get(hash))
        for memory, hash in zip(memories, hashes, strict=True)
    ]


async def page(
    db: Database, space: Space, where: Filter, *, limit: int, after: str | None = None, newest_first: bool = False
) -> Page:
    """One page in id order, or with the highest ids first; the cursor is the last id on it."""
    condition, values = rows_clause(space.number, where)
    if not newest_first:
        statement, begin = Q["page"], {"after": after or ""}
    else:
        statement, begin = (Q["newest_page"], {}) if after is None else (Q["newest_page_after"], {"after": after})
    found = await stored(db, space, statement.format(where=condition), limit=limit + 1, **begin, **values)
    memories = tuple(one.memory for one in found[:limit])
    return Page(memories, memories[-1].id if len(found) > limit else None)


async def visible(db: Database, space: Space, ids: Sequence[str], where: Filter) -> set[str]:
    condition, values = where_clause(space.number, where)
    return set(await firsts(db, Q["visible"].format(where=condition), ids=list(ids), **values))


async def sample(db: Database, space: Space, namespaces: Sequence[str], *, limit: int) -> Sample:
    ((count, ids),) = await rows_of(db, Q["sample"], space=space.number, namespaces=list(namespaces), limit=limit)
    return Sample(count, ids)


async def beside(db: Database, space: Space, ids: Sequence[str], reach: int) -> dict[str, Beside]:
    found = await rows_of(db, Q["beside"], space=space.number, ids=list(ids), reach=reach)
    return {id: Beside(tuple(before), tuple(after)) for id, before, after in found}


async def pending(db: Database, space: Space, *, limit: int) -> list[Memory]:
    return [one.memory for one in await stored(db, space, Q["pending"], limit=limit)]


async def fail_vectors(db: Database, space: Space, ids: Sequence[str]) -> None:
    await db.execute(Q["set_failed"], {"space": space.number, "ids": list(ids)})


async def unlinked(db: Database, space: Space, *, limit: int) -> list[str]:
    return await firsts(db, Q["unlinked"], space=space.number, limit=limit)


async def marks(db: Database, space: Space, ids: Sequence[str]) -> dict[str, Mark]:
    found = await rows_of(db, Q["marks"], space=space.number, ids=list(ids))
    return {id: Mark(hash, linked) for id, hash, linked in found}


async def history(db: Database, space: Space, id: str, *, limit: int) -> list[str]:
    return await firsts(db, Q["history"], space=space.number, id=id, limit=limit)


async def mark_hits(db: Database, space: Space, hits: Mapping[str, int], *, now: datetime) -> None:
    counted = {"space": space.number, "ids": list(hits), "counts": list(hits.values()), "now": utc(now)}
    await db.execute(Q["mark_hits"], counted)


async def mark_used(db: Database, space: Space, ids: Sequence[str], *, now: datetime) -> int:
    return (await db.execute(Q["mark_used"], {"space": space.number, "ids": list(ids), "now": utc(now)})).rowcount


async def most_useful(db: Database, space: Space, per_hit: float) -> float:
    most: float = (await firsts(db, Q["most_useful"], space=space.number, per_hit=per_hit))[0]
    return most


async def set_qualities(db: Database, space: Space, qualities: Mapping[str, float]) -> int:
    given = {"ids": list(qualities), "qualities": list(qualities.values())}
    return (await db.execute(Q["set_qualities"], {"space": space.number, **given})).rowcount


async def spaces(db: Database) -> list[str]:
    return await firsts(db, Q["spaces"])


async def stats(db: Database, space: Space) -> SpaceStats:
    kinds: Counter[str] = Counter()
    namespaces: Counter[str] = Counter()
    superseded, pending, edges = 0, 0, 0
    for kind, namespace, count, replaced, waiting, links in await rows_of(db, Q["counts"], space=space.number):
        kinds[kind] += count
        namespaces[namespace] += count
        superseded += replaced
        pending += waiting
        edges = links
    return SpaceStats(
        space.name, kinds.total(), superseded, pending, edges, dict(kinds), dict(sorted(namespaces.items()))
    )
