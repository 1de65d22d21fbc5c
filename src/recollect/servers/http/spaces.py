"""Routes on spaces as a whole: which there are, what they hold, how they are used, what they share."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from recollect.engine.quality import Rated
from recollect.servers.http.access import Administering, Calling, Client, EmptyNote, Reading
from recollect.servers.http.answers import answer, document, ok
from recollect.servers.http.bodies import Acceptance, NewGrant
from recollect.types import Grant, SpaceStats, SpaceUsage

in_space = APIRouter(tags=["spaces"])
everywhere = APIRouter(tags=["spaces"])

ACCEPTED = document("Accepted", accepted=bool)
REVOKED = document("Revoked", revoked=bool)


@everywhere.get("/spaces", summary="The spaces you may see", responses=ok(list[str], "Their names."))
async def spaces(client: Client, caller: Calling) -> Response:
    """A token's own; or, to one for all spaces, those that hold something."""
    return answer(sorted(caller.pinned) or await client.spaces())


@in_space.get("/stats", summary="What a space holds", responses=ok(SpaceStats, "Counts.", note=True))
async def stats(space: Reading, empty: EmptyNote) -> Response:
    held = await space.stats()
    return answer(held, note="" if held.memories else await empty())


@in_space.get("/usage", summary="How a space is used", responses=ok(SpaceUsage, "Together, and by hours."))
async def usage(space: Reading, since: str | None = "7d") -> Response:
    """Recalls, and what each leg did for them, since a time or over a span such as 36h, 7d or 4w."""
    return answer(await space.usage(since))


@in_space.post("/score", summary="Give every memory its quality", responses=ok(Rated, "How many changed."))
async def score(space: Administering) -> Response:
    """By how often and how recently it proved useful. The server does it each hour by itself; this does it now."""
    return answer(await space.score())


@in_space.get("/grants", summary="What is shared", responses=ok(list[Grant], "With others, and by them."))
async def grants(space: Administering) -> Response:
    """What is not `accepted` yet is an offer, and shows nothing."""
    return answer(await space.grants())


@in_space.post("/grants", summary="Offer a namespace", responses=ok(Grant, "The grant, or the offer."))
async def grant(space: Administering, body: NewGrant) -> Response:
    """Let another space see a namespace of this one, or also change it, from when that space accepts until either side
    ends it.
    """
    return answer(await space.grant(**body.given()))


@in_space.delete("/grants", summary="Share it no longer", responses=ok(REVOKED, "Whether it was shared."))
async def revoke(space: Administering, namespace: str, to: str) -> Response:
    """It ends with the other space's next call."""
    return answer({"revoked": await space.revoke(namespace, to)})


@in_space.post(
    "/grants/received",
    summary="Accept an offer",
    responses=ok(ACCEPTED, "Whether there is such an offer."),
)
async def accept(space: Administering, body: Acceptance) -> Response:
    """See what another space offers to this one; from now on recalls look there."""
    offer = body.given()
    return answer({"accepted": await space.accept(offer["owner"], offer["namespace"])})


@in_space.delete("/grants/received", summary="See it no longer", responses=ok(REVOKED, "Whether one could."))
async def refuse(space: Administering, owner: str, namespace: str) -> Response:
    """End what another space shares with this one, or refuse its offer."""
    return answer({"revoked": await space.refuse(owner, namespace)})


@everywhere.post("/sync", summary="Update external indexes now", responses=ok(dict[str, int], "Changes sent to each."))
async def sync(client: Client, caller: Calling) -> Response:
    """Otherwise this happens in the background. Needs a token that administers all spaces."""
    caller.must("admin")
    return answer(await client.sync())
