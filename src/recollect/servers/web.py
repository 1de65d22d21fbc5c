"""The server: every door of one client behind one gate, on one port."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.client import AsyncRecollect
from recollect.errors import ConfigError
from recollect.servers.connections import BoundedProtocol, OnceInAWhile
from recollect.servers.dashboard import pages
from recollect.servers.gate.audit import LOGGER as AUDIT
from recollect.servers.gate.gate import STATIC, Gate, Limits
from recollect.servers.gate.origins import is_loopback
from recollect.servers.http.api import Api
from recollect.servers.logs import LineFormatter
from recollect.servers.mcp import over_http
from recollect.settings import with_store

_log = logging.getLogger(__name__)
PORT = 8700
MCP = "/mcp"
PROGRAMS = ("/v1/", "/health/", "/metrics", "/openapi.json")
"""What the API's paths begin with."""
KEEP_ALIVE_SECONDS = 30
BACKLOG = 128


class Application:
    """All doors as one ASGI application. It answers within `async with application.running()`, of an open client."""

    def __init__(self, client: AsyncRecollect, limits: Limits) -> None:
        shown = pages.routes(client)
        self._shown = methods_of(shown)
        self._pages = Starlette(routes=shown, exception_handlers={HTTPException: pages.lost(client)})
        self._mcp = over_http.application(client)
        self._api = Api(client)
        self._gate = Gate(self._pass_on, client.tokens, limits, pages=self._shown)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        door: ASGIApp = self._mcp if path == MCP else self._api
        if path in self._shown or path.startswith(STATIC) or (door is self._api and is_astray(scope)):
            door = self._pages
        await door(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._mcp.running():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gate(scope, receive, send)


def methods_of(routes: Iterable[BaseRoute]) -> Mapping[str, set[str]]:
    """The paths of pages, and by which methods each is asked for."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for route in routes:
        if isinstance(route, Route):
            found[route.path] |= route.methods or set()
    return dict(found)


def is_astray(scope: Scope) -> bool:
    """Whether a person's browser asks for something that no program would be answered either."""
    return not scope["path"].startswith(PROGRAMS) and "text/html" in Headers(scope=scope).get("accept", "")


def application(client: AsyncRecollect, limits: Limits | None = None) -> Application:
    """The API, MCP and the dashboard of a client."""
    return Application(client, limits or Limits())


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 is any that is free. `grace` are the seconds that requests under way have to end when the
    server stops; then they are cut off.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    grace: int = 10

    def listen(self) -> socket.socket:
        """A socket that takes connections from now on. Raises ConfigError."""
        try:
            family, kind, protocol, _, where = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            opened = socket.socket(family, kind, protocol)
            try:
                if sys.platform != "win32":
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                opened.bind(where)
                opened.listen(BACKLOG)
            except BaseException:
                opened.close()
                raise
        except OSError as error:
            why = error.strerror or error
            raise ConfigError(
                f"cannot listen on {self.host} port {self.port}: {why}: name another by --port"
            ) from error
        return opened


def run(client: AsyncRecollect, address: Address, limits: Limits, on_listening: Callable[[str], None]) -> None:
    """Serve a client until SIGTERM or SIGINT; `on_listening` gets the URL."""
    log_to_stderr()
    asyncio.run(serve(client, address, limits, on_listening))


async def serve(client: AsyncRecollect, address: Address, limits: Limits, on_listening: Callable[[str], None]) -> None:
    """When told to stop: requests under way come to their end, then the client writes what it has still to write."""
    async with client:
        await check_reach(client, address.host)
        app = application(client, limits)
        await client.keep_scores()
        gc.freeze()  # modules and schemas stay for good: to look through them again and again would hold requests up
        server = server_of(app, address, limits)
        with address.listen() as opened:
            on_listening(url_of(opened))
            warming = asyncio.create_task(_begin(client))  # the first requests do not wait for it
            try:
                async with app.running():
                    await server.serve([opened])
            finally:
                warming.cancel()


async def _begin(client: AsyncRecollect) -> None:
    """Say what does not work, then load the model."""
    for check in (await client.ready()).checks:
        if not check.ok:
            _log.warning("%s: %s", check.name, with_store(check.detail, client.url))
    await client.warm_up()


def server_of(app: Application, address: Address, limits: Limits | None = None) -> Server:
    """What speaks HTTP for an application."""
    return Server(
        uvicorn.Config(
            app,
            http=partial(BoundedProtocol, limits=limits or Limits()),  # type: ignore[arg-type]  # it is only called
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,  # a query string may hold anything
            server_header=False,
            proxy_headers=False,  # a client could claim any address
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=address.grace,
            backlog=BACKLOG,
        )
    )


async def check_reach(client: AsyncRecollect, host: str) -> None:
    """Raises ConfigError where others than this machine could reach a server that asks nobody for a token."""
    if not is_loopback(host) and not await client.tokens.required():
        raise ConfigError(
            f"{host} can be reached from elsewhere, and no token was ever made for this store: make one by "
            "`recollect token create --all-spaces --scope admin` first, or listen on 127.0.0.1"
        )


class Server(uvicorn.Server):
    """uvicorn's, except that a signal has done its work when the server has stopped: the client is still to be closed,
    and must not be cut off by that signal's usual effect.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def url_of(opened: socket.socket) -> str:
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def log_to_stderr() -> None:
    """What is worth a line goes to standard error; the audit as JSON and nothing else. What is cut off when the server
    stops is no failure of its own.
    """
    lines = logging.StreamHandler()
    lines.setFormatter(LineFormatter())
    lines.addFilter(lambda entry: not (entry.exc_info and isinstance(entry.exc_info[1], asyncio.CancelledError)))
    logging.getLogger().addHandler(lines)
    for name, level in (("recollect", logging.INFO), ("uvicorn.error", logging.ERROR), ("mcp", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.addHandler(lines)
        logger.setLevel(level)
        logger.propagate = False
    logging.getLogger("asyncio").addFilter(OnceInAWhile())
    AUDIT.addHandler(logging.StreamHandler())
    AUDIT.propagate = False
