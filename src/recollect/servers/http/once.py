"""Writes with an `Idempotency-Key`: run once, however often they are sent, and answered the same each time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum
from hashlib import sha256
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from recollect.errors import InvalidRequest, RecollectError
from recollect.servers.http.access import client_of, enter
from recollect.servers.http.answers import HEADERS, refusal
from recollect.servers.problems import problem
from recollect.types import Reply

KEY = "Idempotency-Key"
REPLAYED = {"Idempotency-Replayed": "true"}

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Key = Annotated[
    str | None,
    Header(description="A key of your own for this request: sent again with it, it is answered again, and not run."),
]


async def _documented(idempotency_key: Key = None) -> None:
    """The header is read by the route itself, before anything else; this is what the OpenAPI document shows of it."""


class OnceRoute(APIRoute):
    """A route in a space whose answers are kept under the key that a request carries."""

    def get_route_handler(self) -> Handler:
        run = super().get_route_handler()

        async def once(request: Request) -> Response:
            key = request.headers.get(KEY)
            return await run(request) if key is None else await run_once(request, key, run)

        return once


def writes(tags: list[str | Enum]) -> APIRouter:
    """A router for what changes a space."""
    return APIRouter(tags=tags, route_class=OnceRoute, dependencies=[Depends(_documented)])


async def run_once(request: Request, key: str, run: Handler) -> Response:
    """Run a request, or say what it was answered with. Who may not write there is refused before either."""
    space = (await enter(request, "write", request.path_params["space"])).name
    replies = (await client_of(request)).replies
    mark = await fingerprint(request)
    known = await replies.claim(space, key, mark)
    if known is not None:
        return replay(known, key, mark)
    try:
        response = await run(request)
    except BaseException:  # whatever it was, the request came to nothing
        await replies.release(space, key)
        raise
    with suppress(RecollectError):  # what was done is done, and is answered, even if it could not be noted
        await replies.reply(space, key, response.status_code, bytes(response.body))
    return response


def replay(known: Reply, key: str, mark: str) -> Response:
    """The answer of an earlier request with the same key."""
    if known.fingerprint != mark:
        raise InvalidRequest(f"the idempotency key {key!r} was used for another request: choose a new one for this")
    if known.status is None:
        detail = f"the request with idempotency key {key!r} is still under way: send it again in a moment"
        return refusal(problem(HTTPStatus.CONFLICT, detail, Retry_After="1"))
    return Response(known.body, known.status, {**HEADERS, **REPLAYED}, "application/json")


async def fingerprint(request: Request) -> str:
    """What makes two requests the same: method, target and body."""
    first = f"{request.method} {request.url.path}?{request.url.query}\n".encode("utf-8", "surrogateescape")
    return sha256(first + await request.body()).hexdigest()
