"""Routes on links: link, unlink, neighbors."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from recollect.servers.http import answers
from recollect.servers.http.access import Reading, Writing
from recollect.servers.http.bodies import Link
from recollect.servers.http.once import writes
from recollect.servers.http.openapi import ok
from recollect.servers.http.rendering import answer
from recollect.types import Edge

reads = APIRouter(tags=["links"])
changes = writes(tags=["links"])


@changes.post("/links", summary="Link two memories", responses=ok(answers.Edge, "The link as it is now."))
async def link(space: Writing, body: Link) -> Response:
    """Linking them again by the same relation changes the strength."""
    await space.link(body.source, body.target, body.relation, body.strength)
    return answer(Edge(body.source, body.target, body.relation, body.strength))


@changes.delete("/links", summary="Remove links", responses=ok(answers.Removed, "How many there were."))
async def unlink(space: Writing, source: str, target: str, relation: str | None = None) -> Response:
    """From one memory to another, by one relation or by every."""
    return answer({"removed": await space.unlink(source, target, relation)})


@reads.get("/neighbors", summary="What is linked to a memory", responses=ok(list[answers.Neighbor], "Strongest first."))
async def neighbors(space: Reading, id: str, depth: int = 1, limit: int = 20) -> Response:
    return answer(await space.neighbors(id, depth=depth, limit=limit))
