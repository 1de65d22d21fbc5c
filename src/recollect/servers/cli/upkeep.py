"""Commands on a store as a whole: doctor, migrate, stats, score, spaces."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from recollect.servers.cli import options as opt
from recollect.servers.cli.options import open_store
from recollect.servers.cli.output import hint, progress, show
from recollect.servers.documents import json_ready
from recollect.servers.empty import empty_note
from recollect.settings import with_store


def doctor(store: opt.Store = None, embedder: opt.EmbedderSpec = None, as_json: opt.Json = False) -> None:
    """Check that the store, the embedder and the reranker work; the exit code is 1 when something does not."""
    from recollect.servers.cli import render

    with open_store(store, embedder) as r:
        found = r.doctor()
        checks = tuple(replace(check, detail=with_store(check.detail, r.url)) for check in found.checks)
        diagnosis = replace(found, checks=checks)
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
    from recollect.servers.cli import render
    from recollect.sync import Recollect

    outcome = Recollect.migrate(store, dry_run=dry_run, row_security=row_security, words=words or ())
    document = {"dry_run": dry_run, **outcome._asdict()}
    show(document, lambda _: render.migration(outcome, dry_run=dry_run), as_json=as_json)


def stats(
    since: Annotated[
        str, typer.Option("--since", metavar="WHEN", help="How it was used since then: 36h, 7d, yesterday, 2026-05-03.")
    ] = "7d",
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Count what a space holds, and show how it was used: recalls, and what each leg found for them."""
    from recollect.servers.cli import render_stats

    with open_store(store) as r:
        here = r.space(space)
        held, used = here.stats(), here.usage(since)
        note = "" if held.memories else empty_note(space, r.spaces())
    document = {**json_ready(held), "usage": used}
    show(document, lambda _: render_stats.stats(held, used), as_json=as_json)
    hint(note)


def score(space: opt.SpaceName = "default", store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Give every memory its quality, by how often and how recently it proved useful.

    A memory that is in use does this by itself once a day, and a server once an hour.
    """
    from recollect.servers.cli import render_stats

    with open_store(store) as r, progress() as bar:
        here = r.space(space)
        task = bar.add_task("scoring", total=here.stats().memories)
        rated = here.score(on_progress=lambda done: bar.update(task, completed=done))
        note = "" if rated.memories else empty_note(space, r.spaces())
    show(rated, render_stats.rated, as_json=as_json)
    hint(note)


def spaces(store: opt.Store = None, as_json: opt.Json = False) -> None:
    """List the spaces of a store."""
    from recollect.servers.cli import render

    with open_store(store) as r:
        names = r.spaces()
    show(names, lambda _: "\n".join(map(render.one_line, names)) or "no spaces yet", as_json=as_json)
