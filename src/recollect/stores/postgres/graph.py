"""Links between memories: adding, removing, and walking them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from recollect.ports import Reached
from recollect.ranking import paths
from recollect.stores import links
from recollect.stores.contents import EdgeKey, Space, check_edges, check_ends, ends_of, present
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.filters import where_clause
from recollect.stores.postgres.rows import firsts, rows_of, statements
from recollect.types import SIMILAR, Edge, Filter, Scored

if TYPE_CHECKING:
    from recollect.stores.nearest import Rows, Scores

Q = statements("graph.sql")


async def link(db: Database, space: Space, edges: Sequence[Edge]) -> None:
    """Store edges, all or none."""
    check_edges(edges)
    rows = await _hold(db, space.number, ends_of(edges))
    check_ends(edges, rows)
    await _put(db, space.number, _by_rows(edges, rows))


async def link_present(db: Database, space: int, edges: Sequence[Edge]) -> None:
    """Store those edges whose ends are both in this space."""
    check_edges(edges)
    rows = await _hold(db, space, ends_of(edges))
    await _put(db, space, _by_rows(present(edges, rows), rows))


async def link_nearest(db: Database, space: Space, nearest: Mapping[str, Sequence[Scored]]) -> None:
    """Link memories to their nearest, and those to them that are nearer to them than to their own; see links.py. One
    at a time: two who offer something to the same memory would each make room for their own.
    """
    number = space.number
    await db.execute(Q["lock_links"], {"space": number})
    rows = await _hold(db, number, {*nearest, *(hit.id for hits in nearest.values() for hit in hits)})
    waiting = set(await firsts(db, Q["waiting_among"], space=number, rows=[*rows.values()]))
    offers = links.offered(nearest, rows, waiting)
    held: links.Links = {}
    for source, target, strength in await rows_of(db, Q["nearest_of"], space=number, rows=[*offers], relation=SIMILAR):
        held.setdefault(source, {})[target] = strength
    tied = links.tied(held, offers)
    digests = dict(await rows_of(db, Q["digests"], space=number, rows=[*tied])) if tied else {}
    put, gone = links.revise(held, offers, digests)
    if gone:
        sources, targets = zip(*sorted(gone), strict=True)
        ends = {"space": number, "sources": list(sources), "targets": list(targets), "relation": SIMILAR}
        await db.execute(Q["delete_edges"], ends)
    await _put(db, number, {(source, target, SIMILAR): strength for source, target, strength in put})
    await db.execute(Q["mark_linked"], {"space": number, "rows": [rows[id] for id in nearest if id in rows]})


async def unlink_nearest(db: Database, space: int, row: int) -> None:
    """Delete a row's own links to its nearest."""
    await db.execute(Q["delete_relation"], {"space": space, "row": row, "relation": SIMILAR})


async def unlink_others(db: Database, space: int, rows: Sequence[int]) -> None:
    """Delete the links of others to these rows as their nearest: they have to be linked anew."""
    await db.execute(Q["unlink_others"], {"space": space, "rows": list(rows), "relation": SIMILAR})


async def reach(db: Database, space: int, rows: Rows, limit: int) -> Scores:
    """How near another must come to each of these rows to be among its nearest."""
    some = rows.tolist()
    linked = await rows_of(db, Q["weakest"], space=space, rows=some, relation=SIMILAR, limit=limit)
    return links.reach(rows, linked, await firsts(db, Q["waiting_among"], space=space, rows=some))


async def unlink(db: Database, space: Space, source: str, target: str, relation: str | None = None) -> int:
    ends = {"space": space.number, "source": source, "target": target, "relation": relation}
    return (await db.execute(Q["unlink"], ends)).rowcount


async def edges_of(db: Database, space: Space, ids: Sequence[str]) -> list[Edge]:
    return [Edge(*found) for found in await rows_of(db, Q["edges_of"], space=space.number, ids=list(ids))]


async def edges_after(db: Database, space: Space, last: EdgeKey, limit: int) -> list[tuple[EdgeKey, Edge]]:
    """Some of the space's edges, each with the key to continue after it."""
    source, target, relation = last
    found = await rows_of(
        db, Q["edges_after"], space=space.number, source=source, target=target, relation=relation, limit=limit
    )
    return [
        ((row, other, relation), Edge(source, target, relation, strength))
        for row, other, source, target, relation, strength in found
    ]


async def walk(
    db: Database, space: Space, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
) -> Sequence[Reached]:
    """Memories within `depth` steps of a seed by the best product of strengths; see `GraphIndex.walk`. A walk of one
    step, which is what most recalls ask for, has a statement that is quicker to plan.
    """
    paths.check_depth(depth)
    condition, values = where_clause(space.number, where)
    found = await rows_of(
        db,
        Q["neighbours" if depth == 1 else "walk"].format(where=condition),
        space=space.number,
        seeds=list(seeds),
        depth=depth,
        limit=limit,
        per_step=paths.LINKS_PER_STEP,
        per_memory=paths.LINKS_PER_MEMORY,
        **values,
    )
    return [Reached(*hit) for hit in found]


async def _hold(db: Database, space: int, ids: Iterable[str]) -> dict[str, int]:
    """The rows of these ids that are here; they stay until the transaction ends."""
    wanted = list(set(ids))
    return dict(await rows_of(db, Q["hold_ends"], space=space, ids=wanted)) if wanted else {}


def _by_rows(edges: Iterable[Edge], rows: Mapping[str, int]) -> dict[EdgeKey, float]:
    """The strengths of edges whose ends are in `rows`; of one that is given twice, the last."""
    return {(rows[edge.source], rows[edge.target], edge.relation): edge.strength for edge in edges}


async def _put(db: Database, space: int, strengths: Mapping[EdgeKey, float]) -> None:
    """Store edges; in one order, so that two who write the same do not wait for each other."""
    if not strengths:
        return
    sources, targets, relations = zip(*sorted(strengths), strict=True)
    values = {
        "space": space,
        "sources": list(sources),
        "targets": list(targets),
        "relations": list(relations),
        "strengths": [strengths[key] for key in sorted(strengths)],
    }
    await db.execute(Q["put_edges"], values)
