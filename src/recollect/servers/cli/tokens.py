"""Commands on who may call a server: token create, token list, token revoke."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.errors import NotFound
from recollect.options import NewToken
from recollect.servers.cli import options as opt
from recollect.servers.cli.options import Given, open_store, takes
from recollect.servers.cli.output import console, hint, print_json, show

TokenId = Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `token list` shows it.")]


def token(context: typer.Context) -> None:
    """Make, list and revoke the tokens that servers are called with."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@takes(NewToken)
def create(
    given: Given,
    all_spaces: Annotated[bool, typer.Option("--all-spaces", help="For all spaces, those to come too.")] = False,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Make a token and show its secret, this once: only a hash of it is kept."""
    from recollect.servers.cli.render_tokens import issued

    if bool(given.get("spaces")) == all_spaces:
        raise typer.BadParameter("give either --space or --all-spaces.", param_hint="--space")
    with open_store(store, create=True) as r:
        made = r.tokens.create(**given)
    if as_json:
        print_json(made)
    else:
        console().print(issued(made), soft_wrap=True)  # a secret that was broken into two lines could not be copied
        hint("from now on every caller of a server on this store needs a token, also on this machine")


def list_(
    space: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those for this space.", show_default="all of them")
    ] = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """List the tokens, those that have ended too; never their secrets."""
    from recollect.servers.cli.render_tokens import listed

    with open_store(store) as r:
        known = r.tokens.list(space)
    show(known, listed, as_json=as_json)


def revoke(id: TokenId, store: opt.Store = None, as_json: opt.Json = False) -> None:
    """End a token; servers refuse it from its next call on."""
    with open_store(store) as r:
        revoked = r.tokens.revoke(id)
    if not revoked:  # what was given is not repeated: it may be a secret
        raise NotFound("no token in force has this id; see `recollect token list`")
    show({"id": id}, lambda _: f"token {id} is revoked", as_json=as_json)
