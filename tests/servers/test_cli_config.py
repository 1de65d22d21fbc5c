"""`recollect config`: every setting, its value, and where it came from."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from recollect.settings import Settings
from tests.servers.cli_runner import Cli

FILE = """
url = "postgresql://ada:hunter2@localhost/agents"
[openai]
key = "sk-secret"
keys = { work = "sk-other" }
[postgres]
pool_size = 3
halfvec = false
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shown(cli: Cli, *words: str) -> dict[str, tuple[Any, str]]:
    return {one["name"]: (one["value"], one["origin"]) for one in cli.json("config", *words)["settings"]}


def test_every_setting_is_shown(cli: Cli) -> None:
    """Also one that is added tomorrow."""
    settings = Settings.load()
    names = set()
    for one in fields(settings):
        value = getattr(settings, one.name)
        names |= {f"{one.name}.{inner.name}" for inner in fields(value)} if is_dataclass(value) else {one.name}
    assert set(shown(cli)) == names


def test_where_a_value_came_from(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line, over the environment, over the file, over the default."""
    (tmp_path / "recollect.toml").write_text(FILE, "utf-8")
    monkeypatch.setenv("QDRANT_API_KEY", "q-secret")
    found = shown(cli, "--embedder", "openai:small")
    assert found["embedder"] == ("openai:small", "the command line")
    assert found["url"] == (cli.url, "RECOLLECT_URL")
    assert found["postgres.pool_size"] == (3, str(tmp_path / "recollect.toml"))
    assert found["postgres.halfvec"] == (False, str(tmp_path / "recollect.toml"))
    assert found["postgres.schema"] == ("recollect", "default")
    assert found["qdrant.key"] == ("…", "QDRANT_API_KEY")
    assert found["vectors"] == (None, "default")


def test_secrets_are_not_shown(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys nor the password of a URL, as text or as JSON."""
    (tmp_path / "recollect.toml").write_text(FILE, "utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-third")
    for words in ((), ("--json",), ("--store", "postgresql://ada:hunter2@localhost/agents")):
        said = cli("config", *words).stdout
        assert "…" in said or "\\u2026" in said
        assert not any(secret in said for secret in ("hunter2", "sk-secret", "sk-other", "sk-third"))


def test_it_says_where_the_file_was_looked_for(cli: Cli, tmp_path: Path) -> None:
    """The working folder, then the user's configuration folder; the first that is there is read."""
    own = tmp_path / "config" / "recollect" / "recollect.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[postgres]\npool_size = 5\n", "utf-8")
    assert cli.json("config")["files"] == [
        {"path": str(tmp_path / "recollect.toml"), "found": False},
        {"path": str(own), "found": True},
    ]
    assert shown(cli)["postgres.pool_size"] == (5, str(own))
    said = " ".join(cli("config").stdout.split())
    assert "not there:" in said
    assert "postgres.pool_size 5" in said
