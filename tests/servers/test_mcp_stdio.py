"""`recollect mcp` as an agent starts it: a process of its own, on standard input and output."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from recollect import AsyncRecollect
from recollect.servers.mcp.tools import TOOLS
from tests.servers.cli_runner import Cli
from tests.servers.http_server import until_the_model_is_loaded
from tests.servers.mcp_clients import call, on_stdio, parameters, refused

NOISE = """
import os, logging, warnings
from recollect.embedders.hashing import HashingEmbedder
embed = HashingEmbedder.embed
async def noisily(*given, **named):
    print("printed by a library")
    os.write(1, b"written by a library")
    os.system("echo said by a child")
    warnings.warn("warned by a library")
    logging.getLogger("library").error("logged by a library")
    return await embed(*given, **named)
HashingEmbedder.embed = noisily
"""


def line(method: str, id: int | None = None, **params: Any) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if id is None else {**message, "id": id}).encode() + b"\n"


INITIALIZE = line(
    "initialize", 0, protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "test", "version": "0"}
)
INITIALIZED = line("notifications/initialized")
NO_MESSAGE = {
    "jsonrpc": "2.0",
    "id": None,
    "error": {"code": -32700, "message": "this line is not a JSON-RPC message in UTF-8"},
}


class Agent:
    """A client that speaks byte by byte, for what the protocol's own would never say."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._output: IO[bytes] = process.stdout  # type: ignore[assignment]
        self._input: IO[bytes] = process.stdin  # type: ignore[assignment]

    def say(self, *lines: bytes) -> None:
        self._input.write(b"".join(lines))
        self._input.flush()

    def hear(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._output.readline())
        assert answer["jsonrpc"] == "2.0"
        return answer

    def ask(self, tool: str, number: int, **arguments: Any) -> dict[str, Any]:
        self.say(line("tools/call", number, name=tool, arguments=arguments))
        answer = self.hear()
        assert answer["id"] == number
        result: dict[str, Any] = answer["result"]
        return result

    def leave(self) -> tuple[list[Any], str]:
        """Close the input; what is still said on the output, each line of it the protocol's, and on the error."""
        output, errors = self.process.communicate(timeout=30)
        return [json.loads(said) for said in output.splitlines()], errors.decode()


@contextmanager
def started(cli: Cli, *words: str, **environment: str) -> Iterator[Agent]:
    told = parameters(cli, *words, **environment)
    pipe = subprocess.PIPE
    with subprocess.Popen([told.command, *told.args], stdin=pipe, stdout=pipe, stderr=pipe, env=told.env) as process:
        try:
            agent = Agent(process)
            agent.say(INITIALIZE)
            assert agent.hear()["result"]["serverInfo"]["name"] == "recollect"
            agent.say(INITIALIZED)
            yield agent
        finally:
            process.kill()


async def test_an_agent_remembers_and_recalls(tmp_path: Path) -> None:
    """Through the protocol's own client, on a store that has to be made; each process is pinned to its space."""
    cli = Cli(tmp_path)
    for mode in ("auto", "legacy"):
        async with on_stdio(cli, "--space", "work", mode=mode) as mcp:
            assert len((await mcp.list_tools()).tools) == len(TOOLS)
            assert (mcp.instructions or "").startswith("A memory that lasts beyond this conversation.")
            await call(mcp, "memory_remember", text="Invoice 12345 was paid on 3 May")
            (hit,) = (await call(mcp, "memory_recall", query="invoice 12345"))["hits"]
    async with on_stdio(cli, "--space", "home") as mcp:
        assert await refused(mcp, "memory_get", id=hit["id"]) == (
            "NotFound",
            f"space 'home' holds no memory {hit['id']!r}; space 'home' is empty",
        )
    async with AsyncRecollect(cli.url, embedder="hashing") as client:
        assert (await client.space("work").get(hit["id"])).text == "Invoice 12345 was paid on 3 May"


def test_the_model_is_loaded_after_the_handshake(tmp_path: Path) -> None:
    """Without a call that needs it, and without making a store."""
    cli = Cli(tmp_path)
    with started(cli, "--embedder", "local") as agent:
        until_the_model_is_loaded(agent.process.pid)
        assert not (cli.folder / "memory.db").exists()
        assert agent.ask("memory_stats", 1)["structuredContent"]["memories"] == 0
        assert agent.leave() == ([], "")


