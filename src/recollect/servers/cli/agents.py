"""The command that agents start: mcp, the memory over the Model Context Protocol."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.errors import InvalidRequest
from recollect.servers.cli import options as opt
from recollect.servers.cli.options import again
from recollect.servers.cli.output import print_json

if TYPE_CHECKING:
    from recollect.servers.mcp.install import Installed


def client_names() -> list[str]:
    """What Tab offers after `--install`."""
    from recollect.servers.mcp.install import CLIENTS

    return list(CLIENTS)


def mcp(
    context: typer.Context,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no tool that changes anything.")] = False,
    install: Annotated[
        str | None,
        typer.Option(
            "--install",
            metavar="CLIENT",
            help="Show the configuration for claude, cursor or vscode.",
            autocompletion=client_names,
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Put it into the client's file, instead.")] = False,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Which file.", show_default="the client's own")
    ] = None,
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Serve one space to an agent over MCP, on standard input and output."""
    from recollect.limits import check_name

    check_name("space", space)
    if install is None and (write or file is not None):
        raise InvalidRequest("--write and --file need --install: name the client, such as --install claude")
    if install is not None:
        onward = again(context, write=True)
        _install(install, space, store, embedder, onward, read_only=read_only, write=write, file=file, as_json=as_json)
        return
    from recollect.servers.mcp.stdio import serve
    from recollect.settings import Settings

    if sys.stdin.isatty():
        typer.echo("This waits for an agent, not for you: `--install` tells one of it. Ctrl-C ends it.", err=True)
    serve(Settings.load(url=store, embedder=embedder), space, read_only=read_only)


def _install(
    name: str,
    space: str,
    store: str | None,
    embedder: str | None,
    onward: str,
    *,
    read_only: bool,
    write: bool,
    file: Path | None,
    as_json: bool,
) -> None:
    from recollect.servers.mcp import install as installing

    if (client := installing.CLIENTS.get(name)) is None:
        raise typer.BadParameter(f"{name!r} is not one of: {', '.join(installing.CLIENTS)}.", param_hint="--install")
    configuration = client.configuration(installing.entry(space, store, embedder, read_only=read_only))
    path = file or client.file
    if write:
        _show(installing.install(configuration, path), as_json=as_json)
    elif as_json:
        print_json({"file": str(path), "configuration": configuration})
    else:
        typer.echo(json.dumps(configuration, indent=2))
        typer.echo(f"This goes into {path}; `{onward}` puts it there.", err=True)


def _show(installed: Installed, *, as_json: bool) -> None:
    """Which file holds the configuration now, and what became of the one before."""
    backup = None if installed.backup is None else str(installed.backup)
    if as_json:
        print_json({"file": str(installed.file), "changed": installed.changed, "backup": backup})
    elif not installed.changed:
        typer.echo(f"{installed.file} has it already")
    else:
        typer.echo(f"{installed.file} has it now" + (f"; as it was before: {backup}" if backup else ""))
