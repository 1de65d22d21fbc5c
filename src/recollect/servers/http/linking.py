"""Routes on links: link, unlink, neighbors."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from recollect.servers.http.access import Reading, Writing
from recollect.servers.http.answers import answer, document, ok
from recollect.servers.http.bodies import Link, Walk
from recollect.servers.http.once import writes
from recollect.types import Edge, Neighbor

reads = APIRouter(tags=["links"])
changes = writes(tags=["links"])


@changes.post("/links", summary="Link two memories", responses=ok(Edge, "The link as it is now."))
async def link(space: Writing, body: Link) -> Response:
    """Linking them again by the same relation changes the strength."""
    link = Edge(**body.given())
    await space.link(link.source, link.target, link.relation, link.strength)
    return answer(link)


@changes.delete(
    "/links", summary="Remove links", responses=ok(document("Removed", removed=int), "How many there were.")
)
async def unlink(space: Writing, source: str, target: str, relation: str | None = None) -> Response:
    """From one memory to another, by one relation or by every."""
    return answer({"removed": await space.unlink(source, target, relation)})


@reads.get("/neighbors", summary="What is linked to a memory", responses=ok(list[Neighbor], "Strongest first."))
async def neighbors(space: Reading, query: Annotated[Walk, Query()]) -> Response:
    return answer(await space.neighbors(**query.given()))
