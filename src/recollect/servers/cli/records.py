"""Commands on single memories: remember, get, list, update, supersede, history, used, forget."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recollect.errors import NotFound
from recollect.servers.cli import options as opt
from recollect.servers.cli.options import again, given, metadata_of, open_store, text_of
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


def remember(
    text: Text,
    title: opt.Title = None,
    kind: opt.Kind = None,
    namespace: opt.Namespace = None,
    tag: opt.Tags = None,
    source: opt.Source = None,
    thread: opt.Thread = None,
    place: opt.Place = None,
    metadata: opt.Metadata = None,
    occurred_at: opt.OccurredAt = None,
    expires_at: opt.ExpiresAt = None,
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Store a memory. An exact copy is not stored twice."""
    from recollect.servers.cli import render

    fields = given(
        title=title,
        kind=kind,
        namespace=namespace,
        tags=tag,
        source=source,
        thread=thread,
        place=place,
        metadata=metadata_of(metadata),
        occurred_at=occurred_at,
        expires_at=expires_at,
    )
    with open_store(store, embedder, create=True) as r:
        remembered = r.space(space).remember(text_of(text), **fields)
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


def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Go on after this id.")] = None,
    newest: Annotated[bool, typer.Option("--newest", help="Newest first.")] = False,
    kind: opt.Kinds = None,
    namespace: opt.Namespaces = None,
    tag: opt.WantedTags = None,
    source: opt.SourcePrefix = "",
    thread: opt.InThread = None,
    since: opt.Since = None,
    until: opt.Until = None,
    min_quality: opt.MinQuality = None,
    superseded: opt.WithSuperseded = None,
    expired: opt.WithExpired = None,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """List memories, oldest first, or newest first."""
    from recollect.servers.cli import render

    where = given(
        kinds=kind,
        namespaces=namespace,
        tags=tag,
        source_prefix=source,
        thread=thread,
        since=since,
        until=until,
        min_quality=min_quality,
        include_superseded=superseded,
        include_expired=expired,
    )
    with open_store(store) as r:
        page = r.space(space).list(limit=limit, after=after, newest_first=newest, **where)
        note = "" if page.memories else empty_note(space, r.spaces())
    show(page, render.page, as_json=as_json)
    if page.cursor is not None and not as_json:  # on one line: a command that was broken could not be copied
        console().print(f"more: {render.one_line(again(context, after=page.cursor))}", style="dim", soft_wrap=True)
    hint(note)


def update(
    id: opt.Id,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="A new text; - reads standard input.")] = None,
    title: opt.Title = None,
    kind: opt.Kind = None,
    namespace: opt.Namespace = None,
    tag: opt.Tags = None,
    source: opt.Source = None,
    thread: opt.Thread = None,
    place: opt.Place = None,
    metadata: opt.Metadata = None,
    occurred_at: opt.OccurredAt = None,
    expires_at: opt.ExpiresAt = None,
    quality: Annotated[float | None, typer.Option(metavar="Q", help="How good it is: 0 to 1.")] = None,
    clear: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help=f"Empty a field ({', '.join(CLEARED)}); repeatable."),
    ] = None,
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Change the named fields of a memory. Tags given here replace the old ones."""
    from recollect.servers.cli import render

    changes = cleared(clear or []) | given(
        text=None if text is None else text_of(text),
        title=title,
        kind=kind,
        namespace=namespace,
        tags=tag,
        source=source,
        thread=thread,
        place=place,
        metadata=metadata_of(metadata),
        occurred_at=occurred_at,
        expires_at=expires_at,
        quality=quality,
    )
    if not changes:
        raise typer.BadParameter("nothing to change: name at least one field, e.g. --text.", param_hint="update")
    with open_store(store, embedder) as r:
        memory = r.space(space).update(id, **changes)
    show(memory, render.memory_sheet, as_json=as_json)


def cleared(names: list[str]) -> dict[str, Any]:
    """The changes that empty these fields."""
    for name in names:
        if name not in CLEARED:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(CLEARED)}.", param_hint="--clear")
    return {name.replace("-", "_"): CLEARED[name] for name in names}


def supersede(
    old_id: Annotated[str, typer.Argument(metavar="OLD_ID", help="The memory that no longer holds.")],
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="What holds now; - reads standard input.")] = None,
    by: Annotated[str | None, typer.Option(metavar="NEW_ID", help="A memory that is stored already.")] = None,
    title: opt.Title = None,
    kind: opt.Kind = None,
    namespace: opt.Namespace = None,
    tag: opt.Tags = None,
    source: opt.Source = None,
    metadata: opt.Metadata = None,
    occurred_at: opt.OccurredAt = None,
    expires_at: opt.ExpiresAt = None,
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Replace a memory by a new one; the old one is kept, and no longer recalled."""
    from recollect.servers.cli import render

    if (text is None) == (by is None):
        raise typer.BadParameter("give either the new text or --by with the id of a stored memory.", param_hint="TEXT")
    fields = given(
        title=title,
        kind=kind,
        namespace=namespace,
        tags=tag,
        source=source,
        metadata=metadata_of(metadata),
        occurred_at=occurred_at,
        expires_at=expires_at,
    )
    with open_store(store, embedder) as r:
        memory = r.space(space).supersede(old_id, None if text is None else text_of(text), by=by, **fields)
    show(memory, render.memory_sheet, as_json=as_json)


def history(id: opt.Id, space: opt.SpaceName = "default", store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Show the versions of a memory, oldest first: what it replaced, and what replaced it."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        versions = r.space(space).history(id)
    show(versions, render.history, as_json=as_json)


def used(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of the memories that helped.")],
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Say that memories were of use. What is only ever returned counts a tenth of that, and fades."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        there = r.space(space).used(*ids)
    show({"used": there}, lambda _: f"noted for {render.count(there, 'memory', 'memories')}", as_json=as_json)
    _check_all_there(ids, there, space)


def forget(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of the memories to delete.")],
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Delete memories for good, with their words, vectors and links."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        forgotten = r.space(space).forget(*ids)
    show({"forgotten": forgotten}, lambda _: f"forgot {render.count(forgotten, 'memory', 'memories')}", as_json=as_json)
    _check_all_there(ids, forgotten, space)


def _check_all_there(ids: list[str], there: int, space: str) -> None:
    if missing := len(set(ids)) - there:
        raise NotFound(f"{missing} of the {len(set(ids))} ids given had no memory in space {space!r}; see `list`")
