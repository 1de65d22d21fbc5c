"""Links between memories: adding, removing, and walking them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from recollect.ports import Reached
from recollect.ranking import paths
from recollect.stores.contents import EdgeKey, Space, check_edges, check_ends, ends_of, present
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.filters import where_clause
from recollect.stores.postgres.rows import rows_of, statements
from recollect.types import SIMILAR, Edge, Filter

Q = statements("graph.sql")


async def link(db: Database, space: Space, edges: Sequence[Edge]) -> None:
    """Store edges, all or none."""
    check_edges(edges)
    rows = await _hold(db, space.number, edges)
    check_ends(edges, rows)
    await _put(db, space.number, edges, rows)


async def link_present(db: Database, space: int, edges: Sequence[Edge]) -> None:
    """Store those edges whose ends are both in this space."""
    check_edges(edges)
    rows = await _hold(db, space, edges)
    await _put(db, space, present(edges, rows), rows)


async def link_nearest(db: Database, space: Space, nearest: Mapping[str, Sequence[Edge]]) -> None:
    """Store the edges of memories to their nearest, and that they have them."""
    edges = [edge for edges in nearest.values() for edge in edges]
    check_edges(edges)
    rows = await _hold(db, space.number, edges, nearest)
    await _put(db, space.number, present(edges, rows), rows)
    linked = [rows[id] for id in nearest if id in rows]
    await db.execute(Q["mark_linked"], {"space": space.number, "rows": linked})


async def unlink_nearest(db: Database, space: int, row: int) -> None:
    """Delete a row's own links to its nearest."""
    await db.execute(Q["delete_relation"], {"space": space, "row": row, "relation": SIMILAR})


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


async def _hold(db: Database, space: int, edges: Iterable[Edge], others: Iterable[str] = ()) -> dict[str, int]:
    """The rows of all ends, and of other ids, that are here; they stay until the transaction ends."""
    ids = list({*ends_of(edges), *others})
    return dict(await rows_of(db, Q["hold_ends"], space=space, ids=ids)) if ids else {}


async def _put(db: Database, space: int, edges: Iterable[Edge], rows: Mapping[str, int]) -> None:
    """Store edges that were checked and whose ends are in `rows`; of one that is given twice, the last. In one order,
    so that two who write the same do not wait for each other.
    """
    strengths = {(rows[edge.source], rows[edge.target], edge.relation): edge.strength for edge in edges}
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