async def test_a_read_only_server_offers_nothing_that_writes(cli: Cli) -> None:
    """The tools are not there; called all the same, they are refused, and nothing is stored."""
    async with on_stdio(cli, "--read-only") as mcp:
        offered = {tool.name for tool in (await mcp.list_tools()).tools}
        assert offered == {
            "memory_recall",
            "memory_search",
            "knowledge_search",
            "memory_get",
            "memory_neighbors",
            "memory_list",
            "memory_stats",
        }
        assert await refused(mcp, "memory_remember", text="no") == (
            "NotAllowed",
            "this server was started with --read-only: it does not write in 'default'",
        )
        assert (await call(mcp, "memory_stats"))["memories"] == 0


def test_a_read_only_server_makes_no_store(tmp_path: Path) -> None:
    """A store that is not there is said by the first call, and again by the next, until somebody makes it."""
    cli = Cli(tmp_path)
    with started(cli, "--read-only") as agent:
        for number in (1, 2):
            assert "ConfigError: there is no store at" in agent.ask("memory_stats", number)["content"][0]["text"]
        assert cli.process("remember", "now it is there").returncode == 0
        assert agent.ask("memory_stats", 3)["structuredContent"]["memories"] == 1
        assert agent.leave() == ([], "")


def test_standard_output_carries_the_protocol_alone(tmp_path: Path) -> None:
    """Whatever a library or a child of its prints, warns or logs, and whatever comes in, each line is a message."""
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    with started(Cli(tmp_path), PYTHONPATH=str(tmp_path)) as agent:
        assert agent.ask("memory_remember", 1, text="héllo ✓")["structuredContent"]["created"] is True
        for nonsense in (b"no JSON", b"\xff\xfe\x80", b"[]", b"[" * 100_000, b'{"jsonrpc":"2.0","id":2,"method":5}'):
            agent.say(nonsense + b"\n")
            assert agent.hear() == NO_MESSAGE
        agent.say(line("no/such/method", 3))
        assert agent.hear()["error"]["message"] == "Method not found"
        assert agent.ask("memory_get", 4, id="\x00")["isError"] is True
        agent.say(b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"memory_recall","arguments":{"qu')
        rest, errors = agent.leave()
    assert (rest, agent.process.returncode) == ([NO_MESSAGE], 0)
    for noise in ("printed", "written", "warned", "logged"):
        assert f"{noise} by a library" in errors
    assert "said by a child" in errors


def test_the_process_ends_with_its_input(cli: Cli) -> None:
    """When the client goes away, in whatever state, so does the server; Ctrl-C ends it at once."""
    with started(cli) as agent:
        assert agent.leave() == ([], "")
        assert agent.process.returncode == 0
    with started(cli) as agent:
        agent.process.send_signal(signal.SIGINT)
        assert agent.process.wait(timeout=30) == -signal.SIGINT
    with started(cli) as agent:
        assert agent.process.stdout is not None
        agent.process.stdout.close()
        agent.say(line("tools/list", 1))
        assert agent.process.stdin is not None
        agent.process.stdin.close()
        assert agent.process.wait(timeout=30) == 0
        assert agent.process.stderr is not None
        assert agent.process.stderr.read() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/PID/maps")
def test_the_model_is_loaded_by_the_first_use(tmp_path: Path) -> None:
    """Neither the handshake nor the list of tools waits for numpy or the model's runtime; a recall does."""

    def mapped(process: subprocess.Popen[bytes]) -> set[str]:
        files = Path(f"/proc/{process.pid}/maps").read_text()
        return {name for name in ("numpy", "onnxruntime", "apsw") if f"/{name}" in files}

    with started(Cli(tmp_path), RECOLLECT_EMBEDDER="local") as agent:
        agent.say(line("tools/list", 1))
        assert len(agent.hear()["result"]["tools"]) == len(TOOLS)
        assert mapped(agent.process) == set()
        assert not (tmp_path / "memory.db").exists()
        assert agent.ask("memory_recall", 2, query="anything")["structuredContent"]["hits"] == []
        assert mapped(agent.process) == {"numpy", "onnxruntime", "apsw"}


def test_what_is_wrong_with_the_call_is_said_before_anything_is_served(cli: Cli) -> None:
    """A wrong setting or an impossible space ends the command with one sentence, and nothing on standard output."""
    wrong = cli.process("mcp", "--space", " ", input=b"")
    assert (wrong.returncode, wrong.stdout, wrong.stderr) == (2, b"", b"error: space is empty: give it a name\n")
    (Path(cli.environment["XDG_CONFIG_HOME"]) / "recollect").mkdir(parents=True)
    (Path(cli.environment["XDG_CONFIG_HOME"]) / "recollect" / "recollect.toml").write_text("ur = 1")
    broken = cli.process("mcp", input=b"")
    assert (broken.returncode, broken.stdout) == (2, b"")
    assert b"unknown setting 'ur'" in broken.stderr
