"""A Qdrant for tests: the part of its REST API that the index uses, over qdrant-client's local mode.

It stands in for the server, whose binary no wheel on PyPI carries, so that a real process behind the real HTTP client
can be killed, frozen, slowed down and made to fail. What the engine computes is tested on `qdrant-edge-py`, which is
Qdrant's own engine without the server.

    python -m tests.indexes.qdrant_process FOLDER PORT [KEY]
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from pydantic_core import to_json
from qdrant_client import QdrantClient, models

Body: TypeAlias = dict[str, Any]

VERSION = "1.20.0"
USUAL: Body = {"delay": 0.0, "status": 200, "version": VERSION, "text": ""}


class QdrantProcess:
    """The process, as a test handles it. It ends with the test at the latest: it watches its standard input."""

    def __init__(self, folder: Path, key: str = "") -> None:
        self._folder = folder
        self._key = key
        self._port = 0
        self._running: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"qdrant+http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, or start it again: on the same port, with what it held. One that runs goes on."""
        if self._running:
            return
        command = [sys.executable, "-m", __name__, str(self._folder), str(self._port), self._key]
        self._running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._running.stdout
        self._port = int(self._running.stdout.readline())

    def kill(self) -> None:
        if self._running:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def freeze(self) -> None:
        """On return it stands still."""
        assert self._running
        self._running.send_signal(signal.SIGSTOP)
        os.waitpid(self._running.pid, os.WUNTRACED)

    def thaw(self) -> None:
        assert self._running
        self._running.send_signal(signal.SIGCONT)

    def behave(self, **changes: Any) -> None:
        """From now on, wait `delay` seconds before each answer, give each the `status`, say `text` instead of it, or
        claim another `version`; without any of them, do as usual.
        """
        request = Request(f"http://127.0.0.1:{self._port}/behave", json.dumps({**USUAL, **changes}).encode())
        with urlopen(request):
            return


def serve(folder: str, port: str, key: str = "") -> None:
    """Answer until the standard input ends."""
    warnings.simplefilter("ignore")
    sqlite3.connect = without_fsync(sqlite3.connect)  # type: ignore[assignment]  # it is overloaded
    engine = Engine(QdrantClient(path=folder, force_disable_check_same_thread=True))
    server = Server(("127.0.0.1", int(port)), handler(engine, key))
    Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)  # noqa: T201 (whoever started it waits for this)
    sys.stdin.read()
    os._exit(0)


