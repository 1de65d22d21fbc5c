"""`recollect serve` as a process of its own, on a store of the test's own, and clients for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

from recollect import Recollect
from recollect.types import Scope
from tests.servers.cli_runner import Cli

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
