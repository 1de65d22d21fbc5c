"""A `Filter` as SQL over the table `memories AS m`. Values are always parameters, named `f_…`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from recollect.limits import utc
from recollect.stores.postgres.rows import Q
from recollect.stores.sql_store import first_after, is_unfiltered
from recollect.types import Filter

__all__ = ["is_unfiltered", "rows_clause", "rows_query", "where_clause"]

Clause: TypeAlias = tuple[str, dict[str, Any]]

INDEXED: Final = 200
"""Characters of a source in its index; see the schema."""

_TAGGED = "m.row IN (SELECT t.row FROM tags AS t WHERE t.space = %(f_space)s AND t.tag = %(f_tag)s)"


def where_clause(space: int, where: Filter) -> Clause:
    """The condition that a row of `memories AS m` must meet, for rows that are found in some other way."""
    pieces = list(_pieces(space, where))
    values = {name: value for _, given in pieces for name, value in given.items()}
    return " AND ".join(sql for sql, _ in pieces), values


def rows_clause(space: int, where: Filter) -> Clause:
    """The same for a query that the filter drives: through the table of tags if there is a tag."""
    if not where.tags:
        return where_clause(space, where)
    tag, *others = where.tags
    condition, values = where_clause(space, replace(where, tags=tuple(others)))
    return f"{condition} AND {_TAGGED}", {**values, "f_tag": tag}


def rows_query(space: int, where: Filter) -> Clause:
    """A query for every row that passes."""
    condition, values = rows_clause(space, where)
    return Q["rows"].format(where=condition), values


def _pieces(space: int, where: Filter) -> Iterator[Clause]:
    yield "m.space = %(f_space)s", {"f_space": space}
    if where.kinds:
        yield "m.kind = ANY(%(f_kinds)s)", {"f_kinds": list(where.kinds)}
    if where.namespaces:
        yield "m.namespace = ANY(%(f_namespaces)s)", {"f_namespaces": list(where.namespaces)}
    if where.tags:
        yield "m.tags @> %(f_tags)s::text[]", {"f_tags": list(where.tags)}
    if where.source_prefix:
        yield from _source(where.source_prefix)
    if where.thread is not None:
        yield "m.thread = %(f_thread)s", {"f_thread": where.thread}
    if where.since:
        yield "coalesce(m.occurred_at, m.created_at) >= %(f_since)s", {"f_since": utc(where.since)}
    if where.until:
        yield "coalesce(m.occurred_at, m.created_at) < %(f_until)s", {"f_until": utc(where.until)}
    if where.min_quality is not None:
        yield "(m.quality IS NULL OR m.quality >= %(f_quality)s)", {"f_quality": where.min_quality}
    if not where.include_superseded:
        yield "m.superseded_by IS NULL", {}
    if not where.include_expired:
        yield "(m.expires_at IS NULL OR m.expires_at > %(f_now)s)", {"f_now": utc(where.now or datetime.now(UTC))}


def _source(prefix: str) -> Iterator[Clause]:
    """A prefix as a range, which can use an index and has no wildcards. The index holds the first characters of a
    source; a longer prefix is also compared with the whole.
    """
    yield from _range(f"left(m.source, {INDEXED})", "f_source", prefix[:INDEXED])
    if len(prefix) > INDEXED:
        yield from _range("m.source", "f_whole_source", prefix)


def _range(column: str, name: str, prefix: str) -> Iterator[Clause]:
    yield f"{column} >= %({name})s", {name: prefix}
    end = first_after(prefix)
    if end:
        yield f"{column} < %({name}_end)s", {f"{name}_end": end}
