"""*Spaces and tokens*, for those who administer some: what spaces hold, and who may reach them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from starlette.responses import Response

from recollect.errors import InvalidRequest, NotFound, RecollectError
from recollect.servers.dashboard.shell import Visit, go
from recollect.servers.problems import problem_of
from recollect.types import SCOPES, Issued, Scope, SpaceStats, Token

EXPIRIES = {"7d": "in a week", "30d": "in 30 days", "90d": "in 90 days", "365d": "in a year", "": "never"}
SHOWN = 200
"""How many spaces are shown with what they hold."""


async def show(visit: Visit) -> Response:
    """The spaces and the tokens that the caller administers."""
    return await overview(visit)


async def create(visit: Visit) -> Response:
    """Make a token. Its secret is on the page that answers, and nowhere else."""
    form = await visit.form()
    try:
        spaces = spaces_of(form)
        visit.caller.must_administer(spaces)
        issued = await visit.client.tokens.create(
            spaces=spaces,
            scope=cast("Scope", form.get("scope", ["read"])[0]),  # the library checks it
            name=form.get("name", [""])[0].strip(),
            expires=form.get("expires", [""])[0] or None,
        )
    except InvalidRequest as error:
        return await overview(visit, error=error)
    return await overview(visit, issued=issued)


async def revoke(visit: Visit) -> Response:
    """From now on the token opens nothing."""
    id = (await visit.form()).get("id", [""])[0]
    token = next((one for one in await administered(visit) if one.id == id), None)
    if token is None:
        raise NotFound(f"no token that you administer has the id {id!r:.80}")
    await visit.client.tokens.revoke(id)
    return go("/spaces#tokens")


async def overview(visit: Visit, issued: Issued | None = None, error: RecollectError | None = None) -> Response:
    caller = visit.caller
    names = await visit.spaces()
    caller.must("admin", next(iter(caller.pinned), None))
    return visit.page(
        "spaces.html",
        problem_of(error).status if error else 200,
        names=names,
        held=await holdings(visit, names[:SHOWN]),
        tokens=await administered(visit),
        everywhere=caller.may("admin"),
        required=await visit.client.tokens.required(),
        issued=issued,
        error=error,
        scopes=SCOPES,
        expiries=EXPIRIES,
        now=datetime.now(UTC),
    )


async def holdings(visit: Visit, names: Sequence[str]) -> list[SpaceStats]:
    return [await visit.client.space(name).stats() for name in names]


async def administered(visit: Visit) -> list[Token]:
    """The tokens that the caller may revoke, newest first."""
    tokens = [token for token in await visit.client.tokens.list() if visit.caller.administers(token.spaces)]
    return sorted(tokens, key=lambda token: token.created_at, reverse=True)


def spaces_of(form: Mapping[str, list[str]]) -> list[str]:
    """The spaces that a form names; none for all of them, which it must say."""
    if form.get("reach") == ["all"]:
        return []
    if not (spaces := [name for name in (one.strip() for one in form.get("space", [])) if name]):
        raise InvalidRequest("no space was named: pick some, or say that the token is for all of them")
    return spaces
