"""Commands that search: recall, and recipes, the ways to do it."""

from __future__ import annotations

from functools import partial
from typing import Annotated, TypeAlias

import typer

from recollect.options import RecallOptions
from recollect.servers.cli import options as opt
from recollect.servers.cli.options import Given, open_store, takes
from recollect.servers.cli.output import hint, show
from recollect.servers.empty import empty_note
from recollect.settings import Settings

Query: TypeAlias = Annotated[
    str, typer.Argument(metavar="QUERY", help="The question, in plain words.", show_default=False)
]
Explain: TypeAlias = Annotated[bool, typer.Option("--explain", help="Show what each lane gave to each hit.")]


@takes(RecallOptions)
def recall(
    query: Query,
    given: Given,
    explain: Explain = False,
    no_shared: opt.NoShared = False,
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Find memories by meaning, words and links, and say why each is there."""
    from recollect.servers.cli import render

    if no_shared and given.get("shared"):
        raise typer.BadParameter("--shared and --no-shared cannot be used together.", param_hint="--no-shared")
    if no_shared:
        given["shared"] = []
    with open_store(store, embedder) as r:
        answer = r.space(space).recall(query, **given)
        note = "" if answer.hits else empty_note(space, r.spaces())
    show(answer, partial(render.recall, space=space, explain=explain), as_json=as_json)
    hint(note)


def recipes(as_json: opt.Json = False, store: opt.Store = None) -> None:  # noqa: ARG001 - every command takes --store
    """List the recipes with all of their settings: the built-in ones, and those of recollect.toml."""
    from recollect.engine.query import with_own
    from recollect.servers.cli.render_recipes import recipe_sheets

    show(list(with_own(Settings.load().recipe).values()), recipe_sheets, as_json=as_json)
