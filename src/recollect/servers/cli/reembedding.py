"""The command that changes the embedding model: reembed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.errors import InvalidRequest, embedder_of
from recollect.servers.cli import options as opt
from recollect.servers.cli.options import open_store
from recollect.servers.cli.output import progress, show
from recollect.settings import with_store

if TYPE_CHECKING:
    from recollect.engine.reembed import Reembedded
    from recollect.ports import GenerationState


def reembed(
    embedder: Annotated[
        str | None, typer.Option("--embedder", metavar="SPEC", help="The embedder to change to.", show_default=False)
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="Embed at most N memories a second; without it, half of the time."),
    ] = None,
    back: Annotated[bool, typer.Option("--back", help="Return to the model before.")] = False,
    drop_old: Annotated[bool, typer.Option("--drop-old", help="Delete the vectors of models before.")] = False,
    abandon: Annotated[bool, typer.Option("--abandon", help="Give up a change that is not complete.")] = False,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Change a store to another embedding model while it is in use. Without an option: show its models.

    Recalls use the old vectors until the new ones are complete, and then switch in one step. A run that was cut off
    goes on when it is run again. The old vectors are kept for a week, so that you can go back.
    """
    if sum((back or embedder is not None, drop_old, abandon)) > 1:
        raise InvalidRequest("--drop-old and --abandon exclude each other, and neither goes with --embedder or --back")
    if rate is not None and embedder is None and not back:
        raise InvalidRequest("--rate says how fast to embed: name what to change to with --embedder, or add --back")
    with open_store(store) as r, progress() as bar:
        if drop_old or abandon:
            dropped = r.drop_vectors("old" if drop_old else "next")
            names = ", ".join(one.model for one in dropped) or "none"
            show({"dropped": dropped}, lambda _: f"vectors dropped: {names}", as_json=as_json)
        elif back or embedder is not None:
            task = bar.add_task("embedding", total=None)
            done = r.reembed(
                embedder,
                back=back,
                rate=rate,
                on_progress=lambda now: bar.update(task, completed=now.done, total=now.total),
            )
            show(done, lambda _: with_store(_done(done), r.url), as_json=as_json)
        else:
            states = r.generations()
            document = {"generations": [one._asdict() for one in states]}
            show(document, lambda _: _listed(states), as_json=as_json)


def _done(done: Reembedded) -> str:
    """What happened, and what is left to do."""
    model = done.generation.model
    if done.before in (None, done.generation):
        return f"the store's vectors are of {model}: nothing was changed"
    failed = sum(map(len, done.failed.values()))
    lacking = f"; {failed:,} could not be embedded" if failed else ""
    named = f", {embedder_of(model)}," if embedder_of(model) else ""
    return (
        f"{model} answers now ({done.embedded:,} memories embedded{lacking}). Name its embedder{named} in the settings "
        f"of everything that uses this store. The vectors of {done.before.model} are kept for a week: "
        f"`recollect reembed --back --embedder {embedder_of(done.before.model) or 'NAME'}` returns to them, "
        "`recollect reembed --drop-old` deletes them."
    )


def _listed(states: Sequence[GenerationState]) -> str:
    if not states:
        return "the store has no vectors yet"
    return "\n".join(f"{one.generation.model}: {one.state}, {one.vectors:,} vectors" for one in states)
