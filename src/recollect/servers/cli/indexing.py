"""Commands on external indexes: sync, rebuild."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.servers.cli import options as opt
from recollect.servers.cli.options import open_store
from recollect.servers.cli.output import progress, show


def sync(store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Bring the external indexes up to date now, and show how far they lagged."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        before = r.lag()
        told = r.sync()
        after = r.lag()
    document = {
        name: {"waited": before[name].waiting, "since": before[name].since, "told": told[name], "waiting": lag.waiting}
        for name, lag in after.items()
    }
    show(document, lambda _: render.sync(document), as_json=as_json)


def rebuild(
    index: Annotated[str, typer.Argument(help="Which one: qdrant or falkordb.")],
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Make an external index anew from the store, while reads go on."""
    with open_store(store) as r, progress() as bar:
        task = bar.add_task(f"rebuilding {index}", total=None)
        memories = r.rebuild(index, on_progress=lambda done: bar.update(task, completed=done))
    show({"index": index, "memories": memories}, lambda _: f"{index} holds {memories:,} memories", as_json=as_json)
