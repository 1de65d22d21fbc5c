"""How agents are told of `recollect mcp`: the entry in a client's configuration, printed or merged into its file."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from recollect.errors import ConfigError

NAME = "recollect"
IN_FILES = ("sqlite", "embedded-postgres")
"""The schemes of stores whose URL holds a path."""


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client: where its configuration lies, and under which key it lists servers."""

    name: str
    file: Path
    """From the working folder, or from the user's home where it starts with ~."""
    key: str
    typed: bool = False
    """Whether an entry says that it speaks over standard input and output."""

    def configuration(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        return {self.key: {NAME: {"type": "stdio", **entry} if self.typed else dict(entry)}}


CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client("claude", Path(".mcp.json"), "mcpServers"),
        Client("cursor", Path("~/.cursor/mcp.json"), "mcpServers"),
        Client("vscode", Path(".vscode/mcp.json"), "servers", typed=True),
    )
}


@dataclass(frozen=True, slots=True)
class Installed:
    """What became of a client's file: whether it was changed, and where the one before it is kept."""

    file: Path
    changed: bool
    backup: Path | None = None


def entry(space: str, store: str | None, embedder: str | None, *, read_only: bool) -> dict[str, Any]:
    """How a client starts this very installation, from whatever folder it runs in."""
    command = _command()
    words = ["mcp", "--space", space]
    words += [] if store is None else ["--store", _anywhere(store)]
    words += [] if embedder is None else ["--embedder", embedder]
    words += ["--read-only"] if read_only else []
    return {"command": command[0], "args": [*command[1:], *words]}


def install(configuration: Mapping[str, Any], file: Path) -> Installed:
    """Merge a configuration into a client's file. What else is in it stays, and the file before is kept beside it."""
    path = file.expanduser().resolve()
    known = _read(path)
    merged = dict(known)
    for key, servers in configuration.items():
        there = known.get(key, {})
        if not isinstance(there, dict):
            raise ConfigError(f"{key!r} in {path} is not a JSON object: fix the file, and run this again")
        merged[key] = {**there, **servers}
    if merged == known:
        return Installed(path, changed=False)
    backup = path.with_name(path.name + ".backup") if path.exists() else None
    if backup is not None:
        shutil.copy2(path, backup)
    _write(path, merged)
    return Installed(path, changed=True, backup=backup)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (at byte {error.start}), and was left as it is") from error
    try:
        known = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON ({error}), and was left as it is: add the entry by hand") from error
    if not isinstance(known, dict):
        raise ConfigError(f"{path} holds no JSON object, and was left as it is: add the entry by hand")
    return known


def _write(path: Path, configuration: Mapping[str, Any]) -> None:
    """All of it, or nothing: a client may read the file at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    draft.write_text(json.dumps(configuration, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if path.exists():
        shutil.copymode(path, draft)
    draft.replace(path)


def _command() -> list[str]:
    """The script beside this interpreter, by its full path: a client's own PATH may be another."""
    script = shutil.which(NAME, path=str(Path(sys.executable).parent))
    return [script] if script else [sys.executable, "-m", "recollect.servers.cli"]


def _anywhere(store: str) -> str:
    """A store's URL that means the same in every folder."""
    scheme, _, path = store.partition(":///")
    if scheme not in IN_FILES or path.startswith(("/", "~", ":")):
        return store
    return f"{scheme}:///{quote(str(Path.cwd()))}/{path}"
