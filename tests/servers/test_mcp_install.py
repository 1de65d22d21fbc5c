"""`recollect mcp --install`: how a client is told of the server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.servers.cli_runner import Cli

KEYS = {"claude": "mcpServers", "cursor": "mcpServers", "vscode": "servers"}


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(("client", "key"), KEYS.items())
def test_the_configuration_is_printed(cli: Cli, client: str, key: str) -> None:
    """As JSON and nothing else, ready to be copied: the very command that runs now, and a store found from anywhere."""
    result = cli("mcp", "--install", client, "--space", "work", "--store", "sqlite:///m y.db", "--read-only")
    assert result.exit_code == 0
    entry = json.loads(result.stdout)[key]["recollect"]
    assert entry.get("type") == ("stdio" if client == "vscode" else None)
    words = ["mcp", "--space", "work", "--store", f"sqlite:///{Path.cwd()}/m y.db", "--read-only"]
    assert entry["args"][-len(words) :] == words
    version = subprocess.run([entry["command"], *entry["args"][: -len(words)], "--version"], capture_output=True)
    assert version.stdout.startswith(b"recollect ")
    assert not any(Path(written).exists() for written in (".mcp.json", ".vscode", "home"))


def test_only_what_was_said_is_written_down(cli: Cli) -> None:
    """Without a store or an embedder, the server finds them as every command does."""
    document = cli.json("mcp", "--install", "claude")
    assert document["file"] == ".mcp.json"
    assert document["configuration"]["mcpServers"]["recollect"]["args"][-3:] == ["mcp", "--space", "default"]
    far = cli.json("mcp", "--install", "cursor", "--store", "postgresql://h/d", "--embedder", "openai:m")
    assert far["configuration"]["mcpServers"]["recollect"]["args"][-4:] == [
        "--store",
        "postgresql://h/d",
        "--embedder",
        "openai:m",
    ]


@pytest.mark.parametrize(
    ("client", "file"),
    [("claude", ".mcp.json"), ("cursor", "home/.cursor/mcp.json"), ("vscode", ".vscode/mcp.json")],
)
def test_it_is_written_into_the_clients_own_file(cli: Cli, client: str, file: str) -> None:
    """The file and its folder are made; writing the same again changes nothing."""
    first = cli.json("mcp", "--install", client, "--write")
    assert first == {"file": str(Path(file).resolve()), "changed": True, "backup": None}
    text = Path(file).read_text()
    assert "recollect" in json.loads(text)[KEYS[client]]
    assert cli.json("mcp", "--install", client, "--write")["changed"] is False
    assert "has it already" in cli("mcp", "--install", client, "--write").stdout
    assert Path(file).read_text() == text


def test_what_else_is_in_the_file_stays(cli: Cli) -> None:
    """Other servers and settings are kept in their order, and the file before is kept beside it."""
    file = Path("settings.json")
    before = {"ž": [1], "mcpServers": {"other": {"command": "x"}, "recollect": {"command": "old"}}, "last": None}
    file.write_text(json.dumps(before), encoding="utf-8")
    file.chmod(0o600)
    result = cli("mcp", "--install", "claude", "--write", "--file", str(file))
    assert f"as it was before: {file.resolve()}.backup" in result.stdout
    after = json.loads(file.read_text(encoding="utf-8"))
    assert list(after) == list(before)
    assert after["mcpServers"]["other"] == {"command": "x"}
    assert after["mcpServers"]["recollect"] != {"command": "old"}
    assert json.loads(Path("settings.json.backup").read_text(encoding="utf-8")) == before
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"// a comment\n{}", "is not JSON (Expecting value: line 1 column 1 (char 0)), and was left as it is"),
        (b"\xff", "is not UTF-8 text (at byte 0), and was left as it is"),
        (b"[]", "holds no JSON object, and was left as it is"),
        (b'{"servers": []}', "'servers' in "),
    ],
)
def test_a_file_that_is_no_json_is_left_alone(cli: Cli, content: bytes, sentence: str) -> None:
    """One sentence, exit code 2, and not a byte changed."""
    Path("mcp.json").write_bytes(content)
    result = cli("mcp", "--install", "vscode", "--write", "--file", "mcp.json")
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert Path("mcp.json").read_bytes() == content
    assert not Path("mcp.json.backup").exists()


def test_a_wrong_call_says_what_is_missing(cli: Cli) -> None:
    """An unknown client is answered with those there are; `--write` alone does not start a server."""
    assert "is not one of: claude, cursor, vscode" in cli("mcp", "--install", "emacs").stderr
    assert cli("mcp", "--write").exit_code == 2


def test_writing_needs_a_client(cli: Cli) -> None:
    """In a sentence of its own."""
    result = cli("mcp", "--write")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --write and --file need --install")
