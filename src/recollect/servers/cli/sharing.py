"""Commands on what spaces let each other see: grant, revoke, accept, refuse, grants."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.errors import NotFound
from recollect.options import NewGrant
from recollect.servers.cli import options as opt
from recollect.servers.cli.options import Given, open_store, takes
from recollect.servers.cli.output import show
from recollect.types import Grant

MAY = {"read": "may read", "write": "may read and write"}

Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", help="Which division of the space.")]
TheirNamespace = Annotated[str, typer.Argument(metavar="NAMESPACE", help="Which division of the other space.")]
Other = Annotated[str, typer.Argument(metavar="SPACE", help="The other space.")]


@takes(NewGrant)
def grant(
    namespace: Namespace,
    to: Other,
    given: Given,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Offer another space to see a namespace of this one, or to change it; it does once it accepts."""
    with open_store(store, create=True) as r:
        made = r.space(space).grant(namespace, to, **given)
    show(made, granted, as_json=as_json)


def revoke(
    namespace: Namespace,
    from_: Other,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Take a grant back; it ends with the other space's next call."""
    with open_store(store) as r:
        revoked = r.space(space).revoke(namespace, from_)
    _show_ended(revoked, Grant(space, namespace, from_), as_json=as_json)


def accept(
    namespace: TheirNamespace,
    offered_by: Other,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Accept what another space offers to this one; recalls find it from now on."""
    with open_store(store) as r:
        here = r.space(space)
        if not here.accept(offered_by, namespace):
            raise _not_granted(Grant(offered_by, namespace, space))
        accepted = next(
            one for one in here.grants() if (one.space, one.namespace, one.to) == (offered_by, namespace, space)
        )
    show(accepted, granted, as_json=as_json)


def refuse(
    namespace: TheirNamespace,
    granted_by: Other,
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """End what another space has granted or offered to this one; it is no longer searched."""
    with open_store(store) as r:
        refused = r.space(space).refuse(granted_by, namespace)
    _show_ended(refused, Grant(granted_by, namespace, space), as_json=as_json)


def granted(grant: Grant) -> str:
    """Who may do what where, or could."""
    from recollect.servers.cli.render import one_line

    may = f"{grant.to} {MAY[grant.access]} {grant.namespace} of {grant.space}"
    return one_line(may if grant.accepted else f"offered, not accepted yet: {may}")


def _show_ended(ended: bool, grant: Grant, *, as_json: bool) -> None:
    """What became of a grant that was to end."""
    from recollect.servers.cli.render import one_line

    owner, namespace, other = grant.space, grant.namespace, grant.to
    if not ended:
        raise _not_granted(grant)
    document = {"space": owner, "namespace": namespace, "to": other}
    show(document, lambda _: one_line(f"{other} no longer sees {namespace} of {owner}"), as_json=as_json)


def _not_granted(grant: Grant) -> NotFound:
    return NotFound(
        f"space {grant.space!r} has not granted namespace {grant.namespace!r} to space {grant.to!r}; see `grants`"
    )


def grants(space: opt.SpaceName = "default", store: opt.Store = None, as_json: opt.Json = False) -> None:
    """List what a space lets others see, what others let it see, and what is offered."""
    with open_store(store) as r:
        known = r.space(space).grants()
    show(known, lambda _: "\n".join(map(granted, known)) or "no grants", as_json=as_json)
