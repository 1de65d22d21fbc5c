"""Links between memories: adding, removing, and walking them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import apsw

from recollect.ports import Reached
from recollect.ranking import paths
from recollect.stores.contents import EdgeKey, Space, check_edges, check_ends, ends_of, present
from recollect.stores.named_sql import load
from recollect.stores.sqlite.filters import where_clause
from recollect.stores.sqlite.rows import as_json, row_numbers
from recollect.types import SIMILAR, Edge, Filter

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


def link_nearest(db: apsw.Connection, space: Space, nearest: Mapping[str, Sequence[Edge]]) -> None:
    """Store the edges of memories to their nearest, and that they have them."""
    link_present(db, space.number, [edge for edges in nearest.values() for edge in edges])
    db.execute(Q["mark_linked"], (as_json(row_numbers(db, space.number, nearest).values()),))


def unlink_nearest(db: apsw.Connection, space: int, row: int) -> None:
    """Delete a row's own links to its nearest."""
    db.execute(Q["delete_relation"], (space, row, SIMILAR))


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
    paths.check_depth(depth)
    if depth == 1:
        return _neighbours(db, space.number, seeds, where)[:limit]
    found = paths.Paths(row_numbers(db, space.number, seeds).values())
    for most in (paths.LINKS_PER_STEP, *[paths.LINKS_PER_MEMORY] * (depth - 1)):
        found.follow(_links(db, space.number, found.frontier, most))
    return _ranked(db, space.number, found.best, where)[:limit]


def _neighbours(db: apsw.Connection, space: int, seeds: Sequence[str], where: Filter) -> list[Reached]:
    """A walk of one step, which is what most recalls ask for, as one statement."""
    condition, values = where_clause(space, where)
    rows = as_json(row_numbers(db, space, seeds).values())
    found = db.execute(Q["neighbours"].format(where=condition), (space, rows, paths.LINKS_PER_STEP, *values)).get
    hits = [Reached(id, strength, 1, relation) for id, strength, relation in json.loads(found)]
    return sorted(hits, key=lambda hit: (-hit.strength, hit.id))


def _links(db: apsw.Connection, space: int, rows: Sequence[int], most: int) -> Iterator[paths.Link[int]]:
    """The links of these rows, in their order."""
    links: Any = db.executemany(Q["links_of"], ((space, row, most) for row in rows))
    return (paths.Link(*link) for link in islice(links, paths.LINKS_PER_STEP))


def _ranked(db: apsw.Connection, space: int, best: Mapping[int, paths.Label[int]], where: Filter) -> list[Reached]:
    condition, values = where_clause(space, where)
    found = db.execute(Q["visible"].format(where=condition), (as_json(best), *values))
    hits = [Reached(id, -best[row].weakness, best[row].steps, best[row].relation) for row, id in found]
    return sorted(hits, key=lambda hit: (-hit.strength, hit.id))
