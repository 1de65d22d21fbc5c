"""Routes on memories: remember, list, get, history, update, forget, used, supersede."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from recollect.engine.remember import Ingested
from recollect.errors import NotFound
from recollect.servers.http.access import EmptyNote, Id, Reading, Writing
from recollect.servers.http.answers import answer, document, ok, shape
from recollect.servers.http.bodies import Changes, Listing, OneOrMany, Supersession, Uses
from recollect.servers.http.once import writes
from recollect.types import Draft, Memory, Page, Remembered

reads = APIRouter(tags=["memories"])
changes = writes(tags=["memories"])

COPY_OR_MANY = {"model": shape(Remembered | Ingested), "description": "An exact copy was there; or many."}


@changes.post(
    "/memories",
    summary="Remember one text, or many",
    status_code=201,
    responses={**ok(Remembered, "The memory, new.", 201), 200: COPY_OR_MANY},
)
async def remember(space: Writing, body: OneOrMany) -> Response:
    """An exact copy is not stored twice. Of a list, memories are stored in batches: when one is refused, those before
    it may be there already, and sending the list again makes no copies.
    """
    if isinstance(body, list):
        return answer(await space.remember_many(Draft(**one.given()) for one in body))
    fields = body.given()
    remembered = await space.remember(fields.pop("text"), **fields)
    return answer(remembered, 201 if remembered.created else 200)


@reads.get(
    "/memories", summary="List memories, oldest or newest first", responses=ok(Page, "A page of them.", note=True)
)
async def list_(space: Reading, query: Annotated[Listing, Query()], empty: EmptyNote) -> Response:
    page = await space.list(**query.given())
    return answer(page, note="" if page.memories else await empty())


@reads.get("/memories/{id:name}", summary="Get one memory", responses=ok(Memory, "The memory."))
async def get(space: Reading, id: Id, empty: EmptyNote) -> Response:
    try:
        return answer(await space.get(id))
    except NotFound as error:
        raise NotFound("; ".join(filter(None, (str(error), await empty())))) from None


@reads.get("/memories/{id:name}/history", summary="Its versions", responses=ok(list[Memory], "Oldest first."))
async def history(space: Reading, id: Id) -> Response:
    """What it replaced, itself, and what replaced it."""
    return answer(await space.history(id))


@changes.patch("/memories/{id:name}", summary="Change some fields", responses=ok(Memory, "As it is now."))
async def update(space: Writing, id: Id, body: Changes) -> Response:
    return answer(await space.update(id, **body.given()))


@changes.delete(
    "/memories/{id:name}",
    summary="Delete it for good",
    responses=ok(document("Forgotten", forgotten=int), "It is gone."),
)
async def forget(space: Writing, id: Id) -> Response:
    forgotten = await space.forget(id)
    if not forgotten:
        raise NotFound(f"space {space.name!r} holds no memory {id!r}")
    return answer({"forgotten": forgotten})


@changes.post(
    "/used", summary="They were of use", responses=ok(document("Used", used=int), "How many of them there are.")
)
async def used(space: Writing, body: Uses) -> Response:
    """What was of use ranks as better than what was only returned, which counts a tenth of it."""
    given = body.given()
    return answer({"used": await space.used(*given.pop("ids"), **given)})


@changes.post("/supersede", summary="Replace a memory", responses=ok(Memory, "The memory that holds now."))
async def supersede(space: Writing, body: Supersession) -> Response:
    """The old one is kept, and no longer recalled."""
    fields = body.given()
    return answer(await space.supersede(fields.pop("old"), **fields))
