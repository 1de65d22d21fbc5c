"""import and export: JSON Lines in and out."""

from __future__ import annotations

import json
import os
from pathlib import Path

from recollect.limits import LINE_BYTES
from tests.servers.cli_runner import Cli

GOOD = '{"text": "one", "tags": ["a"]}\n{"text": "two"}\n'


def test_a_broken_line_is_named_and_the_others_kept(cli: Cli) -> None:
    """The number and the reason of each broken line are said; the good lines are stored; the exit code is 1."""
    file = cli.folder / "lines.jsonl"
    file.write_bytes(b'{"text": "one"}\n{"text": \n\n{"text": "  "}\n{"text": "caf\xe9"}\n{"text": "two"}\n[1]\n')
    result = cli("import", str(file))
    assert result.exit_code == 1
    assert "2 new" in result.stdout
    assert "4 broken" in result.stdout
    named = [line.split(":")[0] for line in result.stderr.splitlines()]
    assert named == ["line 2", "line 4", "line 5", "line 7"]
    assert [m["text"] for m in cli.json("list")["memories"]] == ["one", "two"]


def test_broken_lines_in_json(cli: Cli) -> None:
    """`--json` counts everything and names every broken line, on standard output."""
    result = cli("import", "-", "--json", input=GOOD + "nonsense\n")
    assert result.exit_code == 1
    done = json.loads(result.stdout)
    assert (done["read"], done["created"], done["copies"], done["links"]) == (3, 2, 0, 0)
    assert [line["number"] for line in done["broken"]] == [3]


def test_a_missing_successor_is_named(cli: Cli) -> None:
    """The line is kept and told with the id that it waits for, in words or as JSON; the exit code is 0."""
    line = '{"text": "red", "id": "a", "superseded_by": "b"}\n'
    told = cli("import", "-", input=GOOD + line)
    assert (told.exit_code, told.stdout) == (0, "read 3 lines, 3 new, 0 already there, 0 links, 1 dangling\n")
    assert told.stderr == "line 3: kept, but superseded by b, which is missing: only `--superseded` recalls it\n"
    assert cli.json("import", "-", input=line)["dangling"] == [{"number": 1, "superseded_by": "b"}]
    assert cli.json("recall", "red", "--superseded")["hits"][0]["memory"]["id"] == "a"
    assert cli.json("import", "-", input='{"text": "blue", "id": "b"}\n' + line)["dangling_count"] == 0


def test_many_broken_lines_are_cut_short(cli: Cli) -> None:
    """A terminal is not flooded: twenty are named, the others counted."""
    result = cli("import", "-", input="nonsense\n" * 25)
    assert result.stderr.count("\n") == 21
    assert "and 5 others" in result.stderr


def test_importing_again_makes_no_copies(cli: Cli) -> None:
    """The same lines a second time change nothing."""
    assert cli.json("import", "-", input=GOOD)["created"] == 2
    again = cli.json("import", "-", input=GOOD)
    assert (again["created"], again["copies"]) == (0, 2)


def test_a_byte_order_mark_is_no_part_of_the_first_line(cli: Cli) -> None:
    """Files from editors that write a BOM can be imported."""
    assert cli.json("import", "-", input=b"\xef\xbb\xbf" + GOOD.encode())["created"] == 2


def test_a_line_without_end_is_not_read_whole(cli: Cli) -> None:
    """It is named, and the import ends there."""
    file = cli.folder / "endless.jsonl"
    with file.open("wb") as stream:
        stream.write(GOOD.encode())
        stream.truncate(len(GOOD.encode()) + 64 * LINE_BYTES)
    failed = cli("import", str(file))
    assert failed.exit_code == 2
    assert f"line 3 is longer than {LINE_BYTES:,} bytes" in failed.stderr


def test_export_comes_back_as_it_was(cli: Cli) -> None:
    """export, import into another space, export: the same memories and links."""
    a = cli.remember("Ärger mit dem Röster", "--tag", "x", "--metadata", '{"n": [1, null]}', "--thread", "t")
    b = cli.remember("Fixed", "--title", "T", "--source", "s", "--occurred-at", "2026-05-03", "--thread", "t")
    cli("supersede", a, "--by", b)
    cli("link", a, b, "--relation", "fixed by", "--strength", "0.5")
    file = cli.folder / "out.jsonl"
    assert cli.json("export", str(file)) == {"file": str(file), "lines": len(file.read_text().splitlines())}
    assert cli.json("import", str(file), "--space", "other")["created"] == 2
    first = cli("export", "-").stdout
    second = cli("export", "-", "--space", "other").stdout
    assert "Ärger" in first
    assert without_space(first) == without_space(second)


def without_space(lines: str) -> list[dict[str, object]]:
    memories = [json.loads(line) for line in lines.splitlines()]
    return sorted(({**line, "space": ""} for line in memories), key=json.dumps)


def test_export_leaves_no_half_file(cli: Cli) -> None:
    """An export that fails leaves what was there before, and nothing else."""
    file = cli.folder / "out.jsonl"
    file.write_text("before")
    assert cli("export", str(file), "--space", "\n").exit_code == 2
    assert [path.name for path in cli.folder.glob("out*")] == ["out.jsonl"]
    assert file.read_text() == "before"


def test_export_never_replaces_the_store(cli: Cli) -> None:
    """The store's own file is refused, whatever it is called; its memories stay."""
    cli.remember("one")
    link = cli.folder / "link.jsonl"
    link.symlink_to(cli.folder / "memory.db")
    for target in (cli.folder / "memory.db", link):
        result = cli("export", str(target))
        assert result.exit_code == 2
        assert "is the store itself" in result.stderr
    assert [m["text"] for m in cli.json("list")["memories"]] == ["one"]


def test_export_keeps_what_is_no_plain_file(cli: Cli) -> None:
    """A device is written to, not replaced; behind a link the file it leads to is; permissions stay."""
    cli.remember("one")
    assert cli("export", os.devnull).exit_code == 0
    assert not Path(os.devnull).is_file()
    real, link = cli.folder / "real.jsonl", cli.folder / "link.jsonl"
    real.write_text("before")
    real.chmod(0o600)
    link.symlink_to(real)
    assert cli("export", str(link)).exit_code == 0
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert json.loads(real.read_text())["text"] == "one"


def test_progress_is_for_terminals(cli: Cli) -> None:
    """Nothing is drawn on standard error when it is not a terminal."""
    done = cli.process("import", "-", input=GOOD.encode())
    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout == b"read 2 lines, 2 new, 0 already there, 0 links\n"


def test_an_export_that_cannot_be_written_names_the_file_it_was_given(cli: Cli) -> None:
    """Not the temporary file beside it."""
    cli.remember("The red door")
    result = cli("export", "nowhere/x.jsonl")
    assert result.exit_code == 1
    assert result.stderr.strip() == "error: nowhere/x.jsonl: No such file or directory"
