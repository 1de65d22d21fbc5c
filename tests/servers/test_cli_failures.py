"""Going wrong: one sentence on standard error, the right exit code, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from recollect.engine.remember import EMBED_BATCH
from tests.servers.cli_runner import Cli

WRONG_CALLS = [
    ("recall",),
    ("recal", "x"),
    ("recall", "x", "--no-such-option"),
    ("recall", "x", "--limit", "many"),
    ("recall", "x", "--weight", "keyword"),
    ("recall", "x", "--weight", "keyword=much"),
    ("recall", "x", "--weight", "no-such-lane=1"),
    ("recall", "x", "--weight", "keyword=nan"),
    ("recall", "x", "--weight", "keyword=-1"),
    ("recall", "x", "--recipe", "no-such-recipe"),
    ("recall", "x", "--limit", "0"),
    ("recall", "x", "--limit", "-1"),
    ("recall", "x", "--limit", "1000000000"),
    ("recall", "x", "--window", "-1"),
    ("recall", "x", "--space", ""),
    ("recall", "q" * 9000),
    ("list", "--limit", "0"),
    ("neighbors", "some-id", "--depth", "0"),
    ("link", "some-id", "other-id", "--strength", "2"),
    ("remember", "   "),
    ("remember", "x", "--occurred-at", "soon"),
    ("remember", "x", "--metadata", "{"),
    ("remember", "x", "--metadata", "[1]"),
    ("update", "some-id"),
    ("update", "some-id", "--clear", "text"),
    ("supersede", "some-id"),
    ("supersede", "some-id", "new text", "--by", "other-id"),
    ("recall", "x", "--store", "mysql://localhost/db"),
    ("recall", "x", "--store", "memory.db"),
    ("recall", "x", "--embedder", "no-such-embedder"),
    ("eval", "no/such/folder"),
]

REFUSED = [
    ("get", "no-such-id"),
    ("link", "no-such-id", "neither"),
    ("update", "no-such-id", "--text", "new"),
    ("import", "no/such/file.jsonl"),
    ("export", "no/such/folder/file.jsonl"),
]


def check_error(stderr: str) -> str:
    """One line that starts with `error: `; the sentence."""
    assert stderr.startswith("error: "), stderr
    assert stderr.count("\n") == 1
    assert "Traceback" not in stderr
    assert "bug" not in stderr
    return stderr.removeprefix("error: ")


@pytest.mark.parametrize("words", WRONG_CALLS, ids=lambda words: " ".join(words)[:60])
def test_a_wrong_call_exits_with_2(cli: Cli, words: tuple[str, ...]) -> None:
    """Usage errors, values that are refused, and wrong configuration: one sentence, exit code 2."""
    result = cli(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    check_error(result.stderr)


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: " ".join(words)[:60])
def test_what_cannot_be_done_exits_with_1(cli: Cli, words: tuple[str, ...]) -> None:
    """Everything else that goes wrong: one sentence, exit code 1."""
    result = cli(*words)
    assert result.exit_code == 1
    assert result.stdout == ""
    check_error(result.stderr)


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (("get", "no-such-id"), "NotFound", 1),
        (("remember", " "), "InvalidRequest", 2),
        (("recall", "x", "--store", "mysql://x"), "ConfigError", 2),
        (("recall",), "UsageError", 2),
        (("import", "no/such/file.jsonl"), "FileNotFoundError", 1),
    ],
)
def test_json_errors(cli: Cli, words: tuple[str, ...], kind: str, code: int) -> None:
    """With `--json` an error is one JSON object on standard error, and standard output stays empty."""
    result = cli(*words, "--json")
    assert result.exit_code == code
    assert result.stdout == ""
    error = json.loads(result.stderr)["error"]
    assert error["type"] == kind
    assert error["message"]


def test_a_typing_mistake_gets_a_suggestion(cli: Cli) -> None:
    """An unknown command is answered with the likely one and where to read on."""
    message = check_error(cli("recal").stderr)
    assert "'recall'" in message
    assert "`recollect --help`" in message


def test_a_file_that_is_no_store_is_left_alone(cli: Cli) -> None:
    """Opening something else as a store is refused, and changes nothing."""
    path = cli.folder / "memory.db"
    path.write_text("These are my holiday notes, please keep them.")
    result = cli("remember", "x")
    assert result.exit_code == 1
    check_error(result.stderr)
    assert path.read_text() == "These are my holiday notes, please keep them."


def test_arguments_that_are_not_text(cli: Cli) -> None:
    """Bytes that are not UTF-8 in the arguments are refused in a sentence."""
    done = cli.process("remember", b"caf\xe9")
    assert done.returncode == 2
    check_error(done.stderr.decode())
    done = cli.process("get", b"caf\xe9")
    assert done.returncode == 2
    check_error(done.stderr.decode())


def test_standard_input_that_is_not_text(cli: Cli) -> None:
    """Bytes that are not UTF-8 on standard input are a wrong call."""
    result = cli("remember", "-", input=b"caf\xe9")
    assert result.exit_code == 2
    assert "not UTF-8" in check_error(result.stderr)


def test_a_terminal_that_knows_only_ascii(cli: Cli) -> None:
    """Text that the output cannot carry is escaped; JSON stays JSON."""
    cli.remember("Grüße aus 東京")
    shown = cli.process("recall", "Grüße", PYTHONIOENCODING="ascii")
    assert shown.returncode == 0, shown.stderr
    assert rb"Gr\xfc\xdfe" in shown.stdout
    document = cli.process("recall", "Grüße", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(document.stdout)["hits"][0]["memory"]["text"] == "Grüße aus 東京"


def test_a_reader_that_leaves(cli: Cli) -> None:
    """`recollect ... | head` ends quietly."""
    for n in range(3):
        cli.remember(f"memory {n} " + "long " * 10_000)
    for words in ("export -", "list --json", "recall memory", "--help"):
        done = subprocess.run(
            ["bash", "-c", f"{sys.executable} -m recollect.servers.cli {words} | head -c 1; echo ${{PIPESTATUS[0]}}"],
            capture_output=True,
            timeout=60,
            check=False,
            env={**os.environ, **cli.environment},
        )
        assert done.stderr == b"", words
        assert done.stdout[-2:] in (b"0\n", b"1\n"), words


def test_an_interrupt(cli: Cli) -> None:
    """Ctrl-C ends an import that waits for its next line, with exit code 130; what it stored is there."""
    started = subprocess.Popen(
        [sys.executable, "-m", "recollect.servers.cli", "import", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **cli.environment},
    )
    assert started.stdin is not None
    started.stdin.write(b"".join(b'{"text": "memory %d"}\n' % n for n in range(EMBED_BATCH)))
    started.stdin.flush()
    while cli.json("stats")["memories"] < EMBED_BATCH:
        assert started.poll() is None
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    assert started.wait(timeout=30) == 130  # while standard input is still open
    assert started.communicate() == (b"", b"")
    assert cli.json("stats")["memories"] == EMBED_BATCH


def test_a_bug_is_one_sentence_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error says what and where, and asks for a report."""

    def broken(*_: object) -> None:
        raise KeyError("walrus")

    monkeypatch.setattr("recollect.servers.cli.upkeep.open_store", broken)
    result = cli("spaces")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: unexpected KeyError at test_cli_failures.py:")
    assert result.stderr.endswith("please report this as a bug\n")


def test_asking_a_store_that_is_not_there_makes_none(cli: Cli) -> None:
    """A misspelt path is told, not answered with nothing; `remember` makes a store where there was none."""
    url, path = f"sqlite:///{cli.folder}/nowhere/typo.db", cli.folder / "nowhere" / "typo.db"
    for command in (["recall", "x"], ["list"], ["stats"], ["doctor"], ["export", "-"], ["forget", "x"]):
        result = cli(*command, "--store", url)
        assert result.exit_code == 2
        assert "there is no store at" in result.stderr
    assert not path.parent.exists()
    assert cli("remember", "x", "--store", url).exit_code == 0
    assert path.exists()


@pytest.mark.parametrize("url", ["", "sqlite://host/x.db", "sqlite:///x.db?mode=ro", "sqlite:///a%00b.db", "x.db"])
def test_a_url_that_names_no_file(cli: Cli, url: str) -> None:
    """One sentence, exit code 2, nothing made."""
    before = sorted(cli.folder.iterdir())
    result = cli("remember", "x", "--store", url)
    assert result.exit_code == 2
    assert "sqlite:///" in result.stderr
    assert sorted(cli.folder.iterdir()) == before
