"""From a caller's keywords to a `Query`. All bounds of a recall and of a recipe are checked here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from typing import Any, get_args

from recollect.errors import ConfigError, InvalidRequest
from recollect.legs import LEGS
from recollect.limits import (
    MAX_HITS,
    NAMESPACES,
    QUERY_BYTES,
    SOURCE_CHARACTERS,
    TAGS,
    check_choice,
    check_flag,
    check_name,
    check_names,
    check_number,
    check_text,
    check_time,
    check_weight,
    check_words,
    shown,
)
from recollect.options import FilterOptions, RecallOptions, declared
from recollect.ports import KeywordScore, Match
from recollect.recipes import RECIPES, DiversityMethod, Fanout, FusionMethod, Lane, Recipe, Relevance, Rerank, recipe
from recollect.settings import FILE
from recollect.types import Filter

RECALL = declared(RecallOptions)
EF_SEARCH = RECALL["ef_search"]
DEPTHS = (1, 3)


@dataclass(frozen=True, slots=True)
class Query:
    """A checked recall."""

    text: str
    recipe: Recipe
    limit: int
    fanout: int
    where: Filter
    expect: str | None = None
    window: int = 0
    shared: tuple[tuple[str, str], ...] | None = None
    """Namespaces of other spaces, as (space, namespace); None: all that the caller may see."""

    @property
    def own_space(self) -> bool:
        """Whether the caller's own space is searched: not if only namespaces of other spaces are named."""
        return bool(self.where.namespaces) or not self.shared


def parse_query(text: str, options: RecallOptions, known: Mapping[str, Recipe] = RECIPES) -> Query:
    """Check the options of a recall, and fill in the recipe's defaults."""
    if options:
        check_settings("recall", options, RecallOptions.__annotations__)
    check_text("the query", text, most_bytes=QUERY_BYTES)
    how = recipe(options.get("recipe", "balanced"), known)
    if options:
        how = _changed(how, options)
    if how is not RECIPES.get(how.name):  # built-in recipes need no check
        how = _check_recipe(how)
    limit = how.limit.apply(options.get("limit"))
    expect, where = options.get("expect"), parse_filter(options, how)
    shared = _shared(options.get("shared"), where)
    if not where.namespaces and not shared:  # naming only shared namespaces leaves out the own space
        where = replace(where, namespaces=how.default_namespaces)
    return Query(
        text=text,
        recipe=how,
        limit=limit,
        fanout=how.fanout.apply(limit),
        where=where,
        expect=None if expect is None else check_name("the expected id", expect),
        window=int(RECALL["window"].number(options["window"])) if "window" in options else 0,
        shared=shared,
    )


def _changed(how: Recipe, options: RecallOptions) -> Recipe:
    """The recipe with what a caller says differently."""
    how = _searching(how, options.get("ef_search")).with_(**_overrides(options))
    renormalise = options.get("renormalise")
    return how if renormalise is None else how.with_(fusion={"renormalise": renormalise})


def _shared(named: object, where: Filter) -> tuple[tuple[str, str], ...] | None:
    """The namespaces of other spaces that a caller names. None if it names only its own."""
    if named is None:
        return () if where.namespaces else None
    if isinstance(named, str) or not isinstance(named, Iterable):
        raise InvalidRequest(f"shared must be a list of pairs (space, namespace), not {shown(named)}")
    pairs = tuple(dict.fromkeys(_pair(one) for one in named))
    if (count := len(pairs) + len(where.namespaces)) > NAMESPACES:
        raise InvalidRequest(f"{count} namespaces were given, more than the {NAMESPACES} allowed")
    return pairs


def _pair(named: object) -> tuple[str, str]:
    if not isinstance(named, tuple | list) or len(named) != 2:
        raise InvalidRequest(f"a shared namespace must be a pair (space, namespace), not {shown(named)}")
    return check_name("space", named[0]), check_name("namespace", named[1])


def check_settings(what: str, options: Mapping[str, object], known: Iterable[str]) -> None:
    for name in options:
        if name not in known:
            raise InvalidRequest(f"{what} has no setting {name!r:.80}; it has: {', '.join(sorted(known))}")


