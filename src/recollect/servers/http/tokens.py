"""Routes on tokens, for those who administer the spaces they are for."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from recollect.errors import NotFound
from recollect.servers.http.access import Calling, Client
from recollect.servers.http.answers import answer, ok
from recollect.servers.http.bodies import NewToken
from recollect.types import Issued, Token

router = APIRouter(tags=["tokens"])


@router.post("/tokens", summary="Make a token", status_code=201, responses=ok(Issued, "With its secret.", 201))
async def create(client: Client, caller: Calling, body: NewToken) -> Response:
    """The secret is in this answer and nowhere else."""
    wanted = body.given()
    caller.must_administer(wanted.get("spaces", ()))
    return answer(await client.tokens.create(**wanted), 201)


@router.get("/tokens", summary="The tokens you administer", responses=ok(list[Token], "Oldest first."))
async def list_(client: Client, caller: Calling, space: str | None = None) -> Response:
    """Those of a space, or of all your spaces; expired and revoked ones too."""
    caller.must_administer(caller.pinned if space is None else [space])
    return answer([token for token in await client.tokens.list(space) if caller.administers(token.spaces)])


@router.delete("/tokens/{id:name}", summary="Revoke a token", responses=ok(Token, "The token, revoked."))
async def revoke(client: Client, caller: Calling, id: str) -> Response:
    """It ends at once and for good."""
    caller.must_administer(caller.pinned)
    known = {token.id: token for token in await client.tokens.list() if caller.administers(token.spaces)}
    if id not in known or not await client.tokens.revoke(id):
        raise NotFound(f"no token in force that you administer has the id {id!r:.80}")
    return answer(next(token for token in await client.tokens.list() if token.id == id))
