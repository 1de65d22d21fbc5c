"""`recollect serve` as a process of its own, on a store of the test's own, and clients for it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

from recollect import AsyncRecollect, Recollect
from recollect.servers.gate.gate import Limits
from recollect.servers.web import Address, application, server_of
from recollect.types import Scope
from tests.servers.cli_runner import Cli

SMALL = 4096
EVIL = "http://evil.example"


@dataclass
class Served:
    """A server, where it is, and what it writes to standard error."""

    url: str
    store: str
    process: subprocess.Popen[str]
    log: IO[str]
    secret: str | None = None
    _clients: list[httpx.Client] = field(default_factory=list)

    def client(self, secret: str | None = None, **headers: str) -> httpx.Client:
        """A client with a token, or the server's own, or none (`""`)."""
        shown = self.secret if secret is None else secret
        bearer = {"Authorization": f"Bearer {shown}"} if shown else {}
        made = httpx.Client(base_url=self.url, headers={**bearer, **headers}, timeout=30)
        self._clients.append(made)
        return made

    def token(self, *spaces: str, scope: Scope = "admin", expires: str | None = None) -> tuple[str, str]:
        """A new token of the store, made beside the server: its id and its secret."""
        with Recollect(self.store, embedder="hashing") as r:
            token, secret = r.tokens.create(spaces=spaces, scope=scope, expires=expires)
        return token.id, secret

    def errors(self) -> str:
        """What was written to standard error so far."""
        self.log.seek(0)
        return self.log.read()

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        for client in self._clients:
            client.close()
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextmanager
def serving(folder: Path, *words: str, tokens: bool = False, embedder: str = "hashing") -> Iterator[Served]:
    """A server that answers; with `tokens`, its own client has one for everything."""
    cli = Cli(folder)
    secret = None
    if tokens:
        with Recollect(cli.url, embedder="hashing") as r:
            secret = r.tokens.create(scope="admin").secret
    command = [sys.executable, "-m", "recollect.servers.cli", "serve", "--port", "0", "--json", *words]
    environment = {**os.environ, **cli.environment, "RECOLLECT_EMBEDDER": embedder}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        with process.stdout:
            line = process.stdout.readline()
        served = Served("", cli.url, process, log, secret)
        try:
            assert line, served.errors()
            served.url = httpx.Response(200, text=line).json()["url"]
            yield served
        finally:
            served.stop()


@dataclass(frozen=True)
class Listening:
    """A server in this process: its port, and the connections that it holds."""

    port: int
    connections: set[Any]

    @asynccontextmanager
    async def connect(self, sent: bytes = b"") -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A bare connection that takes little in advance, on which something was sent."""
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=raw, limit=SMALL)
        try:
            writer.write(sent)
            yield reader, writer
        finally:
            writer.transport.abort()


@asynccontextmanager
async def listening(client: AsyncRecollect, limits: Limits | None = None) -> AsyncIterator[Listening]:
    """A server with limits of the test's own, whose sockets buffer little."""
    address = Address(port=0)
    app = application(client, limits)
    server = server_of(app, address, limits)

    async def serve(opened: socket.socket) -> None:
        async with app.running():
            await server.serve([opened])

    with address.listen() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        running = asyncio.create_task(serve(opened))
        yield Listening(opened.getsockname()[1], server.server_state.connections)
        server.should_exit = True
        await running


def problem(response: httpx.Response, status: int) -> dict[str, Any]:
    """A problem document, checked for what all of them have in common."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert document["type"].startswith("urn:recollect:")
    assert isinstance(document, dict)
    return document


def until_the_model_is_loaded(pid: int) -> None:
    """Wait for a process to load what runs the packaged model."""
    end = time.monotonic() + 60
    while not any("onnxruntime" in found.path for found in psutil.Process(pid).memory_maps()):
        assert time.monotonic() < end, "the model was never loaded"
        time.sleep(0.05)
