"""A person without a browser: pages of the dashboard by HTTP, and their text as one would read it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect import AsyncRecollect
from recollect.servers.caller import Caller
from recollect.servers.dashboard.pages import routes
from recollect.servers.gate.gate import Limits
from recollect.servers.web import application

ADDRESS = ("127.0.0.1", 50000)
ORIGIN = "http://127.0.0.1"


class Reader:
    """Asks for pages, keeps cookies, and follows no redirect by itself."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def get(self, path: str, status: int = 200, **asked: str) -> str:
        answer = await self.http.get(path, params=asked or None)
        assert answer.status_code == status, answer.text
        return answer.text

    async def read(self, path: str, status: int = 200, **asked: str) -> str:
        return words_of(await self.get(path, status, **asked))

    async def send(self, path: str, fields: Mapping[str, Any], status: int = 303) -> httpx.Response:
        """A form, as a browser sends it."""
        answer = await self.http.post(path, data=dict(fields), headers={"Origin": ORIGIN})
        assert answer.status_code == status, answer.text
        return answer


@asynccontextmanager
async def reading(
    client: AsyncRecollect, base: str = ORIGIN, *, gate: bool = True, limits: Limits | None = None
) -> AsyncIterator[Reader]:
    """Somebody on this machine; without the gate, which asks the store, anybody."""
    transport = httpx.ASGITransport(application(client, limits) if gate else open_to_all(client), client=ADDRESS)
    async with httpx.AsyncClient(transport=transport, base_url=base) as http:
        yield Reader(http)


def open_to_all(client: AsyncRecollect) -> ASGIApp:
    app = Starlette(routes=routes(client))

    async def opened(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {"caller": Caller()}
        await app(scope, receive, send)

    return opened


def words_of(html: str) -> str:
    """The text of a page, on one line."""
    main = html[html.index("<main") : html.index("</main>")]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())
