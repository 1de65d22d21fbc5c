"""`/mcp` on the server: streamable HTTP, each request by itself, so that any of several processes can answer it.

The gate in front has found out who calls (`scope["state"]["caller"]`), has checked Host and Origin, and bounds bodies.
"""

from __future__ import annotations

import json
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INVALID_PARAMS, PARSE_ERROR
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Send
from starlette.types import Scope as ASGIScope

from recollect.client import AsyncRecollect
from recollect.errors import InvalidRequest
from recollect.servers.caller import Caller, caller_in
from recollect.servers.empty import note_for
from recollect.servers.mcp.server import Context, server
from recollect.servers.problems import MEDIA_TYPE, problem
from recollect.space import AsyncSpace
from recollect.types import Scope

SPACE_HEADER = "X-Recollect-Space"
VALUES = 10_000
"""Of a message, beside the arguments of a tool."""
NO_MESSAGE = "this is not a JSON-RPC message: send one JSON object with jsonrpc, id, method and params"
ANY_SIZE = sys.maxsize
"""Bytes of a body: the gate has bounded them already."""


@dataclass(frozen=True, slots=True)
class Guest:
    """The sender of one request, in the space that its token or its URL names."""

    client: AsyncRecollect
    caller: Caller
    name: str

    def may(self, scope: Scope) -> bool:
        return self.caller.may(scope, self.name)

    def must(self, scope: Scope) -> None:
        self.caller.must(scope, self.name)

    async def space(self) -> AsyncSpace:
        return self.client.space(self.name)

    async def empty_note(self) -> str:
        return await note_for(self.caller, self.client, self.name)


class Application:
    """The ASGI application of `/mcp`. It answers within `async with application.running()`."""

    def __init__(self, client: AsyncRecollect) -> None:
        def admit(context: Context) -> Guest:
            request = cast("Request", context.request)  # there is one: this server speaks HTTP
            caller = caller_in(request.state)
            return Guest(client, caller, space_of(request, caller))

        self._sessions = StreamableHTTPSessionManager(
            server(admit), json_response=True, stateless=True, max_request_body_size=ANY_SIZE
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """What has to be open while requests are answered, once in a server's life."""
        return self._sessions.run()

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Without sessions there is nothing to listen to by GET, and nothing to end by DELETE."""
        if scope["method"] != "POST":
            refusal = problem(HTTPStatus.METHOD_NOT_ALLOWED, "MCP requests are sent here by POST", Allow="POST")
            await Response(refusal.body, refusal.status, refusal.headers, MEDIA_TYPE)(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        if is_too_wide(body):
            refusal = problem(
                HTTPStatus.UNPROCESSABLE_ENTITY, f"the message holds more than {VALUES:,} values: send less"
            )
            await Response(refusal.body, refusal.status, refusal.headers, MEDIA_TYPE)(scope, receive, send)
            return
        await self._sessions.handle_request(scope, replaying(body, receive), in_our_words(send))


def is_too_wide(body: bytes) -> bool:
    """Whether a message holds too many values beside a tool's arguments, which are checked by themselves: each of them
    could be a mistake, and the protocol's own reader collects all mistakes.
    """
    try:
        message = from_json(body)
    except ValueError:  # the protocol's own reader says so
        return False
    if isinstance(message, dict) and isinstance(params := message.get("params"), dict):
        params.pop("arguments", None)
    left, rest = VALUES, [message]
    while rest and left >= 0:
        one = rest.pop()
        items = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        left -= len(items)
        if left >= 0:
            rest.extend(items)
    return left < 0


def replaying(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, and then what comes after it."""
    first: list[Message] = [{"type": "http.request", "body": body}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again


def in_our_words(send: Send) -> Send:
    """Sends an answer on; but what the protocol's package says of a body that is no message is pages of pydantic's."""
    held: Message | None = None

    async def sent(message: Message) -> None:
        nonlocal held
        if message["type"] == "http.response.start" and message["status"] == HTTPStatus.BAD_REQUEST:
            held = message
            return
        if held is not None:
            message = {**message, "body": without_pydantic(message.get("body", b""))}
            headers = [(name, value) for name, value in held["headers"] if name.lower() != b"content-length"]
            length = (b"content-length", str(len(message["body"])).encode())
            start, held = {**held, "headers": [*headers, length]}, None
            await send(start)
        await send(message)

    return sent


def without_pydantic(body: bytes) -> bytes:
    """The error of a message that could not be read, in our words; any other body as it is."""
    try:
        document = json.loads(body)
        unread = document["id"] is None and document["error"]["code"] in (PARSE_ERROR, INVALID_PARAMS)
    except (ValueError, KeyError, TypeError):
        return body
    return json.dumps({**document, "error": {**document["error"], "message": NO_MESSAGE}}).encode() if unread else body


def application(client: AsyncRecollect) -> Application:
    """The MCP door over HTTP, of a client that is open while it runs."""
    return Application(client)


def space_of(request: Request, caller: Caller) -> str:
    """Which space a request is about: the one it names (`?space=NAME`, or a header), else the only one its token is
    pinned to, else `default`.
    """
    named = {name for name in (request.query_params.get("space"), request.headers.get(SPACE_HEADER)) if name}
    if len(named) > 1:
        raise InvalidRequest(f"the URL and the header {SPACE_HEADER} name two spaces: {', '.join(sorted(named))}")
    if named:
        return named.pop()
    pinned = caller.pinned
    if len(pinned) == 1:
        return pinned[0]
    if pinned and "default" not in pinned:
        raise InvalidRequest(
            f"this token is for several spaces: name one of {', '.join(pinned)} by ?space=NAME in the URL, or by the "
            f"header {SPACE_HEADER}"
        )
    return "default"
