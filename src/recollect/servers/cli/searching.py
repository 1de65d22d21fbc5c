"""Commands that search: recall, and recipes, the ways to do it."""

from __future__ import annotations

from functools import partial
from typing import Annotated, TypeAlias

import typer

from recollect.servers.cli import options as opt
from recollect.servers.cli.options import given, open_store, recipe_names, shared_of, weights_of
from recollect.servers.cli.output import hint, show
from recollect.servers.empty import empty_note

Query: TypeAlias = Annotated[
    str, typer.Argument(metavar="QUERY", help="The question, in plain words.", show_default=False)
]
RecipeName: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="How to search; see `recollect recipes`.", autocompletion=recipe_names)
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="How many hits at most.", show_default="recipe's")
]
Explain: TypeAlias = Annotated[bool, typer.Option("--explain", help="Show what each lane gave to each hit.")]
Expect: TypeAlias = Annotated[str | None, typer.Option(metavar="ID", help="Say where this memory was lost.")]
Window: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Show N thread neighbours on each side of a hit.")]
Weights: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="LANE=W", help="Weigh a lane differently: keyword=0.5; repeatable.")
]
Fanout: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="How many hits a lane is asked for.", show_default="recipe's")
]
MinScore: TypeAlias = Annotated[float | None, typer.Option(metavar="S", help="Only hits that score this or more.")]
QualityWeight: TypeAlias = Annotated[
    float | None, typer.Option(metavar="W", help="Let quality count so much, 0 to 1.", show_default="recipe's")
]
EfSearch: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", help="Candidates that a vector index keeps, 1 to 200.", show_default="the index's"),
]


def recall(
    query: Query,
    recipe: RecipeName = "balanced",
    limit: Limit = None,
    explain: Explain = False,
    expect: Expect = None,
    window: Window = 0,
    weight: Weights = None,
    fanout: Fanout = None,
    min_score: MinScore = None,
    quality_weight: QualityWeight = None,
    ef_search: EfSearch = None,
    kind: opt.Kinds = None,
    namespace: opt.Namespaces = None,
    shared: opt.Shared = None,
    no_shared: opt.NothingShared = False,
    tag: opt.WantedTags = None,
    source: opt.SourcePrefix = "",
    thread: opt.InThread = None,
    since: opt.Since = None,
    until: opt.Until = None,
    min_quality: opt.MinQuality = None,
    superseded: opt.WithSuperseded = None,
    expired: opt.WithExpired = None,
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Find memories by meaning, words and links, and say why each is there."""
    from recollect.servers.cli import render

    how = given(limit=limit, fanout=fanout, min_score=min_score, quality_weight=quality_weight, expect=expect)
    how |= given(ef_search=ef_search, weights=weights_of(weight), shared=shared_of(shared, none=no_shared))
    where = given(kinds=kind, namespaces=namespace, tags=tag, source_prefix=source, thread=thread)
    where |= given(since=since, until=until, min_quality=min_quality)
    where |= given(include_superseded=superseded, include_expired=expired)
    with open_store(store, embedder) as r:
        answer = r.space(space).recall(query, recipe=recipe, window=window, **how, **where)
        note = "" if answer.hits else empty_note(space, r.spaces())
    show(answer, partial(render.recall, space=space, explain=explain), as_json=as_json)
    hint(note)


def recipes(as_json: opt.Json = False, store: opt.Store = None) -> None:  # noqa: ARG001 - every command takes --store
    """List the recipes with all of their settings."""
    from recollect.recipes import RECIPES
    from recollect.servers.cli.render_recipes import recipe_sheets

    show(list(RECIPES.values()), recipe_sheets, as_json=as_json)
