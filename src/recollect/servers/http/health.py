"""Routes for those who watch a server: is it alive, is it ready, how is it doing."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import Response

from recollect.client import AsyncRecollect
from recollect.engine.doctor import Check, Diagnosis
from recollect.servers.caller import Caller, outlined
from recollect.servers.http.access import Calling
from recollect.servers.http.answers import HEADERS, answer, document, ok
from recollect.servers.http.metrics import CONTENT_TYPE, Meters

LOOK_SECONDS = 1.0
"""How old an answer about the engines may be: asking often, which anybody may, costs them nothing more."""
STORE = "store"

Status = Literal["ready", "degraded", "down"]
READINESS = document("Readiness", status=Status, checks=tuple[Check, ...])


class Looking:
    """Looks at the engines, for however many ask at once."""

    def __init__(self, client: AsyncRecollect) -> None:
        self._client = client
        self._one = asyncio.Lock()
        self._seen: Diagnosis | None = None
        self._seen_at = 0.0

    async def look(self) -> Diagnosis:
        async with self._one:
            if self._seen is None or time.monotonic() - self._seen_at > LOOK_SECONDS:
                self._seen = await self._client.ready()
                self._seen_at = time.monotonic()
            return self._seen


def watching(client: AsyncRecollect) -> APIRouter:
    """The routes, for a client whose recalls are counted from now on."""
    router = APIRouter(tags=["health"])
    looking, meters = Looking(client), Meters(client)

    @router.get("/health/live", summary="Is the process there?", responses=ok(document("Alive", status=str), "It is."))
    async def live() -> Response:
        return answer({"status": "alive"})

    @router.get(
        "/health/ready",
        summary="Does each engine answer?",
        responses={
            **ok(READINESS, "Recalls are answered, perhaps without some lane."),
            503: {"model": READINESS, "description": "The store is down."},
        },
    )
    async def ready(request: Request) -> Response:
        """A caller that administers all spaces sees what each engine reports; others see whether it answers."""
        seen = await looking.look()
        state = status_of(seen)
        checks = seen.checks if administers_all(request) else outlined(seen.checks)
        return answer({"status": state, "checks": checks}, 503 if state == "down" else 200)

    @router.get(
        "/metrics",
        summary="For Prometheus",
        responses={200: {"description": "Metrics in text.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics(caller: Calling) -> Response:
        """Needs a token that administers all spaces."""
        caller.must("admin")
        return Response(await meters.exposition(), headers=HEADERS, media_type=CONTENT_TYPE)

    return router


def administers_all(request: Request) -> bool:
    caller = getattr(request.state, "caller", None)
    return isinstance(caller, Caller) and caller.may("admin")


def status_of(seen: Diagnosis) -> Status:
    if any(check.name == STORE and not check.ok for check in seen.checks):
        return "down"
    return "ready" if seen.ok else "degraded"
