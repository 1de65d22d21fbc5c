"""An OpenAI-compatible embedding endpoint as a process that a test may kill and freeze.

python -m tests.faults.embedding_process PORT
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from recollect.types import Vector

DIMENSIONS = 64


class EmbeddingProcess:
    """The process, as a test handles it. It ends with the test at the latest: it watches its standard input."""

    def __init__(self) -> None:
        self.port = 0
        self._running: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, or start it again on the same port."""
        command = [sys.executable, "-m", __name__, str(self.port)]
        self._running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._running.stdout
        self.port = int(self._running.stdout.readline())

    def kill(self) -> None:
        if self._running:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._running
        self._running.send_signal(number)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: object, client_address: object) -> None:
        """Quiet: whoever asked has gone."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        items = [{"index": n, "embedding": vector_of(text)} for n, text in enumerate(texts)]
        content = json.dumps({"object": "list", "data": items}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def vector_of(text: str) -> list[float]:
    """The sum of its words, so that texts with words in common are near."""
    vector = sum((word_vector(word) for word in re.findall(r"\w+", text.lower())), np.full(DIMENSIONS, 1e-3))
    return [round(float(number), 4) for number in vector]


@lru_cache(maxsize=10_000)
def word_vector(word: str) -> Vector:
    return np.random.default_rng(crc32(word.encode())).standard_normal(DIMENSIONS, dtype=np.float32)


def serve(port: str) -> None:
    """Answer until the standard input ends."""
    server = Server(("127.0.0.1", int(port)), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)  # noqa: T201 (whoever started it waits for this)
    sys.stdin.read()


if __name__ == "__main__":
    serve(*sys.argv[1:])
