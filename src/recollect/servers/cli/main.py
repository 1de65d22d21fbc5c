"""`recollect`: the commands, in the order and groups that `--help` shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from recollect.servers.cli import (
    agents,
    backups,
    configuring,
    demo,
    evaluating,
    indexing,
    linking,
    records,
    reembedding,
    searching,
    serving,
    sharing,
    tokens,
    transfer,
    upkeep,
)
from recollect.servers.cli.examples import example_of
from recollect.servers.cli.failures import Command, Commands

GROUPS: dict[str, tuple[Callable[..., Any], ...]] = {
    "Start here": (demo.demo, upkeep.doctor, configuring.config),
    "Remember and recall": (
        records.remember,
        searching.recall,
        records.get,
        records.list_,
        records.update,
        records.supersede,
        records.history,
        records.used,
        records.forget,
    ),
    "Links": (linking.link, linking.unlink, linking.neighbors),
    "Sharing": (sharing.grant, sharing.revoke, sharing.accept, sharing.refuse, sharing.grants),
    "The whole memory": (
        transfer.import_,
        transfer.export,
        transfer.copy,
        backups.backup,
        backups.restore,
        upkeep.spaces,
        upkeep.stats,
        upkeep.score,
        upkeep.migrate,
        reembedding.reembed,
    ),
    "Servers": (serving.serve, agents.mcp),
    "External indexes": (indexing.sync, indexing.rebuild),
    "How good is it": (searching.recipes, evaluating.eval_, evaluating.tune),
}
TOKENS: tuple[Callable[..., Any], ...] = (tokens.create, tokens.list_, tokens.revoke)

app = typer.Typer(
    name="recollect",
    cls=Commands,
    help="The memory AI agents can trust: recall by meaning, words and links, in one file.",
    epilog="Errors are one sentence on standard error; the exit code is 1, or 2 for a wrong call.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for group, functions in GROUPS.items():
    for function in functions:
        name = function.__name__.strip("_")
        app.command(name, cls=Command, rich_help_panel=group, epilog=example_of(name))(function)

token = typer.Typer(cls=Commands, callback=tokens.token, invoke_without_command=True)
for function in TOKENS:
    name = function.__name__.strip("_")
    token.command(name, cls=Command, epilog=example_of(f"token {name}"))(function)
app.add_typer(token, name="token", rich_help_panel="Servers")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"recollect {version('recollect')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback acts before any command is looked at
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run() -> None:
    """What the `recollect` script calls."""
    app(prog_name="recollect")
