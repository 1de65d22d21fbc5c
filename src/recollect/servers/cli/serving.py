"""The command that serves: HTTP, MCP and the dashboard on one port."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from recollect.servers.cli import options as opt
from recollect.servers.cli.output import print_json

MIB = 1024 * 1024


def serve(
    host: Annotated[str, typer.Option(metavar="HOST", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", help="On which port; 0: any that is free.", min=0, max=65535)
    ] = 8700,
    rate: Annotated[
        float, typer.Option(metavar="N", help="Calls a minute that one token may make; 0: any number.", min=0)
    ] = 6000,
    max_body: Annotated[
        float,
        typer.Option(
            metavar="MIB", help="How large a request may be; an import may have any size.", min=0.001, max=1_000_000
        ),
    ] = 8,
    grace: Annotated[
        int, typer.Option(metavar="S", help="Seconds that requests have to end when it stops.", min=0)
    ] = 10,
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Serve a store over HTTP: the API under /v1, MCP at /mcp, the dashboard at /.

    Without tokens it serves this machine alone; see `recollect token create`.
    """
    from recollect.client import AsyncRecollect
    from recollect.servers.gate.gate import Limits
    from recollect.servers.web import Address, run
    from recollect.settings import without_password

    client = AsyncRecollect(store, embedder=embedder)

    def listening(url: str) -> None:
        if as_json:
            print_json({"url": url, "store": without_password(client.url)})
            sys.stdout.flush()
        else:
            typer.echo(f"{without_password(client.url)} is served on {url}", err=True)

    run(client, Address(host, port, grace), Limits(body=int(max_body * MIB), rate=rate), listening)
