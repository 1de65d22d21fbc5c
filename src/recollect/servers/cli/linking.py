"""Commands on links: link, unlink, neighbors."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.options import Link, Walk
from recollect.servers.cli import options as opt
from recollect.servers.cli.options import Given, open_store, takes
from recollect.servers.cli.output import show
from recollect.types import Edge

SourceId = Annotated[str, typer.Argument(metavar="FROM_ID", help="Where the link starts.", show_default=False)]
TargetId = Annotated[str, typer.Argument(metavar="TO_ID", help="Where the link ends.", show_default=False)]


@takes(Link)
def link(
    source_id: SourceId,
    target_id: TargetId,
    given: Given,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Link two memories; linking again replaces the strength."""
    from recollect.servers.cli.render import one_line

    with open_store(store) as r:
        r.space(space).link(source_id, target_id, **given)
    made = Edge(source_id, target_id, **given)
    said = f"linked {source_id} -> {target_id} ({made.relation}, {made.strength:g})"
    show(made, lambda _: one_line(said), as_json=as_json)


def unlink(
    source_id: SourceId,
    target_id: TargetId,
    relation: Annotated[str | None, typer.Option(metavar="NAME", help="Only links of this relation.")] = None,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Remove the links from one memory to another."""
    from recollect.servers.cli.render import count

    with open_store(store) as r:
        removed = r.space(space).unlink(source_id, target_id, relation)
    show({"removed": removed}, lambda _: f"removed {count(removed, 'link')}", as_json=as_json)


@takes(Walk)
def neighbors(
    id: opt.Id,
    given: Given,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Show what a memory is linked to, the strongest path first."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        found = r.space(space).neighbors(id, **given)
    show(found, render.neighbors, as_json=as_json)
