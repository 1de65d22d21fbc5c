"""`recollect serve` as a process: where it listens, what it refuses to do, how it stops, what it does unasked."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import httpx
import pytest

from recollect import Recollect
from tests.servers.cli_runner import Cli
from tests.servers.http_server import serving, until_the_model_is_loaded


def test_without_a_token_it_serves_this_machine_alone(cli: Cli) -> None:
    """It refuses to listen elsewhere, and names the command that makes a token."""
    done = cli.process("serve", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert b"no token was ever made" in done.stderr
    assert b"recollect token create" in done.stderr
    assert done.stdout == b""


def test_with_a_token_it_serves_others(tmp_path: Path) -> None:
    """Also when the only token has been revoked since: then it serves nobody, rather than everybody."""
    with serving(tmp_path, "--host", "0.0.0.0", tokens=True) as served:
        served.url = served.url.replace("0.0.0.0", "127.0.0.1")
        client = served.client()
        (token,) = client.get("/v1/tokens").json()
        assert client.delete(f"/v1/tokens/{token['id']}").status_code == 200
        assert client.get("/v1/recipes").status_code == served.client("").get("/v1/recipes").status_code == 401
    with serving(tmp_path, "--host", "0.0.0.0") as served:
        assert served.process.poll() is None


def test_it_keeps_qualities_up_to_date(tmp_path: Path) -> None:
    """Of every space, without being asked: nobody uses this one."""
    store = Cli(tmp_path).url
    with Recollect(store, embedder="hashing") as r:
        r.space("work").remember("the red umbrella", id="a")
    with closing(apsw.Connection(store.removeprefix("sqlite:///"))) as db:
        db.execute("UPDATE spaces SET scored_at = NULL")
    with serving(tmp_path) as served:
        client = served.client()
        deadline = time.monotonic() + 60
        while (memory := client.get("/v1/spaces/work/memories/a").json())["quality"] is None:
            assert time.monotonic() < deadline, served.errors()
            time.sleep(0.05)
        assert memory["quality"] == 0.5


def test_it_says_that_the_store_is_of_another_model(tmp_path: Path) -> None:
    """At once, with the command that changes it."""
    store = Cli(tmp_path).url
    with Recollect(store, embedder="hashing:32") as r:
        r.space("work").remember("the fox is red")
    with serving(tmp_path) as served:
        deadline = time.monotonic() + 60
        while "hashing-32" not in served.errors():
            assert time.monotonic() < deadline, served.errors()
            time.sleep(0.05)
        assert "`recollect reembed --embedder hashing:256`" in served.errors()


def test_a_port_that_is_taken(cli: Cli) -> None:
    """One sentence, exit code 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = cli.process("serve", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert b"in use" in done.stderr
    assert b"--port" in done.stderr
    assert b"Traceback" not in done.stderr


def test_it_says_where_it_listens_and_never_the_password(cli: Cli) -> None:
    """The URL on standard error, or as JSON on standard output."""
    with serving(cli.folder) as served:
        assert httpx.get(f"{served.url}/health/live").status_code == 200
        assert served.errors() == ""
    refused = cli.process("serve", "--store", "postgresql://ada:hunter2@127.0.0.1:1/none", "--port", "0")
    assert refused.returncode == 1
    assert b"hunter2" not in refused.stderr


def is_reached(url: str) -> bool:
    try:
        httpx.get(f"{url}/health/live")
    except httpx.TransportError:
        return False
    return True


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_told_to_and_loses_nothing(tmp_path: Path, stop: signal.Signals) -> None:
    """A request under way comes to its end, new ones are refused, what was counted is written; exit code 0."""
    with serving(tmp_path) as served:
        client = served.client()
        client.post("/v1/spaces/work/memories", json={"text": "Invoice 12345"})
        client.post("/v1/spaces/work/recall", json={"query": "invoice"})
        begun, refused = threading.Event(), threading.Event()
        lines = (json.dumps({"text": f"line {n}"}).encode() + b"\n" for n in range(300))

        def slowly() -> Iterator[bytes]:
            for n, line in enumerate(lines):
                yield line
                if n == 150:
                    begun.set()
                    refused.wait(30)

        imported: list[httpx.Response] = []
        sender = threading.Thread(
            target=lambda: imported.append(served.client().post("/v1/spaces/work/import", content=slowly()))
        )
        sender.start()
        begun.wait()
        served.process.send_signal(stop)
        while is_reached(served.url):
            pass
        refused.set()
        sender.join()
        assert served.process.wait(30) == 0
        assert imported[0].json()["created"] == 300
        assert "Traceback" not in served.errors()
    with Recollect(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing") as r:
        work = r.space("work")
        assert work.stats().memories == 301
        assert work.usage("1h").total.recalls == 1


def test_a_request_without_an_end_does_not_hold_it_up(tmp_path: Path) -> None:
    """A stop ends what does not end by itself."""
    with serving(tmp_path, "--grace", "1") as served:
        url = httpx.URL(served.url)
        with socket.create_connection((url.host, url.port or 0)) as raw:
            raw.sendall(b'POST /v1/spaces/w/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"te')
            assert served.client().get("/health/live").status_code == 200
            served.process.send_signal(signal.SIGTERM)
            assert served.process.wait(30) == 0
        assert "Traceback" not in served.errors()


def test_a_killed_server_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    """SIGKILL in the middle of writes: every memory that was answered for is there."""
    known: list[str] = []
    with serving(tmp_path) as served:
        client = served.client()
        known += [
            client.post("/v1/spaces/work/memories", json={"text": f"note {n}"}).json()["memory"]["id"]
            for n in range(20)
        ]
        served.process.kill()
        served.process.wait()
    with Recollect(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing") as r:
        assert [memory.id for memory in r.space("work").list().memories] == known


def test_it_loads_the_model_before_it_is_needed(tmp_path: Path) -> None:
    """In the background, with nobody asking for it; requests are answered meanwhile."""
    with serving(tmp_path, embedder="local") as served:
        client = served.client()
        assert client.get("/health/ready").json()["status"] == "ready"
        assert client.post("/v1/spaces/work/recall", json={"query": "anything"}).status_code == 200
        assert client.get("/login").status_code == 200
    with serving(tmp_path, embedder="local") as served:
        assert served.client().get("/health/live").status_code == 200
        until_the_model_is_loaded(served.process.pid)