def parse_filter(options: FilterOptions, how: Recipe | None = None) -> Filter:
    """Check a caller's filter. The recipe fills in what the caller leaves out."""
    quality = options.get("min_quality")
    if quality is None and how is not None:
        quality = how.min_quality
    now = datetime.now(UTC)
    thread, since, until = options.get("thread"), options.get("since"), options.get("until")
    source = options.get("source_prefix") or ""
    kinds, namespaces, tags = options.get("kinds"), options.get("namespaces"), options.get("tags")
    return Filter(
        kinds=RECALL["kinds"].names(kinds) if kinds else (),
        namespaces=RECALL["namespaces"].names(namespaces) if namespaces else (),
        tags=RECALL["tags"].names(tags) if tags else (),
        source_prefix=check_name("source prefix", source, most=SOURCE_CHARACTERS) if source else "",
        thread=None if thread is None else check_name("thread", thread),
        since=None if since is None else check_time("since", since, now),
        until=None if until is None else check_time("until", until, now),
        min_quality=None if quality is None else RECALL["min_quality"].number(quality),
        include_superseded=_choice(options.get("include_superseded"), how is not None and how.include_superseded),
        include_expired=_choice(options.get("include_expired"), how is not None and how.include_expired),
        now=now,
    )


def _choice(said: object, otherwise: bool) -> bool:
    return otherwise if said is None else bool(said)


def _searching(how: Recipe, ef_search: int | None) -> Recipe:
    """The recipe with this `ef_search` in every lane that uses a vector index."""
    if ef_search is None:
        return how
    return how.with_(lanes={lane.name: {"ef_search": ef_search} for lane in how.lanes if lane.leg != "keyword"})


def _overrides(options: RecallOptions) -> dict[str, Any]:
    changes: dict[str, Any] = {
        name: options[name] for name in ("weights", "lanes", "fusion", "diversity") if options.get(name) is not None
    }
    if (least := options.get("min_score")) is not None:
        changes["min_score"] = RECALL["min_score"].number(least)
    if (sure := options.get("min_confidence")) is not None:
        changes["min_confidence"] = RECALL["min_confidence"].number(sure)
    if (weight := options.get("quality_weight")) is not None:
        changes["quality_weight"] = weight
    if (fanout := options.get("fanout")) is not None:
        if not isinstance(fanout, Fanout | Mapping):
            fanout = Fanout(times=0, at_least=int(RECALL["fanout"].number(fanout)))
        changes["fanout"] = fanout
    return changes


def _clamped(lane: Lane) -> Lane:
    """The lane with its `ef_search` moved within the bounds."""
    if lane.ef_search is None:
        return lane
    check_number(f"ef_search of lane {lane.name!r}", lane.ef_search, -inf, inf, whole=True)
    return replace(lane, ef_search=int(min(max(lane.ef_search, EF_SEARCH.option.least), EF_SEARCH.option.most)))


def _check_recipe(how: Recipe) -> Recipe:
    check_choice("fusion method", how.fusion.method, get_args(FusionMethod))
    check_number("k of the fusion", how.fusion.k, 0, 10_000)
    check_flag("renormalise", how.fusion.renormalise)
    check_choice("diversity method", how.diversity.method, get_args(DiversityMethod))
    check_number("balance of the diversity", how.diversity.balance, 0, 1)
    check_choice("relevance of the diversity", how.diversity.relevance, get_args(Relevance))
    check_names("default namespace", how.default_namespaces, most=NAMESPACES)
    _check_bounds(how)
    for lane in how.lanes:
        check_name("the name of a lane", lane.name)
        if lane.leg not in [*LEGS.ours]:  # a list, because a caller may pass something unhashable
            check_choice(f"leg of lane {lane.name!r}", lane.leg, LEGS.names())
        check_weight(lane.name, lane.weight)
        check_names(f"kind of lane {lane.name!r}", lane.kinds, most=TAGS)
        check_flag(f"every_namespace of lane {lane.name!r}", lane.every_namespace)
        check_flag(f"context of lane {lane.name!r}", lane.context)
        _check_words(lane)
    if len({lane.name for lane in how.lanes}) < len(how.lanes):
        raise InvalidRequest(f"two lanes have the same name: {', '.join(lane.name for lane in how.lanes)}")
    return _check_lanes(how)


