"""backup and restore on the command line."""

from __future__ import annotations

from tests.servers.cli_runner import Cli
from tests.servers.test_cli_failures import check_error


def check_refused(cli: Cli, words: str, *command: str) -> None:
    result = cli(*command)
    assert result.exit_code == 2
    assert words in check_error(result.stderr)


def test_there_and_back(cli: Cli) -> None:
    """What was written is counted, verified by doctor, and brought back into another store."""
    a = cli.remember("one")
    cli.remember("two", "--space", "work")
    file, other = str(cli.folder / "backup.db"), f"sqlite:///{cli.folder / 'other.db'}"
    written = cli("backup", file)
    assert written.exit_code == 0
    assert written.stdout.replace("\n", "").startswith("wrote 2 memories of 2 spaces to ")
    assert "agree with their checksum" in cli("doctor", "--store", f"sqlite:///{file}").stdout.replace("\n", " ")
    assert cli.json("restore", file, "--space", "default", "--store", other)["verified"] is True
    assert cli.json("get", a, "--store", other) == cli.json("get", a)
    assert cli.json("spaces", "--store", other) == ["default"]
    assert cli("restore", file, "--store", other).exit_code == 0
    assert cli.json("spaces", "--store", other) == ["default", "work"]


def test_backup_in_json(cli: Cli) -> None:
    """The file, and how many memories of each space are in it."""
    cli.remember("one")
    file = str(cli.folder / "backup.db")
    assert cli.json("backup", file) == {"file": file, "spaces": {"default": 1}}
    check_refused(cli, "add --force to replace it", "backup", file)
    assert cli.json("backup", file, "--force")["spaces"] == {"default": 1}


def test_what_is_not_restored(cli: Cli) -> None:
    """A file that is not there, and a space that holds something else: one sentence each, and nothing changes."""
    file, other = str(cli.folder / "backup.db"), f"sqlite:///{cli.folder / 'other.db'}"
    refused = "does not exist: name a file that was written as a backup"
    check_refused(cli, refused, "restore", file, "--store", other)
    assert other not in cli("restore", file, "--store", other).stderr
    cli.remember("one")
    cli("backup", file)
    mine = cli.remember("mine", "--store", other)
    check_refused(cli, "memories that differ from the backup", "restore", file, "--store", other)
    assert [memory["id"] for memory in cli.json("list", "--store", other)["memories"]] == [mine]
    assert cli("restore", file, "--store", other, "--force").exit_code == 0
    assert len(cli.json("list", "--store", other)["memories"]) == 2
