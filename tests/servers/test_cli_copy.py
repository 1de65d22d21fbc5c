"""copy: from store to store on the command line."""

from __future__ import annotations

import json

import pytest

from recollect import Recollect
from tests.servers.cli_runner import Cli
from tests.servers.test_cli_failures import check_error


@pytest.fixture
def other(cli: Cli) -> str:
    """A store that is not there yet."""
    return f"sqlite:///{cli.folder / 'other.db'}"


def test_copy_says_what_is_there(cli: Cli, other: str) -> None:
    """One line for each space, and that both stores hold the same; again, there is nothing new."""
    cli.remember("one")
    cli.remember("two", "--space", "work")
    first, again = (cli("copy", cli.url, other) for _ in range(2))
    assert (first.exit_code, first.stderr) == (0, "")
    assert [line.split() for line in first.stdout.splitlines()] == [
        ["space", "memories", "new", "vectors", "links"],
        ["default", "1", "1", "1", "0", "the", "same"],
        ["work", "1", "1", "1", "0", "the", "same"],
    ]
    assert [line.split()[2] for line in again.stdout.splitlines()] == ["new", "0", "0"]


def test_copy_in_json(cli: Cli, other: str) -> None:
    """Counts and digest of each space in both stores, and the verdict."""
    a, b = cli.remember("one"), cli.remember("two", "--space", "work")
    cli.remember("not this", "--space", "third")
    done = cli.json("copy", cli.url, other, "--space", "default", "--space", "work")
    assert done["verified"] is True
    assert [space["space"] for space in done["spaces"]] == ["default", "work"]
    for space in done["spaces"]:
        assert space["source"] == space["target"]
        assert (space["source"]["memories"], space["new"], space["missing"]) == (1, 1, {"count": 0, "first": []})
        assert len(space["source"]["digest"]) == 64
    assert cli.json("get", a, "--store", other) == cli.json("get", a)
    assert cli.json("get", b, "--space", "work", "--store", other) == cli.json("get", b, "--space", "work")
    assert cli.json("spaces", "--store", other) == ["default", "work"]


def test_what_differs_is_named(cli: Cli, other: str) -> None:
    """The space, how many, the first ids; the exit code is 1."""
    a = cli.remember("one")
    cli("copy", cli.url, other)
    cli("update", a, "--title", "One", "--store", other)
    b = cli.remember("two", "--store", other)
    result = cli("copy", cli.url, other)
    assert result.exit_code == 1
    assert "DIFFERENT" in result.stdout
    assert f"space default: 1 memory ({b}) only in TO" in result.stderr
    assert f"space default: 1 memory ({a}) different" in result.stderr
    document = json.loads(cli("copy", cli.url, other, "--json").stdout)
    assert document["verified"] is False
    assert document["spaces"][0]["extra"] == {"count": 1, "first": [b]}


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        ("{url}", "{url}", "cannot be copied to itself"),
        ("{other}", "{url}", "there is no store at"),
        ("{other}", "{other}", "there is no store at"),
        ("{url}", "mysql://localhost/db", "is not the URL of a store"),
        ("memory.db", "{other}", "is not the URL of a store"),
        ("{url}", "", "is empty"),
    ],
)
def test_a_wrong_call_changes_nothing(cli: Cli, other: str, source: str, target: str, says: str) -> None:
    """The same store twice, one that is not there, one that cannot be: a sentence, exit code 2, and no new file."""
    cli.remember("one")
    before = sorted(path.name for path in cli.folder.iterdir())
    result = cli("copy", source.format(url=cli.url, other=other), target.format(url=cli.url, other=other))
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in check_error(result.stderr)
    assert sorted(path.name for path in cli.folder.iterdir()) == before


def test_a_space_that_is_not_there(cli: Cli, other: str) -> None:
    """Named beside those that are; nothing is made."""
    cli.remember("one", "--space", "work")
    result = cli("copy", cli.url, other, "--space", "home")
    assert result.exit_code == 2
    assert "space 'home' does not exist" in check_error(result.stderr)
    assert "work" in result.stderr
    assert not (cli.folder / "other.db").exists()


def test_an_empty_store(cli: Cli, other: str) -> None:
    """There is nothing to copy, and that is said."""
    assert cli("copy", cli.url, other).stdout == "nothing to copy\n"
    assert cli.json("copy", cli.url, other) == {"spaces": [], "verified": True}


def test_another_model(cli: Cli, other: str) -> None:
    """A target whose vectors another model made is refused in a sentence."""
    cli.remember("one")
    cli.remember("two", "--store", other, "--embedder", "local")
    result = cli("copy", cli.url, other)
    assert result.exit_code == 1
    assert "vectors were made by" in check_error(result.stderr)
    with Recollect(other, embedder="local") as r:
        assert r.space("default").stats().memories == 1
