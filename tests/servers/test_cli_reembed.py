"""`recollect reembed`: another embedding model for a store that is there."""

from __future__ import annotations

from tests.servers.cli_runner import Cli


def test_a_store_changes_its_model_and_changes_back(cli: Cli) -> None:
    """What was done, which models there are, the way back, and the end of the old vectors."""
    cli.json("remember", "the fox is red")
    before = cli.json("reembed")["generations"][0]["generation"]["model"]
    done = cli.json("reembed", "--embedder", "hashing:32")
    assert (done["generation"]["model"], done["embedded"]) == ("hashing-32", 1)
    assert [one["state"] for one in cli.json("reembed")["generations"]] == ["old", "current"]
    assert cli.json("reembed", "--back")["generation"]["model"] == before
    assert "hashing-32" in cli("reembed", "--drop-old").stdout
    assert "nothing was changed" in cli("reembed", "--embedder", "hashing").stdout


def test_what_excludes_each_other_is_refused(cli: Cli) -> None:
    """Before anything is opened."""
    result = cli("reembed", "--back", "--drop-old")
    assert result.exit_code == 2
    assert "neither goes with --embedder or --back" in result.stderr


def test_a_rate_needs_something_to_embed(cli: Cli) -> None:
    """A rate alone is refused, and the bounds of one are plain numbers."""
    alone = cli("reembed", "--rate", "5")
    assert alone.exit_code == 2
    assert "--embedder" in alone.stderr
    cli.remember("The red door")
    assert "from 0.01 to 1,000,000" in cli("reembed", "--embedder", "hashing:32", "--rate", "0").stderr