def _check_bounds(how: Recipe) -> None:
    """How many hits, how good they must be, and what reads them again."""
    for name in ("min_score", "min_confidence", "min_quality", "quality_weight"):
        if (value := getattr(how, name)) is not None:
            RECALL[name].number(value)
    for name in ("default", "least", "most"):
        check_number(f"{name} of the limit", getattr(how.limit, name), 1, MAX_HITS, whole=True)
    check_flag("clamp of the limit", how.limit.clamp)
    for name in ("times", "at_least"):
        check_number(f"{name} of the fanout", getattr(how.fanout, name), 0, RECALL["fanout"].option.most, whole=True)
    RECALL["fanout"].number(how.fanout.apply(how.limit.default))
    check_flag("include_superseded", how.include_superseded)
    check_flag("include_expired", how.include_expired)
    check_choice("all_failed", how.all_failed, ("raise", "empty"))
    if how.rerank is not None:
        _check_rerank(how.rerank)


def _check_rerank(how: Rerank) -> None:
    if how.model is not None:
        check_name("model of rerank", how.model, most=SOURCE_CHARACTERS)
    check_number("count of rerank", how.count, 1, 1000, whole=True)
    check_number("turns of rerank", how.turns, 0, 1000)
    check_number("rest of rerank", how.rest, 0, 1000)
    check_number("deadline of rerank", how.deadline, 0.001, 600)


def _check_words(lane: Lane) -> None:
    check_words(f"words of lane {lane.name!r}", lane.words)
    check_choice(f"match of lane {lane.name!r}", lane.match, get_args(Match))
    check_choice(f"score of lane {lane.name!r}", lane.score, get_args(KeywordScore))
    check_number(f"title_boost of lane {lane.name!r}", lane.title_boost, 0, 1e6)
    if lane.match != "any" and (lane.words == "analyzed" or lane.score == "bm25"):
        raise InvalidRequest(
            f"lane {lane.name!r} has match {lane.match!r}, words {lane.words!r} and score {lane.score!r}: that match "
            "needs words such as 'simple' or 'english', and the score 'ts_rank' or 'ts_rank_cd'"
        )


def _check_lanes(how: Recipe) -> Recipe:
    if not any(lane.weight > 0 for lane in how.lanes):
        raise InvalidRequest("every lane has weight 0: give at least one lane a weight above 0")
    if how.limit.clamp:
        how = replace(how, lanes=tuple(_clamped(lane) for lane in how.lanes))
    for lane in how.lanes:
        if lane.deadline is not None:
            check_number(f"the deadline of lane {lane.name!r}", lane.deadline, 0.001, 600)
        check_number(f"the depth of lane {lane.name!r}", lane.depth, *DEPTHS, whole=True)
        check_number(f"the seeds of lane {lane.name!r}", lane.seeds, 1, 100, whole=True)
        check_number(f"lowest of lane {lane.name!r}", lane.lowest, -1, 1)
        if lane.ef_search is not None:
            EF_SEARCH.number(lane.ef_search, f"ef_search of lane {lane.name!r}")
    return how


def with_own(tables: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Recipe]:
    """The built-in recipes, and those of `recollect.toml`: each `[recipe.NAME]` is a `base`, built in or further up in
    the file, and what is changed of it. Raises ConfigError for one that no recall could use.

    >>> with_own({"mine": {"base": "careful", "min_confidence": 0.2}})["mine"].rerank.count
    30
    """
    known = dict(RECIPES)
    for name, table in tables.items():
        if name in RECIPES:
            raise ConfigError(f"[recipe.{name}] in {FILE} has the name of a built-in recipe: give it another")
        changes = {key: tuple(one) if isinstance(one, list) else one for key, one in table.items() if key != "base"}
        try:
            changed = recipe(table.get("base", "balanced"), known).with_(**changes)
            known[name] = _check_recipe(replace(changed, name=check_name("the name of a recipe", name)))
        except InvalidRequest as error:
            raise ConfigError(f"[recipe.{name}] in {FILE}: {error}") from None
    return known
