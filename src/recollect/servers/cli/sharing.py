"""Commands on what spaces let each other see: grant, revoke, refuse, grants."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from recollect.errors import NotFound
from recollect.servers.cli import options as opt
from recollect.servers.cli.options import open_store
from recollect.servers.cli.output import show

Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", help="Which division of the space.")]
Other = Annotated[str, typer.Argument(metavar="SPACE", help="The other space.")]


def grant(
    namespace: Namespace,
    to: Other,
    access: Annotated[
        Literal["read", "write"], typer.Option(metavar="read|write", help="To see it, or also to change it.")
    ] = "read",
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Let another space see a namespace of this one, or change it, until that is revoked."""
    from recollect.servers.cli.render_sharing import granted

    with open_store(store, create=True) as r:
        made = r.space(space).grant(namespace, to, access)
    show(made, granted, as_json=as_json)


def revoke(
    namespace: Namespace,
    from_: Other,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Take a grant back; it ends with the other space's next call."""
    from recollect.servers.cli.render import one_line

    with open_store(store) as r:
        revoked = r.space(space).revoke(namespace, from_)
    if not revoked:
        raise NotFound(f"space {space!r} has not granted namespace {namespace!r} to space {from_!r}; see `grants`")
    document = {"space": space, "namespace": namespace, "to": from_}
    show(document, lambda _: one_line(f"{from_} no longer sees {namespace} of {space}"), as_json=as_json)


def refuse(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="Which division of the other space.")],
    granted_by: Other,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """End what another space has granted to this one; it is no longer searched."""
    from recollect.servers.cli.render import one_line

    with open_store(store) as r:
        ended = r.space(space).refuse(granted_by, namespace)
    if not ended:
        raise NotFound(f"space {granted_by!r} has not granted namespace {namespace!r} to space {space!r}; see `grants`")
    document = {"space": granted_by, "namespace": namespace, "to": space}
    show(document, lambda _: one_line(f"{space} no longer sees {namespace} of {granted_by}"), as_json=as_json)


def grants(space: opt.SpaceName = "default", store: opt.Store = None, as_json: opt.Json = False) -> None:
    """List what a space lets others see, and what others let it see."""
    from recollect.servers.cli.render_sharing import granted

    with open_store(store) as r:
        known = r.space(space).grants()
    show(known, lambda _: "\n".join(map(granted, known)) or "no grants", as_json=as_json)
