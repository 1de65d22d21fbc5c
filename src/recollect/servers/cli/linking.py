"""Commands on links: link, unlink, neighbors."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.servers.cli import options as opt
from recollect.servers.cli.options import open_store
from recollect.servers.cli.output import show

SourceId = Annotated[str, typer.Argument(metavar="FROM_ID", help="Where the link starts.", show_default=False)]
TargetId = Annotated[str, typer.Argument(metavar="TO_ID", help="Where the link ends.", show_default=False)]


def link(
    source_id: SourceId,
    target_id: TargetId,
    relation: Annotated[str, typer.Option(metavar="NAME", help="What the link means.")] = "related",
    strength: Annotated[float, typer.Option(metavar="S", help="How strong it is: above 0, up to 1.")] = 1.0,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Link two memories; linking again replaces the strength."""
    from recollect.servers.cli.render import one_line

    with open_store(store) as r:
        r.space(space).link(source_id, target_id, relation=relation, strength=strength)
    made = {"source": source_id, "target": target_id, "relation": relation, "strength": strength}
    show(made, lambda _: one_line(f"linked {source_id} -> {target_id} ({relation}, {strength:g})"), as_json=as_json)


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


def neighbors(
    id: opt.Id,
    depth: Annotated[int, typer.Option(metavar="N", help="How many steps to walk: 1 to 3.")] = 1,
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most.")] = 20,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Show what a memory is linked to, the strongest path first."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        found = r.space(space).neighbors(id, depth=depth, limit=limit)
    show(found, render.neighbors, as_json=as_json)
