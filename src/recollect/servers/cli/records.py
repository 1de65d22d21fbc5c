"""Commands on single memories: remember, get, list, update, supersede, history, used, forget."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recollect.errors import NotFound
from recollect.options import Changes, NewMemory, PageOptions, Replacement, Uses
from recollect.servers.cli import options as opt
from recollect.servers.cli.options import Given, again, open_store, takes, text_of
from recollect.servers.cli.output import console, hint, show
from recollect.servers.empty import empty_note

CLEARED: dict[str, Any] = {
    "title": "",
    "tags": (),
    "source": "",
    "thread": None,
    "metadata": {},
    "occurred-at": None,
    "expires-at": None,
    "quality": None,
}
"""What `update --clear FIELD` sets a field to."""

Text = Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; - reads standard input.")]


@takes(NewMemory)
def remember(
    text: Text,
    given: Given,
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Store a memory. An exact copy is not stored twice."""
    from recollect.servers.cli import render

    with open_store(store, embedder, create=True) as r:
        remembered = r.space(space).remember(text_of(text), **given)
    show(remembered, render.remembered, as_json=as_json)


def get(id: opt.Id, space: opt.SpaceName = "default", store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Show one memory with all of its fields."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        try:
            memory = r.space(space).get(id)
        except NotFound as error:
            raise NotFound("; ".join(filter(None, (str(error), empty_note(space, r.spaces()))))) from None
    show(memory, render.memory_sheet, as_json=as_json)


@takes(PageOptions)
def list_(
    context: typer.Context,
    given: Given,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """List memories, oldest first, or newest first."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        page = r.space(space).list(**given)
        note = "" if page.memories else empty_note(space, r.spaces())
    show(page, render.page, as_json=as_json)
    if page.cursor is not None and not as_json:  # on one line: a command that was broken could not be copied
        console().print(f"more: {render.one_line(again(context, after=page.cursor))}", style="dim", soft_wrap=True)
    hint(note)


@takes(Changes)
def update(
    id: opt.Id,
    given: Given,
    clear: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help=f"Empty a field ({', '.join(CLEARED)}); repeatable."),
    ] = None,
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Change the named fields of a memory. Tags given here replace the old ones; `--text -` reads standard input."""
    from recollect.servers.cli import render

    changes = cleared(clear or []) | given
    if not changes:
        raise typer.BadParameter("nothing to change: name at least one field, e.g. --text.", param_hint="update")
    if "text" in given:
        changes["text"] = text_of(given["text"])
    with open_store(store, embedder) as r:
        memory = r.space(space).update(id, **changes)
    show(memory, render.memory_sheet, as_json=as_json)


def cleared(names: list[str]) -> dict[str, Any]:
    """The changes that empty these fields."""
    for name in names:
        if name not in CLEARED:
            raise typer.BadParameter(f"{name!r} is not one of: {', '.join(CLEARED)}.", param_hint="--clear")
    return {name.replace("-", "_"): CLEARED[name] for name in names}


@takes(Replacement)
def supersede(
    old_id: Annotated[str, typer.Argument(metavar="OLD_ID", help="The memory that no longer holds.")],
    given: Given,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="What holds now; - reads standard input.")] = None,
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Replace a memory by a new one; the old one is kept, and no longer recalled."""
    from recollect.servers.cli import render

    if (text is None) == ("by" not in given):
        raise typer.BadParameter("give either the new text or --by with the id of a stored memory.", param_hint="TEXT")
    with open_store(store, embedder) as r:
        memory = r.space(space).supersede(old_id, None if text is None else text_of(text), **given)
    show(memory, render.memory_sheet, as_json=as_json)


def history(id: opt.Id, space: opt.SpaceName = "default", store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Show the versions of a memory, oldest first: what it replaced, and what replaced it."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        versions = r.space(space).history(id)
    show(versions, render.history, as_json=as_json)


@takes(Uses)
def used(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of the memories that helped.")],
    given: Given,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Say that memories were of use. What is only ever returned counts a tenth of that, and fades."""
    with open_store(store) as r:
        there = r.space(space).used(*ids, **given)
    _show_count("used", "noted for", ids, there, space, as_json=as_json)


def forget(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of the memories to delete.")],
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Delete memories for good, with their words, vectors and links."""
    with open_store(store) as r:
        there = r.space(space).forget(*ids)
    _show_count("forgotten", "forgot", ids, there, space, as_json=as_json)


def _show_count(name: str, said: str, ids: list[str], there: int, space: str, *, as_json: bool) -> None:
    """How many of these memories there were. Raises NotFound unless all of them."""
    from recollect.servers.cli import render

    show({name: there}, lambda _: f"{said} {render.count(there, 'memory', 'memories')}", as_json=as_json)
    if missing := len(set(ids)) - there:
        raise NotFound(f"{missing} of the {len(set(ids))} ids given had no memory in space {space!r}; see `list`")
