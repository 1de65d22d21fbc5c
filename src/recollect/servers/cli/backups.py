"""Commands on backups: write one, and bring one back."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.servers.cli import options as opt
from recollect.servers.cli.options import open_store
from recollect.servers.cli.output import show
from recollect.servers.cli.transfer import following, show_copied


def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to write, a store of its own.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Write all that a store holds at this moment to a file, while others use it, and check what was written."""
    from recollect.servers.cli.render import count, one_line

    with open_store(store) as r, following("writing") as follow:
        done = r.backup(file, force=force, on_progress=follow)
    memories, spaces = count(done.memories, "memory", "memories"), count(len(done.spaces), "space")
    show(done, lambda _: one_line(f"wrote {memories} of {spaces} to {done.file}, and checked them"), as_json=as_json)


def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file that `recollect backup FILE` wrote.")],
    space: Annotated[
        list[str] | None,
        typer.Option("--space", metavar="NAME", help="Only this space; repeatable.", show_default="all"),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Add to spaces that hold other memories; those stay as they are.")
    ] = False,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Bring a backup back into a store, whole or by spaces, and compare the two. Can be run again after a crash."""
    from recollect.sync import Recollect

    with following("restoring") as follow:
        copied = Recollect.restore(file, store, spaces=space, force=force, on_progress=follow)
    show_copied(copied, must_match=not force, as_json=as_json)
