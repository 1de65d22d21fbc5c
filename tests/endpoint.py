"""A real HTTP endpoint on loopback that speaks the OpenAI protocol as told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any


@dataclass
class Asked:
    """One request as it arrived."""

    path: str
    key: str | None
    body: dict[str, Any]


@dataclass
class Answer:
    """One answer to give: a status, headers and raw content; a stalled one comes only when the endpoint closes."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b"{}"
    stalled: bool = False


Script = Callable[[int, Asked], Answer]
"""What to answer to the request with that number, counted from 0."""


def vector_of(text: str) -> list[float]:
    """Some vector that tells texts apart, not of length 1."""
    return [float(len(text)), float(sum(map(ord, text)) % 97), 2.0]


def embeddings(asked: Asked) -> Answer:
    """The right answer, last text first."""
    items = [{"index": i, "embedding": vector_of(text)} for i, text in enumerate(asked.body["input"])]
    return Answer(content=json.dumps({"object": "list", "data": items[::-1]}).encode())


class Endpoint:
    """Serves until closed, in a thread of its own."""

    def __init__(self, script: Script) -> None:
        self.asked: list[Asked] = []
        self._script = script
        self._lock = Lock()
        self._closing = Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = endpoint._answer(Asked(self.path, self.headers["Authorization"], body))
                if answer.stalled:
                    endpoint._closing.wait()
                    return
                self.send_response(answer.status)
                for name, value in {**answer.headers, "Content-Length": str(len(answer.content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def _answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            return self._script(len(self.asked) - 1, asked)

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
