"""How much, and how slowly: one request and its answer, bounded in size and in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from http import HTTPStatus

from starlette.types import Message, Receive, Send

from recollect.servers.problems import MEDIA_TYPE, Problem, problem

GONE: Message = {"type": "http.disconnect"}


class Exchange:
    """The two ends of a request as the application is given them.

    A body that is too large, or does not come, is answered here, and whatever the application says to that is dropped.
    """

    def __init__(self, receive: Receive, send: Send, most: int | None, patience: float, rate: float) -> None:
        self.status = 0
        self._receive = receive
        self._send = send
        self._most = most
        self._patience = patience
        self._credit = patience
        self._rate = rate
        self._read = 0
        self._has_body = True
        self._refused = False

    async def receive(self) -> Message:
        """What comes next of the body; once that has ended, whether the client has left, which may take any time."""
        if not self._has_body:
            return await self._receive()
        if self._refused:
            return GONE
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._credit):
                message = await self._receive()
        except TimeoutError:
            await self.refuse(too_slow(self._patience, self._rate))
            return GONE
        came = len(message.get("body", b""))
        self._credit = min(self._credit - (time.monotonic() - began) + came / self._rate, self._patience)
        self._read += came
        self._has_body = message.get("more_body", False)
        if self._most is not None and self._read > self._most:
            await self.refuse(too_large(self._most))
            return GONE
        return message

    async def send(self, message: Message) -> None:
        """Hand a part of the answer to the client."""
        if self._refused:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)

    async def refuse(self, refusal: Problem) -> None:
        """Answer in the application's place, unless it has begun to."""
        await self._answer(refusal.status, refusal.body, {"Content-Type": MEDIA_TYPE, **refusal.headers})

    async def redirect(self, path: str) -> None:
        """Send the client to another page."""
        await self._answer(HTTPStatus.SEE_OTHER, b"", {"Location": path, "Cache-Control": "no-store"})

    async def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        if self.status == 0:
            sized = {**headers, "Content-Length": str(len(body))}
            pairs = [(name.lower().encode(), value.encode()) for name, value in sized.items()]
            await self.send({"type": "http.response.start", "status": int(status), "headers": pairs})
            await self.send({"type": "http.response.body", "body": body})
        self._refused = True


def too_large(most: int) -> Problem:
    detail = f"the body is larger than the {most:,} bytes allowed: split it, or send many memories by import"
    return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, Connection="close")


def too_slow(patience: float, rate: float) -> Problem:
    detail = (
        f"the body came too slowly: send it again, {rate:,.0f} bytes a second or more, and pause {patience:g} s at most"
    )
    return problem(HTTPStatus.REQUEST_TIMEOUT, detail, Connection="close")
