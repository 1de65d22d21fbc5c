"""Help, documentation, completion and start-up: what a newcomer meets first."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from recollect.recipes import RECIPES
from recollect.servers.cli.main import GROUPS, app
from tests.servers.cli_runner import Cli

COMMANDS = [function.__name__.strip("_") for group in GROUPS.values() for function in group]
DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
HEAVY = ("numpy", "onnxruntime", "apsw", "usearch", "httpx", "tokenizers")


def test_the_commands_are_those_of_the_design() -> None:
    """Nothing is missing, and nothing is there that is not built yet."""
    wanted = "demo doctor migrate remember recall get list forget supersede update link unlink neighbors stats spaces"
    assert sorted(COMMANDS) == sorted(
        [
            *wanted.split(),
            "config",
            "history",
            "used",
            "serve",
            "mcp",
            "grant",
            "revoke",
            "accept",
            "refuse",
            "grants",
            "score",
            "sync",
            "rebuild",
            "reembed",
            "import",
            "export",
            "copy",
            "backup",
            "restore",
            "eval",
            "recipes",
            "tune",
        ]
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    """docs/cli.md has a section with an example for each command."""
    section = re.search(rf"^### {name}$(.*?)(?=^##|\Z)", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert section, f"docs/cli.md has no section on {name}"
    assert re.search(rf"\brecollect {name}\b", section[1]), f"the section on {name} has no example"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help(name: str) -> None:
    """No command, argument or option is left without a word; all take `--json`, and all that are about one store
    `--store`.
    """
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    assert command.help
    for parameter in command.params:
        assert parameter.help, f"{name} {parameter.name}"
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert ({"--json"} if name == "copy" else {"--store", "--json"}) <= flags


@pytest.mark.parametrize("name", COMMANDS)
def test_documented_options_exist(name: str) -> None:
    """Every option that an example of docs/cli.md uses is one of its command's."""
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    examples = re.findall(rf"^\$ .*?recollect {name}\b(.*)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    used = {flag for example in examples for flag in re.findall(r"(?<=\s)--[a-z][a-z-]*", example)}
    assert used <= known


def test_no_command_shows_help(cli: Cli) -> None:
    """`recollect` alone is not an error."""
    result = cli()
    assert result.exit_code == 0
    assert "recall" in result.stdout
    assert result.stderr == ""


def test_version(cli: Cli) -> None:
    """`--version` prints name and version."""
    assert re.fullmatch(r"recollect \d+\.\d+\.\d+\S*\n", cli("--version").stdout)


@pytest.mark.parametrize("words", [["--help"], ["recall", "--help"], ["recipes"]], ids=" ".join)
def test_help_is_light(words: list[str]) -> None:
    """Help, and what needs no store, loads no numbers, models, databases or HTTP."""
    script = (
        "import sys, contextlib, io\n"
        "from recollect.servers.cli.main import run\n"
        f"sys.argv[1:] = {words!r}\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): run()\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def completed(cli: Cli, line: str) -> list[str]:
    """What bash would offer at the end of a line."""
    words = line.split(" ")
    done = cli.process(
        _RECOLLECT_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1), prog_name="recollect"
    )
    return done.stdout.decode().split()


def test_completion_of_recipes(cli: Cli) -> None:
    """Tab after `--recipe` offers the recipes, narrowed by what is typed."""
    assert completed(cli, "recollect recall x --recipe ") == list(RECIPES)
    assert completed(cli, "recollect recall x --recipe po") == ["polyant", "polyant_knowledge"]
    assert completed(cli, "recollect eval folder --recipe no") == ["novamem"]


def test_completion_of_commands_and_kinds(cli: Cli) -> None:
    """Tab completes commands and kinds."""
    assert completed(cli, "recollect rec") == ["recall", "recipes"]
    assert completed(cli, "recollect remember x --kind me") == ["message"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(cli: Cli, shell: str) -> None:
    """Each shell gets a script that asks `recollect` itself."""
    done = cli.process(_RECOLLECT_COMPLETE=f"source_{shell}")
    assert b"_RECOLLECT_COMPLETE" in done.stdout
