"""Commands on a store as a whole: doctor, migrate, stats, spaces."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.servers.cli import options as opt
from recollect.servers.cli.options import open_store
from recollect.servers.cli.output import show


def doctor(store: opt.Store = None, embedder: opt.EmbedderSpec = None, as_json: opt.Json = False) -> None:
    """Check that the store and the embedder work; the exit code is 1 when something does not."""
    from recollect.servers.cli import render

    with open_store(store, embedder) as r:
        diagnosis = r.doctor()
    document = {"ok": diagnosis.ok, "checks": diagnosis.checks}
    show(document, lambda _: render.diagnosis(diagnosis), as_json=as_json)
    if not diagnosis.ok:
        raise typer.Exit(1)


def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    row_security: Annotated[
        bool, typer.Option("--row-security", help="On Postgres: let the server keep spaces apart, too.")
    ] = False,
    words: Annotated[
        list[str] | None,
        typer.Option(
            "--words", metavar="CONFIGURATION", help="On Postgres: index texts by this configuration, too; repeatable."
        ),
    ] = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Make a store, or bring one that an earlier version wrote up to this version."""
    from recollect.client import Recollect
    from recollect.servers.cli import render

    steps = Recollect.migrate(store, dry_run=dry_run, row_security=row_security, words=words or ())
    show({"dry_run": dry_run, "steps": steps}, lambda _: render.migration(steps, dry_run=dry_run), as_json=as_json)


def stats(space: opt.SpaceName = "default", store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Count what a space holds."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        held = r.space(space).stats()
    show(held, render.stats, as_json=as_json)


def spaces(store: opt.Store = None, as_json: opt.Json = False) -> None:
    """List the spaces of a store."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        names = r.spaces()
    show(names, lambda _: "\n".join(map(render.one_line, names)) or "no spaces yet", as_json=as_json)
