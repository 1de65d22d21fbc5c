"""Tokens at the command line: token create, token list, token revoke."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer

from recollect import Recollect
from recollect.servers.cli.main import TOKENS, app
from tests.servers.cli_runner import Cli
from tests.servers.test_cli_failures import check_error

SECRET = re.compile(r"^rc_([0-9a-f]{16})_[0-9a-f]{48}$", re.MULTILINE)
COMMANDS = [function.__name__.strip("_") for function in TOKENS]
DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def test_a_secret_is_shown_once(cli: Cli) -> None:
    """On a line of its own, whole however narrow the terminal is; it is the one that the library accepts."""
    made = cli("token", "create", "--space", "work", "--space", "home", "--scope", "write", "--expires", "90d")
    first, note, secret = made.stdout.splitlines()
    assert "every caller of a server on this store needs a token" in made.stderr
    known = SECRET.fullmatch(secret)
    assert known
    assert first.startswith(f"token {known[1]}: write in work, home, until 2")
    assert "shown this once" in note
    narrow = cli.process("token", "create", "--all-spaces", COLUMNS="40").stdout.decode()
    assert SECRET.search(narrow)
    assert ": read in all spaces, until it is revoked\n" in narrow
    with Recollect(cli.url, embedder="hashing") as r:
        token = r.tokens.check(secret)
        assert (token.spaces, token.scope) == (("work", "home"), "write")
    listed = cli("token", "list")
    assert not SECRET.search(listed.stdout)
    assert secret.rpartition("_")[2] not in listed.stdout + json.dumps(cli.json("token", "list"))


def test_tokens_in_json(cli: Cli) -> None:
    """The secret is in the answer to `create` alone; the rest is the same there and in the list."""
    made = cli.json("token", "create", "--space", "work", "--scope", "admin", "--name", "the build")
    assert set(made) == {"token", "secret"}
    assert (made["token"]["spaces"], made["token"]["scope"], made["token"]["name"]) == (["work"], "admin", "the build")
    assert made["token"]["expires_at"] is None
    other = cli.json("token", "create", "--all-spaces", "--expires", "2999-01-01")
    assert other["token"]["expires_at"] == "2999-01-01T00:00:00+00:00"
    assert cli.json("token", "list") == [made["token"], other["token"]]
    assert cli.json("token", "list", "--space", "work") == [made["token"]]
    assert cli.json("token", "revoke", made["token"]["id"]) == {"id": made["token"]["id"]}
    assert cli.json("token", "list")[0]["revoked_at"] is not None


def test_tokens_are_listed_and_revoked(cli: Cli) -> None:
    """A line for each: what it is for, and whether it can still be used."""
    assert cli("token", "list").stdout == "no tokens\n"
    made = cli.json("token", "create", "--space", "work", "--name", "ci\u202e")["token"]["id"]
    cli("token", "create", "--all-spaces", "--expires", "2999-01-01")
    heading, first, second = cli("token", "list").stdout.splitlines()
    assert heading.split() == ["id", "name", "spaces", "scope", "made", "state"]
    assert first.split()[:4] == [made, "ci\ufffd", "work", "read"]
    assert first.rstrip().endswith("in force")
    assert "all spaces" in second
    assert "until 2999-01-01 00:00" in second
    assert cli("token", "revoke", made).stdout == f"token {made} is revoked\n"
    assert " revoked 2" in cli("token", "list").stdout


def test_what_cannot_be_revoked(cli: Cli) -> None:
    """One sentence, exit code 1; a secret given by mistake is not repeated."""
    made = cli.json("token", "create", "--space", "work")
    cli("token", "revoke", made["token"]["id"])
    for wrong in ("nothing", made["token"]["id"], made["secret"]):
        refused = cli("token", "revoke", wrong)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "no token in force has this id" in check_error(refused.stderr)
        assert wrong not in refused.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give either --space or --all-spaces"),
        (["--space", "work", "--all-spaces"], "give either --space or --all-spaces"),
        (["--space", "work", "--scope", "own"], "--scope"),
        (["--space", "work", "--expires", "2020-01-01"], "which is past"),
        (["--space", "work", "--expires", "soon"], "which is not a time"),
        (["--space", ""], "space is empty"),
    ],
)
def test_what_no_token_is_made_of(cli: Cli, words: list[str], says: str) -> None:
    """A sentence on standard error, exit code 2, and no token."""
    refused = cli("token", "create", *words)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert says in check_error(refused.stderr)
    assert cli.json("token", "list") == []


def test_a_token_makes_a_store_and_looking_does_not(tmp_path: Path) -> None:
    """`create` is what a new installation may begin with; `list` needs a store that is there."""
    cli = Cli(tmp_path)
    assert cli("token", "list").exit_code == 2
    assert not (tmp_path / "memory.db").exists()
    assert cli("token", "create", "--all-spaces").exit_code == 0
    assert len(cli.json("token", "list")) == 1


@pytest.mark.parametrize("words", [["token"], ["token", "--help"], ["token", "create", "-h"]], ids=" ".join)
def test_help(cli: Cli, words: list[str]) -> None:
    """The group alone is no error: it shows its commands."""
    shown = cli(*words)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert all(name in shown.stdout for name in (COMMANDS if len(words) < 3 else ["--all-spaces", "--expires"]))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help_and_an_example(name: str) -> None:
    """Each takes `--json` and `--store`, and docs/cli.md uses only options that there are."""
    command = typer.main.get_command(app).commands["token"].commands[name]  # type: ignore[attr-defined]
    assert command.help
    assert all(parameter.help for parameter in command.params)
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert flags >= {"--store", "--json"}
    examples = re.findall(rf"^\$ recollect token {name}\b(.*)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert examples
    assert {flag for example in examples for flag in re.findall(r"(?<=\s)--[a-z][a-z-]*", example)} <= flags
