"""Every option and argument of the command line given nonsense."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from recollect.servers.cli.main import app
from tests.servers.cli_runner import Cli

pytestmark = pytest.mark.attack

NONSENSE = (
    "", " ", "nan", "-1", "1e999", "9" * 5_000, "\udcff", "a\nb\x1b[31m", "=", "vector=nan", "vector={}", "/",
    '{"vector": NaN}', '{"vector": {"weight": {}}}', "[" * 5_000, '{"x":' * 990 + "1" + "}" * 990, "x" * 300 + "://",
    "sqlite://", "sqlite:///no/such/folder/memory.db", "embedded-postgres://", "openai:", "http://[", "\N{SKULL}",
)  # fmt: skip
THIRD = 3
"""Each option is given every third of them; all of them together are given all."""
BESIDE = {"serve": ("--host", "no such host"), "demo": ("--store", "none"), "eval": ("--store", "none")}
"""What keeps a command that would go on for long from it."""
SHARED = ("store", "embedder", "space")
"""Options that are the same everywhere, and tried once."""
LEAST = {"file": "there.jsonl", "folders": "there", "source": "sqlite:///a.db", "target": "sqlite:///b.db"}


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = {" ".join(path): (path, command) for path, command in commands(typer.main.get_command(app))}


def wrong_calls(path: tuple[str, ...], command: Any) -> Iterator[tuple[str, ...]]:
    """Each option and each argument in turn with pieces of nonsense, and what must be there beside it."""
    arguments = [one.name for one in command.params if one.param_type_name == "argument" and one.required]
    options = [one for one in command.params if one.param_type_name == "option" and not one.is_flag]
    options = [one for one in options if one.name not in SHARED or path == ("remember",)]
    least = [LEAST.get(name, "x") for name in arguments]
    for place in range(len(least)):
        for value in NONSENSE[place % THIRD :: THIRD]:
            yield (*path, "--", *least[:place], value, *least[place + 1 :])
    for place, option in enumerate(options):
        for value in NONSENSE[place % THIRD :: THIRD]:
            yield (*path, f"{option.opts[0]}={value}", *BESIDE.get(path[-1], ()), "--", *least)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does what it can, or says what is wrong in one line; never a traceback, and never that it has a bug."""
    monkeypatch.chdir(tmp_path)
    cli = Cli(tmp_path)
    for words in wrong_calls(*COMMANDS[name]):
        result = cli(*words)
        said = result.stderr
        assert result.exit_code in (0, 1, 2), (words, said)
        assert not result.exception or isinstance(result.exception, SystemExit), (words, result.exception)
        assert "Traceback" not in said
        assert "bug" not in said, (words, said)
        if result.exit_code:
            assert said.splitlines()[-1].startswith("error: "), (words, said)
            assert "\x1b" not in said, (words, said)
