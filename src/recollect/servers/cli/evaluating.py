"""The command that measures: eval."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.servers.cli import options as opt
from recollect.servers.cli.options import recipe_names
from recollect.servers.cli.output import progress, show

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from recollect.evaluation.results import Result
    from recollect.evaluation.run import OnProgress, Progress


def eval_(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Judged sets: corpus.jsonl, queries.jsonl, qrels.tsv.")
    ],
    recipe: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A recipe to measure; repeatable.", autocompletion=recipe_names),
    ] = None,
    embedder: opt.EmbedderSpec = None,
    store: opt.EvalStore = None,
    as_json: opt.Json = False,
) -> None:
    """Measure how well recipes answer judged questions; several are compared with the first."""
    from recollect.evaluation.results import comparisons, to_json
    from recollect.servers.cli.render_eval import report

    with progress() as bar:
        results = asyncio.run(_evaluate(folders, recipe or ["balanced"], store, embedder, bar))
    if as_json:
        show(to_json(results), str, as_json=True)
    else:
        show(results, lambda found: report(found, comparisons(found)), as_json=False)


async def _evaluate(
    folders: list[Path], recipes: list[str], store: str | None, embedder: str | None, bar: Bar
) -> list[Result]:
    from recollect.evaluation.run import evaluate

    results = []
    for folder in folders:
        on_progress = _follow(bar)
        results += await evaluate(
            folder, recipes=recipes, store_url=store, embedder=embedder or "local", on_progress=on_progress
        )
    return results


def _follow(bar: Bar) -> OnProgress:
    """One bar for each stage of an evaluation, in the order they come."""
    tasks: dict[str, TaskID] = {}

    def follow(now: Progress) -> None:
        stage = f"{now.stage} {now.what}"
        if stage not in tasks:
            tasks[stage] = bar.add_task(stage, total=now.total)
        bar.update(tasks[stage], completed=now.done)

    return follow
