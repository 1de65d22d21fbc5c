"""Hints are commands that work as they stand: collected from a scenario, and run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.exceptions import TyperException
from typer.testing import CliRunner, Result

from recollect import AsyncRecollect, EmbeddingMismatch, Recollect
from recollect.servers.cli.main import app
from recollect.settings import with_store
from recollect.types import Generation
from tests.servers.cli_runner import Cli
from tests.servers.dashboard_reader import reading

SOURCES = Path(__file__).parents[2] / "src" / "recollect"


def run(command: str) -> Result:
    """A hint, as somebody who copies it runs it: without the settings of whoever saw it."""
    name, *words = shlex.split(command)
    assert name == "recollect"
    return CliRunner().invoke(app, words, env={"RECOLLECT_EMBEDDER": "hashing"}, prog_name="recollect")


def hints(text: str) -> list[str]:
    return re.findall(r"`(recollect [^`]+)`", " ".join(text.split()))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store whose path needs quotes."""
    folder = tmp_path / "my notes"
    folder.mkdir()
    return f"sqlite:///{folder}/memory.db"


def test_a_store_that_is_not_there(url: str) -> None:
    """The hint makes it, and then the command that failed works; the library says the same."""
    failed = ["list", "--store", url]
    (hint,) = hints(CliRunner().invoke(app, failed).stderr)
    with pytest.raises(Exception, match="there is no store") as refused:
        Recollect(url, create=False)
    assert hints(str(refused.value)) == [hint]
    assert run(hint).exit_code == 0
    assert CliRunner().invoke(app, failed).exit_code == 0


def test_a_list_that_goes_on(url: str) -> None:
    """What is printed under a page prints the next, with all of the options that were given."""
    with Recollect(url, embedder="hashing") as opened:
        for number in range(3):
            opened.space("the team").remember(f"note {number}", tags=["a b"])
            opened.space("the team").remember(f"other {number}")
    words = ["list", "--newest", "--limit", "2", "--tag", "a b", "--space", "the team", "--store", url]
    shown = CliRunner().invoke(app, words).stdout
    assert "note 2" in shown
    (more,) = shown.split("more: ")[1].splitlines()
    rest = run(more).stdout
    assert "note 0" in rest
    assert "note 1" not in rest
    assert "other" not in rest


def test_what_to_type_after_the_demo(url: str) -> None:
    """Each command that names the demo's store works."""
    shown = CliRunner().invoke(app, ["demo", "--embedder", "hashing", "--store", url, "--space", "the team"])
    assert shown.exit_code == 0, shown.stderr
    commands = [line.strip() for line in shown.stdout.splitlines() if line.startswith("  recollect ") and url in line]
    assert len(commands) == 3
    for command in commands:
        result = run(command)
        assert result.exit_code == 0, result.stderr
        assert "is empty" not in result.stderr


def test_an_agents_configuration(tmp_path: Path) -> None:
    """The hint under it writes it."""
    file = tmp_path / "my agent.json"
    words = ["mcp", "--install", "cursor", "--file", str(file), "--space", "the team"]
    (hint,) = hints(CliRunner().invoke(app, words).stderr)
    assert run(hint).exit_code == 0
    assert "the team" in file.read_text("utf-8")


def test_a_token_that_is_not_there(url: str) -> None:
    """Where to look for the others."""
    Recollect.migrate(url)
    result = CliRunner().invoke(app, ["token", "revoke", "0" * 16, "--store", url])
    (hint,) = hints(result.stderr)
    assert url in hint
    assert run(hint).exit_code == 0


async def test_an_empty_space_on_the_dashboard(url: str) -> None:
    """The page shows a command that fills it, to those alone who administer the server."""
    async with AsyncRecollect(url, embedder="hashing") as client, reading(client) as reader:
        html = await reader.get("/memories", space="the team")
        hint = unescape(html.split("<code>")[1].split("</code>")[0])
        assert run(hint).exit_code == 0
        assert (await client.space("the team").stats()).memories == 1
        issued = await client.tokens.create(spaces=["home"], scope="read")
        reader.http.headers["Authorization"] = f"Bearer {issued.secret}"
        assert "my notes" not in await reader.get("/memories", space="home")


def test_a_store_of_another_model() -> None:
    """The command that changes it, and which embedder it was, where that is known."""
    (hint,) = hints(str(EmbeddingMismatch.between(Generation("old", 3), "new", 4)))
    assert hint == "recollect reembed --embedder NAME"
    said = str(EmbeddingMismatch.between(Generation("multilingual-e5-small", 3), "granite-embedding-30m-english", 4))
    assert hints(said) == ["recollect reembed --embedder local"]
    assert "open it with the embedder local-multilingual" in said


def test_the_way_back_after_a_change_of_model(url: str) -> None:
    """The command names the store and the embedder before."""
    with Recollect(url, embedder="hashing:32") as opened:
        opened.space("work").remember("the fox is red")
    done = CliRunner().invoke(app, ["reembed", "--embedder", "hashing:64", "--store", url])
    back, drop = hints(done.stdout)
    result = run(back)
    assert result.exit_code == 0, result.stderr
    assert "hashing-32 answers now" in " ".join(result.stdout.split())
    assert run(drop).exit_code == 0


def test_the_store_is_named_where_it_must_be(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where it is used anyway, nor twice; and never with its password."""
    monkeypatch.setenv("RECOLLECT_URL", cli.url)
    assert with_store("run `recollect migrate`", cli.url) == "run `recollect migrate`"
    assert with_store("run `recollect migrate --store x`", "sqlite:///y") == "run `recollect migrate --store x`"
    masked = with_store("run `recollect migrate`", "postgresql://ada:secret@localhost/agents")
    assert masked == "run `recollect migrate --store 'postgresql://ada:…@localhost/agents'`"


def commands_in_sources() -> Iterator[str]:
    """Every command that stands in a message of ours, as far as it does not depend on what happens."""
    for path in [*SOURCES.rglob("*.py"), *SOURCES.rglob("*.html")]:
        for line in path.read_text("utf-8").splitlines():
            text = line.strip()
            if not text.startswith(('"""', "#")):
                yield from re.findall(r"(?:`|<code>)(recollect [a-z][^`<{]*)(?:`|</code>)", text)


@pytest.mark.parametrize("command", sorted(set(commands_in_sources())))
def test_every_command_that_a_message_names_can_be_read(command: str) -> None:
    """All that it needs is there."""
    assert read(command) in command


def test_a_command_that_lacks_something_cannot_be_read() -> None:
    """Else the test above could not fail."""
    for command in ("recollect remember", "recollect list --frob", "recollect export"):
        with pytest.raises(TyperException):
            read(command)


def read(command: str) -> str:
    """See that a command line has all that it needs, without running it; the name of the command."""
    _, *words = shlex.split(command)
    found: Any = typer.main.get_command(app)
    while words and words[0] in getattr(found, "commands", {}):
        found = found.commands[words.pop(0)]
    return str(found.make_context(command, words).command.name)
