"""The commands that measure: eval, tune."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.servers.cli import options as opt
from recollect.servers.cli.options import recipe_names
from recollect.servers.cli.output import progress, show
from recollect.settings import FILE

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
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence",
            help="Also measure whether confidence can be relied on. Questions of the other folders are off topic.",
        ),
    ] = False,
    embedder: opt.EmbedderSpec = None,
    store: opt.EvalStore = None,
    as_json: opt.Json = False,
) -> None:
    """Measure how well recipes answer judged questions; several are compared with the first."""
    from recollect.evaluation.results import comparisons, to_json
    from recollect.servers.cli.render_eval import report

    with progress() as bar:
        results = asyncio.run(_evaluate(folders, recipe or ["balanced"], store, embedder, bar, confidence=confidence))
    if as_json:
        show(to_json(results), str, as_json=True)
    else:
        show(results, lambda found: report(found, comparisons(found)), as_json=False)


def tune(
    folder: Annotated[
        Path | None, typer.Argument(help="Judged questions of your own: corpus.jsonl, queries.jsonl, qrels.tsv.")
    ] = None,
    from_use: Annotated[
        bool, typer.Option("--from-use", help="Judge by the questions of a space that led to a use, with no folder.")
    ] = False,
    recipe: Annotated[
        str, typer.Option(metavar="NAME", help="The recipe to start from.", autocompletion=recipe_names)
    ] = "balanced",
    name: Annotated[str, typer.Option(help="The name of the new recipe.")] = "tuned",
    error: Annotated[float, typer.Option(help="The share of right answers that may be below the threshold.")] = 0.1,
    write: Annotated[bool, typer.Option("--write", help="Write the recipe to recollect.toml in this folder.")] = False,
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.EvalStore = None,
    as_json: opt.Json = False,
) -> None:
    """Fit a recipe to your own judged questions, as far as they prove anything.

    With --from-use, --store is where the memories live, and --space whose they are. The questions are asked of a copy.
    """
    from rich.text import Text

    from recollect.evaluation.tune import as_toml, check_new_name, tune_from_use, write_recipe
    from recollect.evaluation.tune import tune as fit

    if from_use == (folder is not None):
        raise typer.BadParameter("give either a folder of judged questions or --from-use.", param_hint="FOLDER")
    check_new_name(name, recipe)
    with progress() as bar:
        how: Any = {
            "base": recipe,
            "error": error,
            "embedder": embedder,
            "store_url": store,
            "on_progress": _follow(bar),
        }
        tuned = asyncio.run(tune_from_use(space, **how) if folder is None else fit(folder, **how))
    table = as_toml(name, tuned) if tuned.changes or tuned.threshold is not None else ""
    file = Path(FILE).absolute()
    if write and table:
        write_recipe(file, name, table)
    if as_json:
        show({**tuned.to_json(), "written": str(file) if write and table else None}, str, as_json=True)
        return
    told = f"wrote [recipe.{name}] to {file}" if table else "nothing is proven, so nothing was written"
    lines = [*tuned.said, table, *([told] if write else [])]
    show(tuned, lambda _: Text("\n".join(line for line in lines if line)), as_json=False)


async def _evaluate(
    folders: list[Path], recipes: list[str], store: str | None, embedder: str | None, bar: Bar, *, confidence: bool
) -> list[Result]:
    from recollect.evaluation.run import evaluate, questions_of

    results = []
    for folder in folders:
        on_progress = _follow(bar)
        others = [question for other in folders if other != folder for question in questions_of(other)]
        results += await evaluate(
            folder,
            recipes=recipes,
            store_url=store,
            embedder=embedder or "local",
            off_topic=others if confidence else None,
            on_progress=on_progress,
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
