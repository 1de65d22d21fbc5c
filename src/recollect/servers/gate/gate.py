"""The gate: what every request to a server passes, whichever door it is for.

It finds out who calls and says so in `scope["state"]["caller"]`; looks at Host and Origin; bounds how often one calls,
how large a body is and how long one waits for it; notes what is refused or administered; logs which engine failed (a
door says so in `state["failure"]`); and turns unexpected errors into an answer and one entry in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.engine.tokens import AsyncTokens
from recollect.errors import BackendError, NotAllowed, RecollectError
from recollect.servers.gate.audit import Audit, Watched, without_secrets
from recollect.servers.gate.call import Call
from recollect.servers.gate.callers import Callers, Refused
from recollect.servers.gate.exchange import Exchange, too_large
from recollect.servers.gate.origins import SAFE_METHODS, check_origin
from recollect.servers.problems import Problem, bug, problem_of

LOGGER = logging.getLogger("recollect.gate")
ALIVE, READY = "/health/live", "/health/ready"
READY_SECONDS = 2.0
"""How long `/health/ready` waits to learn who calls: the engines it asks about may be down."""
LOGIN = "/login"
ENTRANCE = (LOGIN, "/logout", "/theme")
"""Pages for those who are not known yet."""
STATIC = "/static/"
ROUTINE = ("/metrics",)
"""Administrators' paths that a machine asks for every few seconds: not worth a line each time."""
UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a server takes: bytes of a body, calls a minute by one token (0: any number), bytes of a request line
    with its headers, how many headers, and the seconds these may take.

    `patience` are the seconds that a client may spend sending a body or reading an answer beyond what these would take
    at `upload_rate` and `download_rate`, in bytes a second: time that a client saves is not kept for later. `buffer`
    are the bytes of an answer that the system may hold: a slow client is seen to take them in steps of about that size.
    """

    body: int = 8 * 1024 * 1024
    rate: float = 6000
    head_bytes: int = 64 * 1024
    headers: int = 100
    head_seconds: float = 10.0
    patience: float = 30.0
    upload_rate: float = 1024
    download_rate: float = 16 * 1024
    buffer: int = 128 * 1024


class Gate:
    """The ASGI application in front of all others. `pages` are the paths that people look at, with their methods: who
    is not known there is sent to sign in.

    Where one signs in, `state["spent"]` is what a wrong token is answered with, if the address has shown too many, and
    `state["used"]` counts the use of a right one.
    """

    def __init__(self, app: ASGIApp, tokens: AsyncTokens, limits: Limits, pages: Mapping[str, Collection[str]]) -> None:
        self._app = app
        self._callers = Callers(tokens, limits.rate)
        self._limits = limits
        self._pages = pages
        self._audit = Audit()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            call = Call(scope)
            most = None if call.streamed else self._limits.body
            limits = self._limits
            await self._pass(call, Exchange(receive, send, most, limits.patience, limits.upload_rate))
        else:
            await self._app(scope, receive, send)

    async def _pass(self, call: Call, exchange: Exchange) -> None:
        caller: Watched | None = None
        try:
            caller = await self._admit(call)
            call.state["caller"] = caller
            if not call.streamed and call.declared > self._limits.body:
                await self._refuse(call, exchange, too_large(self._limits.body))
            else:
                await self._app(call.scope, exchange.receive, exchange.send)
        except Refused as refused:
            await self._repel(call, exchange, refused.problem, refused.who)
        except NotAllowed as error:
            await self._repel(call, exchange, problem_of(error))
        except RecollectError as error:
            call.state["failure"] = error
            await self._refuse(call, exchange, problem_of(error))
        except ClientDisconnect:
            LOGGER.debug("%s: the client has left", without_secrets(str(call)))
        except Exception:
            LOGGER.exception("%s failed", without_secrets(str(call)))
            await exchange.refuse(bug())
        self._note(call, caller, exchange.status)

    async def _admit(self, call: Call) -> Watched | None:
        """The caller; None on a path that is open to all."""
        shown = call.credentials
        check_origin(call.headers, call.method, by_cookie=shown is not None and shown.by_cookie)
        if call.path == READY:
            return await self._recognize(call)
        if call.path == ALIVE or call.path.startswith(STATIC):
            return None
        if call.path not in ENTRANCE:
            return await self._callers.identify(call)
        call.state.update(spent=self._callers.spent(call), used=self._callers.used)
        try:
            return await self._callers.identify(call)
        except (NotAllowed, Refused):
            return None

    async def _recognize(self, call: Call) -> Watched | None:
        """The caller of a path that is open to all; None if the store cannot tell who it is."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                return await self._callers.identify(call)
        except RecollectError as error:
            call.state["failure"] = error
        except (Refused, TimeoutError):
            pass
        return None

    async def _repel(self, call: Call, exchange: Exchange, refusal: Problem, who: str = "unknown") -> None:
        if refusal.status == UNAUTHORIZED and call.path in self._pages:
            back = call.target if "GET" in self._pages[call.path] else "/"  # a form cannot be sent again from there
            await exchange.redirect(f"{LOGIN}?next={quote(back, safe='')}")
            return
        await self._refuse(call, exchange, refusal)
        self._audit.repelled(who, call.address, str(call), refusal.status, refusal.detail)

    async def _refuse(self, call: Call, exchange: Exchange, refusal: Problem) -> None:
        """A document for programs; on a page, for people, the page's own application says it (`state["refusal"]`)."""
        if call.path in self._pages and not exchange.status:
            call.state["refusal"] = refusal
            await self._app(call.scope, exchange.receive, exchange.send)
        else:
            await exchange.refuse(refusal)

    def _note(self, call: Call, caller: Watched | None, status: int) -> None:
        """After the call: which engine failed, and what was asked of its caller's rights, whatever door it was for."""
        if isinstance(failure := call.state.get("failure"), BackendError):
            LOGGER.warning("%s: %s", without_secrets(str(call)), without_secrets(str(failure)))
        if caller is None:
            if call.path == LOGIN and status == UNAUTHORIZED:
                self._callers.guessed(call)
                self._audit.repelled("unknown", call.address, str(call), status, "a wrong token was shown")
            return
        asked = caller.asked
        changes = call.method not in SAFE_METHODS
        if asked.refused:
            self._audit.refused(caller.name, call.address, str(call), status, asked.refused)
        elif (asked.administers or (asked.may_administer and changes)) and call.path not in ROUTINE:
            self._audit.administered(caller.name, call.address, str(call), status)