def without_fsync(connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    """The local mode writes each point to the disk by itself, which a server does not. A killed process loses nothing
    that it handed to the system.
    """

    def connected(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = connect(*args, **kwargs)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    return connected


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: object, client_address: object) -> None:
        """Quiet: whoever asked has gone."""


def handler(engine: Engine, key: str) -> type[BaseHTTPRequestHandler]:
    behaviour = dict(USUAL)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_any(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"] or 0))
            body = json.loads(content) if content else {}
            path = urlsplit(self.path).path
            if path == "/behave":
                behaviour.update(body)
                return self._send(200, b"{}")
            time.sleep(behaviour["delay"])
            if key and path != "/" and self.headers["api-key"] != key:
                return self._send(401, b"Invalid API key or JWT")
            if behaviour["status"] != 200 or behaviour["text"]:
                return self._send(behaviour["status"], behaviour["text"].encode())
            if path == "/":
                return self._send(200, json.dumps({"title": "stand-in", "version": behaviour["version"]}).encode())
            return self._send(*engine.answer(self.command, path, body))

        do_GET = do_PUT = do_POST = do_DELETE = do_any  # noqa: N815 (the base class looks for these)

        def _send(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    return Handler


class Engine:
    """The REST API over the local mode, one request at a time."""

    def __init__(self, client: QdrantClient) -> None:
        self._client = client
        self._lock = Lock()
        self._made: dict[str, Body] = {}
        self._indexes: dict[str, Body] = {}
        name = "/collections/([^/]+)"
        self._routes: dict[tuple[str, str], Callable[..., Any]] = {
            ("GET", "/aliases"): lambda _: client.get_aliases(),
            ("GET", "/collections"): lambda _: client.get_collections(),
            ("POST", "/collections/aliases"): self._change_aliases,
            ("PUT", name): self._create,
            ("GET", name): self._describe,
            ("DELETE", name): lambda _, name: client.delete_collection(name),
            ("GET", f"{name}/exists"): lambda _, name: {"exists": client.collection_exists(name)},
            ("PUT", f"{name}/index"): self._index,
            ("PUT", f"{name}/points"): self._upsert,
            ("POST", f"{name}/points"): self._retrieve,
            ("POST", f"{name}/points/delete"): self._delete,
            ("POST", f"{name}/points/count"): self._count,
            ("POST", f"{name}/points/scroll"): self._scroll,
            ("POST", f"{name}/points/query"): self._query,
            ("POST", f"{name}/points/query/batch"): lambda body, name: [
                self._query(search, name) for search in body["searches"]
            ],
        }

    def answer(self, method: str, path: str, body: Body) -> tuple[int, bytes]:
        for (known, pattern), route in self._routes.items():
            match = re.fullmatch(pattern, path)
            if known == method and match:
                try:
                    with self._lock:
                        result = route(body, *map(unquote, match.groups()))
                except ValueError as error:
                    return _refusal(str(error))
                return 200, to_json({"result": result, "status": "ok", "time": 0.0})
        return _refusal(f"{method} {path} not found")

    def _change_aliases(self, body: Body) -> Any:
        return self._client.update_collection_aliases(models.ChangeAliasesOperation(**body).actions)

    def _create(self, body: Body, name: str) -> Any:
        self._made[name] = body
        return self._client.create_collection(name, models.VectorParams(**body["vectors"]))

    def _describe(self, body: Body, name: str) -> Any:
        known = self._client.get_collection(name).model_dump(mode="json")
        real = self._real(name)
        made = self._made.get(real, {})
        known["config"]["hnsw_config"].update(made.get("hnsw_config") or {})
        known["config"]["quantization_config"] = made.get("quantization_config")
        known["config"]["params"] |= {field: made.get(field) for field in ("shard_number", "replication_factor")}
        known["payload_schema"] = self._indexes.get(real, {})
        return known

    def _index(self, body: Body, name: str) -> Any:
        schema = body["field_schema"]
        info = {"data_type": schema["type"], "params": schema, "points": 0}
        self._indexes.setdefault(self._real(name), {})[body["field_name"]] = info
        return {"operation_id": 0, "status": "completed"}

    def _real(self, name: str) -> str:
        """The collection that an alias leads to."""
        aliases = {alias.alias_name: alias.collection_name for alias in self._client.get_aliases().aliases}
        return aliases.get(name, name)

    def _upsert(self, body: Body, name: str) -> Any:
        return self._client.upsert(name, models.PointsList(**body).points)

    def _retrieve(self, body: Body, name: str) -> Any:
        return self._client.retrieve(name, body["ids"], body["with_payload"], body["with_vector"])

    def _delete(self, body: Body, name: str) -> Any:
        return self._client.delete(name, models.PointIdsList(**body))

    def _count(self, body: Body, name: str) -> Any:
        return self._client.count(name, models.CountRequest(**body).filter)

    def _scroll(self, body: Body, name: str) -> Any:
        found, following = self._client.scroll(
            name,
            models.ScrollRequest(**body).filter,
            limit=body["limit"],
            offset=body.get("offset"),
            with_payload=body["with_payload"],
            with_vectors=body["with_vector"],
        )
        return {"points": found, "next_page_offset": following}

    def _query(self, body: Body, name: str) -> Any:
        asked = models.QueryRequest(**body)
        return self._client.query_points(
            name, asked.query, query_filter=asked.filter, limit=body["limit"], with_payload=body["with_payload"]
        )


def _refusal(said: str) -> tuple[int, bytes]:
    status = 404 if said.endswith("not found") else 409 if "already exists" in said else 400
    return status, json.dumps({"status": {"error": said}, "time": 0.0}).encode()


if __name__ == "__main__":
    serve(*sys.argv[1:])
