"""The command line on Postgres: the same commands by another URL, and what is said when the server is not there."""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.servers.cli_runner import Cli
from tests.servers.test_cli_failures import check_error

SECRET = "hunter2"
NOWHERE = f"postgresql://ada:{SECRET}@127.0.0.1:1/agents"


@pytest.fixture
def pg_url(pg_database: str) -> str:
    """The URL of an empty database, with a password in it, which a private server does not look at."""
    given = {key: str(value) for key, value in conninfo_to_dict(pg_database).items()}
    user, name = quote(given.pop("user", "postgres")), quote(given.pop("dbname"))
    password = quote(given.pop("password", SECRET))
    return f"postgresql://{user}:{password}@/{name}?{urlencode(given)}"


def test_every_command_works_on_postgres(cli: Cli, pg_url: str) -> None:
    """What a command does on a file it does on a server."""
    store = ("--store", pg_url)
    a = cli.remember("Invoice 12345 was paid on 3 May", "--tag", "billing", *store)
    b = cli.remember("The cat is called Minka", *store)
    assert cli.json("recall", "invoice 12345", *store)["hits"][0]["memory"]["id"] == a
    assert cli.json("get", a, *store)["tags"] == ["billing"]
    assert [memory["id"] for memory in cli.json("list", *store)["memories"]] == [a, b]
    assert cli.json("update", b, "--text", "The dog is called Rex", *store)["text"] == "The dog is called Rex"
    cli.json("link", a, b, "--relation", "beside", *store)
    assert [near["memory"]["id"] for near in cli.json("neighbors", a, *store)] == [b]
    cli.json("unlink", a, b, *store)
    assert cli.json("doctor", *store)["ok"] is True
    assert cli.json("migrate", *store)["steps"] == []
    assert cli.json("spaces", *store) == ["default"]
    file = cli.folder / "out.jsonl"
    file.write_text("before")
    cli.json("export", str(file), *store)
    assert cli.json("import", str(file), "--space", "other", *store)["created"] == 2
    assert cli.json("stats", "--space", "other", *store)["memories"] == 2
    cli.json("supersede", a, "--by", b, *store)
    assert cli.json("forget", b, *store)["forgotten"] == 1


def test_copy_to_postgres_and_back(cli: Cli, pg_url: str) -> None:
    """Either way both stores hold the same, and a space that came back is what it was."""
    cli("demo", "--store", cli.url)
    before = cli("export", "-").stdout
    assert cli.json("copy", cli.url, pg_url)["verified"] is True
    back = f"sqlite:///{cli.folder / 'back.db'}"
    assert cli.json("copy", pg_url, back)["verified"] is True
    after = cli("export", "-", "--store", back).stdout
    assert sorted(after.splitlines()) == sorted(before.splitlines())


def test_copy_of_a_database_without_a_store(cli: Cli, pg_url: str) -> None:
    """A missing FROM is a wrong call on a server, too, and TO is not made."""
    result = cli("copy", pg_url, f"sqlite:///{cli.folder / 'other.db'}")
    assert result.exit_code == 2
    assert "there is no store in" in check_error(result.stderr)
    assert not (cli.folder / "other.db").exists()


def test_migrate_adds_words_and_row_security(cli: Cli, pg_url: str) -> None:
    """Each is a step that is done once; a configuration that the server does not have is named."""
    store = ("--store", pg_url)
    cli.json("migrate", *store)
    wanted = ("--words", "german", "--words", "simple", "--row-security")
    todo = cli.json("migrate", "--dry-run", *wanted, *store)["steps"]
    assert any("german" in step for step in todo)
    assert any("row security" in step for step in todo)
    assert any("simple" in step for step in todo)
    done = cli.json("migrate", *wanted, *store)
    assert done["steps"] == todo
    (advice,) = done["advice"]
    assert advice.startswith("connect as another role from now on")
    assert cli("migrate", *store).stdout.startswith("the store is up to date\nleft to you: connect as another role")
    assert cli.json("migrate", *wanted, *store)["steps"] == []
    result = cli("migrate", "--words", "klingon", *store)
    assert result.exit_code == 2
    assert "'klingon'" in check_error(result.stderr)


@pytest.mark.parametrize("words", [("--row-security",), ("--words", "german")], ids=" ".join)
def test_a_file_has_neither(cli: Cli, words: tuple[str, ...]) -> None:
    """What only Postgres has is a wrong call on a file."""
    result = cli("migrate", *words)
    assert result.exit_code == 2
    assert "is a SQLite file" in check_error(result.stderr)


@pytest.mark.parametrize(
    "words",
    [
        ("stats", "--store", NOWHERE),
        ("remember", "x", "--store", NOWHERE),
        ("recall", "x", "--store", NOWHERE),
        ("doctor", "--store", NOWHERE),
        ("migrate", "--store", NOWHERE),
        ("export", "out.jsonl", "--store", NOWHERE),
        ("copy", NOWHERE, "sqlite:///other.db"),
        ("copy", "{url}", NOWHERE),
    ],
    ids=lambda words: " ".join(words[:1]),
)
def test_a_server_that_is_not_there(cli: Cli, words: tuple[str, ...]) -> None:
    """One sentence that names the server and not the password; exit code 1."""
    result = cli(*(word.format(url=cli.url) for word in words))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "127.0.0.1:1" in check_error(result.stderr)
    assert SECRET not in result.stderr


@pytest.mark.parametrize(
    "url",
    [f"postgres+x://ada:{SECRET}@h/db", f"postgresql://ada:{SECRET}@h:port/db", f"sqlite://ada:{SECRET}@h/db"],
)
def test_a_wrong_url_is_shown_without_its_password(cli: Cli, url: str) -> None:
    """Also where the URL is what is wrong."""
    result = cli("stats", "--store", url)
    assert result.exit_code == 2
    assert SECRET not in check_error(result.stderr)


def test_no_command_prints_the_password(cli: Cli, pg_url: str) -> None:
    """Not even the demo, which says what to type next."""
    secret = conninfo_to_dict(pg_url)["password"]
    for words in (
        ("demo",),
        ("demo", "--json"),
        ("doctor",),
        ("migrate",),
        ("export", str(cli.folder / "o"), "--json"),
    ):
        result = cli(*words, "--store", pg_url)
        assert result.exit_code == 0
        assert f":{secret}@" not in result.output
    assert json.loads(cli("demo", "--json", "--store", pg_url).stdout)["store"].count("…") == 1
