"""Links between memories: adding, removing, and walking them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import apsw

from recollect.ports import Reached
from recollect.ranking import paths
from recollect.stores import links
from recollect.stores.contents import EdgeKey, Space, check_edges, check_ends, ends_of, present
from recollect.stores.named_sql import load
from recollect.stores.sqlite.rows import as_json, row_numbers, where_clause
from recollect.types import SIMILAR, Edge, Filter, Scored

if TYPE_CHECKING:
    from recollect.stores.nearest import Rows, Scores

Q = load(__name__, "graph.sql")


def link(db: apsw.Connection, space: Space, edges: Sequence[Edge]) -> None:
    """Store edges, all or none."""
    check_edges(edges)
    rows = row_numbers(db, space.number, set(ends_of(edges)))
    check_ends(edges, rows)
    _put(db, space.number, edges, rows)


def link_present(db: apsw.Connection, space: int, edges: Sequence[Edge]) -> None:
    """Store those edges whose ends are both in this space."""
    check_edges(edges)
    rows = row_numbers(db, space, set(ends_of(edges)))
    _put(db, space, present(edges, rows), rows)


def link_nearest(db: apsw.Connection, space: Space, nearest: Mapping[str, Sequence[Scored]]) -> None:
    """Link memories to their nearest, and those to them that are nearer to them than to their own; see links.py."""
    number = space.number
    rows = row_numbers(db, number, {*nearest, *(hit.id for hits in nearest.values() for hit in hits)})
    waiting = {row for (row,) in db.execute(Q["waiting_among"], (as_json(rows.values()),))}
    offers = links.offered(nearest, rows, waiting)
    held: links.Links = {}
    for source, target, strength in db.execute(Q["nearest_of"], (number, as_json(offers), SIMILAR)):
        held.setdefault(source, {})[target] = strength
    tied = links.tied(held, offers)
    digests = dict(db.execute(Q["digests"], (as_json(tied),))) if tied else {}
    put, gone = links.revise(held, offers, digests)
    db.executemany(Q["unlink"], ((number, source, target, SIMILAR) for source, target in gone))
    db.executemany(Q["put_edge"], ((number, source, target, SIMILAR, strength) for source, target, strength in put))
    db.execute(Q["mark_linked"], (as_json(rows[id] for id in nearest if id in rows),))


def unlink_nearest(db: apsw.Connection, space: int, rows: Sequence[int]) -> None:
    """Delete links of rows to their nearest, and links of others to them, which have to be linked anew."""
    numbers = as_json(rows)
    db.execute(Q["mark_unlinked"], (space, numbers, SIMILAR))
    for statement in ("delete_nearest", "delete_as_nearest"):
        db.execute(Q[statement], (space, numbers, SIMILAR))


def reach(db: apsw.Connection, space: int, rows: Rows, limit: int) -> Scores:
    """How near another must come to each of these rows to be among its nearest."""
    linked = db.execute(Q["weakest"], (space, as_json(rows.tolist()), SIMILAR, limit))
    return links.reach(rows, linked, (row for (row,) in db.execute(Q["waiting"], (space,))))


def _put(db: apsw.Connection, space: int, edges: Iterable[Edge], rows: Mapping[str, int]) -> None:
    """Store edges that were checked and whose ends are in `rows`."""
    db.executemany(
        Q["put_edge"], ((space, rows[edge.source], rows[edge.target], edge.relation, edge.strength) for edge in edges)
    )


def unlink(db: apsw.Connection, space: Space, source: str, target: str, relation: str | None = None) -> int:
    rows = row_numbers(db, space.number, (source, target))
    if source not in rows or target not in rows:
        return 0
    db.execute(Q["unlink"], (space.number, rows[source], rows[target], relation))
    return db.changes()


def remove(db: apsw.Connection, space: int, rows: Sequence[int]) -> None:
    """Delete every link of these rows."""
    for statement in ("delete_from", "delete_to"):
        db.execute(Q[statement], (space, as_json(rows)))


def edges_of(db: apsw.Connection, space: Space, ids: Sequence[str]) -> list[Edge]:
    rows = row_numbers(db, space.number, ids).values()
    return [Edge(*found) for found in db.execute(Q["edges_of"], (space.number, as_json(rows)))]


def edges_after(db: apsw.Connection, space: Space, last: EdgeKey, limit: int) -> list[tuple[EdgeKey, Edge]]:
    """Some of the space's edges, each with the key to continue after it."""
    found: Any = db.execute(Q["edges_after"], (space.number, *last, limit))
    return [
        ((row, other, relation), Edge(source, target, relation, strength))
        for row, other, source, target, relation, strength in found
    ]


def walk(
    db: apsw.Connection, space: Space, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
) -> Sequence[Reached]:
    """Memories within `depth` steps of a seed by the best product of strengths; see `GraphIndex.walk`."""
    if depth == 1:
        return _neighbours(db, space.number, seeds, where)[:limit]
    paths.check_depth(depth)
    found = paths.Paths(row_numbers(db, space.number, seeds).values())
    for most in (paths.LINKS_PER_STEP, *[paths.LINKS_PER_MEMORY] * (depth - 1)):
        found.follow(_links(db, space.number, found.frontier, most))
    return _ranked(db, space.number, found.best, where)[:limit]


def _strongest(hit: Reached) -> tuple[float, str]:
    """Strongest first, ties by id."""
    return -hit.strength, hit.id


def _neighbours(db: apsw.Connection, space: int, seeds: Sequence[str], where: Filter) -> list[Reached]:
    """A walk of one step, which is what most recalls ask for, as one statement."""
    condition, values = where_clause(space, where)
    rows = as_json(row_numbers(db, space, seeds).values())
    found = db.execute(Q["neighbours"].format(where=condition), (space, rows, paths.LINKS_PER_STEP, *values)).get
    hits = [Reached(id, strength, 1, relation) for id, strength, relation in json.loads(found)]
    return sorted(hits, key=_strongest)


def _links(db: apsw.Connection, space: int, rows: Sequence[int], most: int) -> Iterator[paths.Link[int]]:
    """The links of these rows, in their order."""
    links: Any = db.executemany(Q["links_of"], ((space, row, most) for row in rows))
    return (paths.Link(*link) for link in islice(links, paths.LINKS_PER_STEP))


def _ranked(db: apsw.Connection, space: int, best: Mapping[int, paths.Label[int]], where: Filter) -> list[Reached]:
    condition, values = where_clause(space, where)
    found = db.execute(Q["visible"].format(where=condition), (as_json(best), *values))
    hits = [Reached(id, -best[row].weakness, best[row].steps, best[row].relation) for row, id in found]
    return sorted(hits, key=_strongest)
