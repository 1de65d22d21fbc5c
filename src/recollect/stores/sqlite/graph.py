"""Links between memories: adding, removing, and walking them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import apsw

from recollect.ports import Reached
from recollect.stores import contents
from recollect.stores.contents import check_depth, check_edges, check_ends, ends_of, present
from recollect.stores.named_sql import load
from recollect.stores.sqlite.filters import where_clause
from recollect.stores.sqlite.rows import as_json, row_numbers
from recollect.types import SIMILAR, Edge, Filter

Q = load(__name__, "graph.sql")

Key: TypeAlias = tuple[int, int, str]
"""Where an edge stands in the table: source, target, relation."""
FIRST: Final[Key] = (0, 0, "")


class _Label(NamedTuple):
    """How well one seed reaches one memory. Labels sort best first: stronger, then nearer."""

    weakness: float
    """The strength, negative."""
    steps: int
    seed: int
    relation: str


def link(db: apsw.Connection, space: int, edges: Sequence[Edge]) -> None:
    """Store edges, all or none."""
    check_edges(edges)
    rows = row_numbers(db, space, set(ends_of(edges)))
    check_ends(edges, rows)
    _put(db, space, edges, rows)


def link_present(db: apsw.Connection, space: int, edges: Sequence[Edge]) -> None:
    """Store those edges whose ends are both in this space."""
    check_edges(edges)
    rows = row_numbers(db, space, set(ends_of(edges)))
    _put(db, space, present(edges, rows), rows)


def link_nearest(db: apsw.Connection, space: int, nearest: Mapping[str, Sequence[Edge]]) -> None:
    """Store the edges of memories to their nearest, and that they have them."""
    link_present(db, space, [edge for edges in nearest.values() for edge in edges])
    db.execute(Q["mark_linked"], (as_json(row_numbers(db, space, nearest).values()),))


def unlink_nearest(db: apsw.Connection, space: int, row: int) -> None:
    """Delete a row's own links to its nearest."""
    db.execute(Q["delete_relation"], (space, row, SIMILAR))


def _put(db: apsw.Connection, space: int, edges: Iterable[Edge], rows: Mapping[str, int]) -> None:
    """Store edges that were checked and whose ends are in `rows`."""
    db.executemany(
        Q["put_edge"], ((space, rows[edge.source], rows[edge.target], edge.relation, edge.strength) for edge in edges)
    )


def unlink(db: apsw.Connection, space: int, source: str, target: str, relation: str | None) -> int:
    rows = row_numbers(db, space, (source, target))
    if source not in rows or target not in rows:
        return 0
    db.execute(Q["unlink"], (space, rows[source], rows[target], relation))
    return db.changes()


def remove(db: apsw.Connection, space: int, rows: Sequence[int]) -> None:
    """Delete every link of these rows."""
    for statement in ("delete_from", "delete_to"):
        db.execute(Q[statement], (space, as_json(rows)))


def edges_of(db: apsw.Connection, space: int, ids: Sequence[str]) -> list[Edge]:
    rows = row_numbers(db, space, ids).values()
    return [Edge(*found) for found in db.execute(Q["edges_of"], (space, as_json(rows)))]


def edges_after(db: apsw.Connection, space: int, last: Key, limit: int) -> list[tuple[Key, Edge]]:
    """Some of the space's edges, each with the key to continue after it."""
    found: Any = db.execute(Q["edges_after"], (space, *last, limit))
    return [
        ((row, other, relation), Edge(source, target, relation, strength))
        for row, other, source, target, relation, strength in found
    ]


def walk(
    db: apsw.Connection, space: int, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
) -> list[Reached]:
    """Memories within `depth` steps of a seed by the best product of strengths; see `GraphIndex.walk`.

    A memory may be reached on a weaker but shorter path first, so steps are taken all at once, breadth first; what is
    neither better nor shorter than before is not followed again.
    """
    check_depth(depth)
    if depth == 1:
        return _neighbours(db, space, seeds, where)[:limit]
    reached: dict[int, list[_Label]] = {}
    frontier = {row: [_Label(-1.0, 0, row, "")] for row in row_numbers(db, space, seeds).values()}
    for most in (contents.LINKS_PER_STEP, *[contents.LINKS_PER_MEMORY] * (depth - 1)):
        frontier = _entered(reached, _step(db, space, frontier, most))
    best = {row: labels[0] for row, labels in reached.items()}
    return _ranked(db, space, best, where)[:limit]


def _neighbours(db: apsw.Connection, space: int, seeds: Sequence[str], where: Filter) -> list[Reached]:
    """A walk of one step, which is what most recalls ask for, as one statement."""
    condition, values = where_clause(space, where)
    rows = as_json(row_numbers(db, space, seeds).values())
    found = db.execute(Q["neighbours"].format(where=condition), (space, rows, contents.LINKS_PER_STEP, *values)).get
    hits = [Reached(id, strength, 1, relation) for id, strength, relation in json.loads(found)]
    return sorted(hits, key=lambda hit: (-hit.strength, hit.id))


def _step(
    db: apsw.Connection, space: int, frontier: Mapping[int, list[_Label]], most: int
) -> Iterator[tuple[int, _Label]]:
    """Each memory one link further, with how well it is reached through that link."""
    best_first = sorted(frontier, key=lambda row: (frontier[row][0].weakness, row))
    links: Any = db.executemany(Q["links_of"], ((space, row, most) for row in best_first))
    for row, other, relation, strength in islice(links, contents.LINKS_PER_STEP):
        for weakness, steps, seed, _ in frontier[row]:
            if seed != other:
                yield other, _Label(weakness * strength, steps + 1, seed, relation)


def _entered(reached: dict[int, list[_Label]], arrivals: Iterable[tuple[int, _Label]]) -> dict[int, list[_Label]]:
    """Enter what is better than what `reached` holds, and return that as the next frontier."""
    fresh: dict[int, list[_Label]] = {}
    for row, label in arrivals:
        if _enter(reached.setdefault(row, []), label):
            _enter(fresh.setdefault(row, []), label)
    return fresh


def _enter(labels: list[_Label], label: _Label) -> bool:
    """Keep a label if it is one of the best two of different seeds; whether it is.

    Two, because a path back to a seed counts only when another seed began it, and of two different seeds one always
    is another.
    """
    if len(labels) == 2 and labels[1] <= label:
        return False
    if any(known.seed == label.seed and known <= label for known in labels):
        return False
    labels[:] = sorted([label, *(known for known in labels if known.seed != label.seed)])[:2]
    return True


def _ranked(db: apsw.Connection, space: int, best: Mapping[int, _Label], where: Filter) -> list[Reached]:
    condition, values = where_clause(space, where)
    found = db.execute(Q["visible"].format(where=condition), (as_json(best), *values))
    hits = [Reached(id, -best[row].weakness, best[row].steps, best[row].relation) for row, id in found]
    return sorted(hits, key=lambda hit: (-hit.strength, hit.id))
