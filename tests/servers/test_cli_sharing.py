"""Sharing at the command line: grant, revoke, grants, and what a recall then shows."""

from __future__ import annotations

import json

from tests.servers.cli_runner import Cli


def share(cli: Cli, namespace: str = "notes") -> None:
    """A namespace of `team` is granted to `work`, which accepts it."""
    cli.json("grant", namespace, "work", "--space", "team")
    cli.json("accept", namespace, "team", "--space", "work")


def test_a_grant_is_made_accepted_listed_and_revoked(cli: Cli) -> None:
    """Each command prints what it did, as a sentence or as JSON."""
    offered = {"space": "team", "namespace": "notes", "to": "work", "access": "write", "accepted": False}
    assert cli.json("grant", "notes", "work", "--access", "write", "--space", "team") == offered
    assert cli.json("grants", "--space", "work") == cli.json("grants", "--space", "team") == [offered]
    offer = "offered, not accepted yet: work may read and write notes of team\n"
    assert cli("grants", "--space", "work").stdout == offer
    assert cli.json("accept", "notes", "team", "--space", "work") == {**offered, "accepted": True}
    assert cli("accept", "notes", "team", "--space", "work").stdout == "work may read and write notes of team\n"
    assert cli.json("grants", "--space", "team") == [{**offered, "accepted": True}]
    assert cli("grants", "--space", "work").stdout == "work may read and write notes of team\n"
    assert cli("grant", "notes", "work", "--space", "team").stdout == "work may read notes of team\n"
    revoked = cli("revoke", "notes", "work", "--space", "team")
    assert revoked.stdout == "work no longer sees notes of team\n"
    assert cli("grants", "--space", "work").stdout == "no grants\n"
    assert cli.json("grants", "--space", "work") == []


def test_a_recall_finds_what_is_shared(cli: Cli) -> None:
    """Without a namespace named, memories that others share are found, and say whose they are; not before the offer was
    accepted.
    """
    cli.remember("the umbrella is red", "--space", "team", "--namespace", "notes")
    cli.remember("the umbrella is stolen", "--space", "team", "--namespace", "secret")
    cli.json("grant", "notes", "work", "--space", "team")
    assert cli.json("recall", "umbrella", "--space", "work")["hits"] == []
    cli.json("accept", "notes", "team", "--space", "work")
    assert "shared by team / notes" in cli("recall", "umbrella", "--space", "work").stdout
    assert "shared by" not in cli("recall", "umbrella", "--space", "team").stdout
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
        share(cli, namespace)

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
    share(cli)
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
    assert "already sees its own namespaces" in oneself.stderr
    for owner, other, words in (
        ("default", "work", ("revoke", "notes", "work")),
        ("work", "default", ("accept", "notes", "work")),
    ):
        missing = cli(*words, "--json")
        assert missing.exit_code == 1
        error = json.loads(missing.stderr)["error"]
        assert error["type"] == "NotFound"
        assert error["message"] == f"space '{owner}' has not granted namespace 'notes' to space '{other}'; see `grants`"
