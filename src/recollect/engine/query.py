"""From a caller's keywords to a `Query`: the one place where a recall's bounds are applied."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from recollect.errors import InvalidRequest
from recollect.limits import (
    NAMESPACES,
    QUERY_BYTES,
    SOURCE_CHARACTERS,
    TAGS,
    WINDOW,
    check_characters,
    check_name,
    check_names,
    check_number,
    check_text,
    check_time,
)
from recollect.options import FilterOptions, RecallOptions
from recollect.recipes import Fanout, Recipe, recipe
from recollect.types import Filter

FANOUT_MOST = 10_000
EF_SEARCH_MOST = 200
DEPTHS = (1, 3)


@dataclass(frozen=True, slots=True)
class Query:
    """A recall after its bounds were applied."""

    text: str
    recipe: Recipe
    limit: int
    fanout: int
    where: Filter
    expect: str | None = None
    window: int = 0


def parse_query(text: str, options: RecallOptions) -> Query:
    """Check everything a caller said about a recall, and fill in what the recipe says."""
    known = RecallOptions.__annotations__
    for name in options:
        if name not in known:
            raise InvalidRequest(f"recall has no setting {name!r}; it has: {', '.join(sorted(known))}")
    check_text("the query", text, most_bytes=QUERY_BYTES)
    how = _check_lanes(recipe(options.get("recipe", "balanced")).with_(**_overrides(options)))
    limit = how.limit.apply(options.get("limit"))
    expect = options.get("expect")
    return Query(
        text=text,
        recipe=how,
        limit=limit,
        fanout=how.fanout.apply(limit),
        where=parse_filter(options, how),
        expect=None if expect is None else check_name("the expected id", expect),
        window=int(check_number("window", options.get("window", 0), 0, WINDOW, whole=True)),
    )


def parse_filter(options: FilterOptions, how: Recipe | None = None) -> Filter:
    """Check a caller's filter; a recipe's own filters hold where the caller says nothing."""
    quality = options.get("min_quality")
    if quality is None and how is not None:
        quality = how.min_quality
    thread = options.get("thread")
    source = options.get("source_prefix") or ""
    return Filter(
        kinds=check_names("kind", options.get("kinds") or (), most=TAGS),
        namespaces=check_names("namespace", options.get("namespaces") or (), most=NAMESPACES),
        tags=check_names("tag", options.get("tags") or (), most=TAGS),
        source_prefix=check_name("source prefix", source, most=SOURCE_CHARACTERS) if source else "",
        thread=None if thread is None else check_name("thread", thread),
        since=check_time("since", options.get("since")),
        until=check_time("until", options.get("until")),
        min_quality=None if quality is None else check_number("min_quality", quality, 0, 1),
        include_superseded=_choice(options.get("include_superseded"), how is not None and how.include_superseded),
        include_expired=_choice(options.get("include_expired"), how is not None and how.include_expired),
        now=datetime.now(UTC),
    )


def _choice(said: object, otherwise: bool) -> bool:
    return otherwise if said is None else bool(said)


def _overrides(options: RecallOptions) -> dict[str, Any]:
    changes: dict[str, Any] = {
        name: options[name] for name in ("weights", "lanes", "fusion", "diversity") if options.get(name) is not None
    }
    if (least := options.get("min_score")) is not None:
        changes["min_score"] = check_number("min_score", least, 0, 1e9)
    if (fanout := options.get("fanout")) is not None:
        if not isinstance(fanout, Fanout):
            fanout = Fanout(times=0, at_least=int(check_number("fanout", fanout, 1, FANOUT_MOST, whole=True)))
        changes["fanout"] = fanout
    return changes


def _clamped(ef_search: int | None) -> int | None:
    return None if ef_search is None else min(max(ef_search, 1), EF_SEARCH_MOST)


def _check_lanes(how: Recipe) -> Recipe:
    if not any(lane.weight > 0 for lane in how.lanes):
        raise InvalidRequest("every lane has weight 0: give at least one lane a weight above 0")
    if how.limit.clamp:
        how = replace(how, lanes=tuple(replace(lane, ef_search=_clamped(lane.ef_search)) for lane in how.lanes))
    for lane in how.lanes:
        check_number(f"the deadline of lane {lane.name!r}", lane.deadline, 0.001, 600)
        check_number(f"the depth of lane {lane.name!r}", lane.depth, *DEPTHS, whole=True)
        check_number(f"the seeds of lane {lane.name!r}", lane.seeds, 1, 100, whole=True)
        check_characters(f"the name of lane {lane.name!r}", lane.name)
        if lane.ef_search is not None:
            check_number(f"ef_search of lane {lane.name!r}", lane.ef_search, 1, EF_SEARCH_MOST, whole=True)
    return how
