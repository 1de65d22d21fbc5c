"""Sharing at the command line: grant, revoke, grants, and what a recall then shows."""

from __future__ import annotations

import json

from tests.servers.cli_runner import Cli


def test_a_grant_is_made_listed_and_revoked(cli: Cli) -> None:
    """Each command prints what it did, as a sentence or as JSON."""
    granted = {"space": "team", "namespace": "notes", "to": "work", "access": "write"}
    assert cli.json("grant", "notes", "work", "--access", "write", "--space", "team") == granted
    assert cli.json("grants", "--space", "work") == cli.json("grants", "--space", "team") == [granted]
    assert cli("grants", "--space", "work").stdout == "work may read and write notes of team\n"
    assert cli("grant", "notes", "work", "--space", "team").stdout == "work may read notes of team\n"
    revoked = cli("revoke", "notes", "work", "--space", "team")
    assert revoked.stdout == "work no longer sees notes of team\n"
    assert cli("grants", "--space", "work").stdout == "no grants\n"
    assert cli.json("grants", "--space", "work") == []


def test_a_recall_finds_what_is_shared(cli: Cli) -> None:
    """Without a namespace named, memories that others share are found, and say whose they are."""
    cli.remember("the umbrella is red", "--space", "team", "--namespace", "notes")
    cli.remember("the umbrella is stolen", "--space", "team", "--namespace", "secret")
    cli.json("grant", "notes", "work", "--space", "team")
    found = cli.json("recall", "umbrella", "--space", "work")["hits"]
    assert [(hit["memory"]["space"], hit["memory"]["text"]) for hit in found] == [("team", "the umbrella is red")]
    assert cli.json("revoke", "notes", "work", "--space", "team") == {
        "space": "team", "namespace": "notes", "to": "work",
    }  # fmt: skip
    assert cli.json("recall", "umbrella", "--space", "work")["hits"] == []


def test_a_recall_names_what_others_share(cli: Cli) -> None:
    """`--shared` searches what is named and nothing else, `--no-shared` all but that."""
    for space, namespace in (("team", "notes"), ("team", "plans"), ("work", "default")):
        cli.remember(f"the umbrella of {space} {namespace}", "--space", space, "--namespace", namespace)
    for namespace in ("notes", "plans"):
        cli.json("grant", namespace, "work", "--space", "team")

    def found(*words: str) -> set[str]:
        hits = cli.json("recall", "umbrella", "--space", "work", *words)["hits"]
        return {hit["memory"]["space"] + "/" + hit["memory"]["namespace"] for hit in hits}

    assert found() == {"work/default", "team/notes", "team/plans"}
    assert found("--no-shared") == {"work/default"}
    assert found("--shared", "team/notes") == {"team/notes"}
    assert found("--shared", "team/notes", "--shared", "team/plans") == {"team/notes", "team/plans"}
    assert found("--shared", "team/notes", "--namespace", "default") == {"work/default", "team/notes"}


def test_wrong_names_of_what_others_share(cli: Cli) -> None:
    """A word that names no namespace of a space is a wrong call; one that is not granted is refused."""
    cli.remember("the umbrella is red", "--space", "team", "--namespace", "notes")
    for words in (("--shared", "team"), ("--shared", "/notes"), ("--shared", "team/notes", "--no-shared")):
        wrong = cli("recall", "umbrella", *words)
        assert (wrong.exit_code, wrong.stdout) == (2, "")
        assert "--shared" in wrong.stderr
    unseen = cli("recall", "umbrella", "--shared", "team/notes")
    assert (unseen.exit_code, unseen.stdout) == (1, "")
    assert "may not see namespace 'notes' of space 'team'" in " ".join(unseen.stderr.split())


def test_whoever_was_granted_something_can_refuse_it(cli: Cli) -> None:
    """It is no longer searched; what was not granted cannot be refused."""
    cli.remember("the umbrella is red", "--space", "team", "--namespace", "notes")
    cli.json("grant", "notes", "work", "--space", "team")
    ended = cli("refuse", "notes", "team", "--space", "work")
    assert ended.stdout == "work no longer sees notes of team\n"
    assert cli.json("recall", "umbrella", "--space", "work")["hits"] == []
    again = cli("refuse", "notes", "team", "--space", "work")
    assert again.exit_code == 1
    assert "has not granted namespace 'notes' to space 'work'" in " ".join(again.stderr.split())


def test_what_cannot_be_granted_or_revoked(cli: Cli) -> None:
    """One sentence on standard error: exit code 2 for a word that is no access and for a grant to oneself, else 1."""
    wrong = cli("grant", "notes", "work", "--access", "own")
    assert wrong.exit_code == 2
    oneself = cli("grant", "notes", "default")
    assert (oneself.exit_code, oneself.stdout) == (2, "")
    assert "sees its own namespaces already" in oneself.stderr
    missing = cli("revoke", "notes", "work", "--json")
    assert missing.exit_code == 1
    error = json.loads(missing.stderr)["error"]
    assert error["type"] == "NotFound"
    assert error["message"] == "space 'default' has not granted namespace 'notes' to space 'work'; see `grants`"
