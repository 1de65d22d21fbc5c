"""What a terminal is sent: highlighted, aligned, and safe whatever a memory holds."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.console import RenderableType

from recollect.engine.transfer import BrokenLine, DanglingLine, Imported
from recollect.servers.cli import render
from recollect.servers.cli.output import console
from recollect.types import (
    Contribution,
    Expectation,
    Hit,
    LaneReport,
    Memory,
    Neighbor,
    Page,
    Recall,
    Snippet,
    Why,
)
from tests.servers.cli_runner import Cli

NASTY = "[bold]not bold[/bold] [/] :smile: \x1b[31mred\x1b]0;title\x07 \x9b2J \x7f \u202eevil \ud800 end"
NOW = datetime(2026, 5, 3, tzinfo=UTC)


def drawn(thing: RenderableType, *, color: bool = False) -> str:
    """What a console of 100 columns would send to its terminal."""
    out = io.StringIO()
    settings = console(out)  # as the commands have it, but with the colours of a terminal when a test wants them
    settings._color_system = ColorSystem.STANDARD if color else None
    settings.print(thing)
    return out.getvalue()


def memory(text: str = "The walrus paid", **fields: object) -> Memory:
    return Memory(id="m1", space="s", text=text, created_at=NOW, updated_at=NOW, **fields)  # type: ignore[arg-type]


def an_answer(text: str, snippet: Snippet | None = None, **fields: object) -> Recall:
    lanes = (LaneReport("vector", "vector", "ok", ms=1.5, candidates=9), LaneReport("keyword", "keyword", "ok"))
    why = Why(
        (Contribution("vector", 2, 0.7, 0.8, 0.4, "vector"), Contribution("keyword", 1, 7.5, 1.0, 0.5, "keyword"))
    )
    hit = Hit(memory(text), 0.9, why, lambda: snippet or Snippet(text), lambda: 0.5, before=(memory(NASTY),))
    answer = Recall((hit,), degraded=False, lanes=lanes, took=3.2, query="q", recipe="balanced")
    return replace(answer, **fields)  # type: ignore[arg-type]


def everything(text: str) -> list[RenderableType]:
    """Every place where a memory's own text is shown."""
    held = memory(text, title=text, tags=(text,), source=text, thread=text, place=1, kind=text, metadata={text: text})
    return [
        render.memory_sheet(held),
        render.memory_line(held),
        render.recall(an_answer(text), explain=True),
        render.beside(held),
        render.marked(Snippet(text, ((0, 1),))),
        render.page(Page((held,), cursor=text)),
        render.history([held]),
        render.neighbors([Neighbor(held, 0.5, 1, text)]),
        render.lane_table([LaneReport("vector", "vector", "failed", text)]),
        render.broken_lines(Imported(broken=(BrokenLine(1, text),), broken_count=1), most=1),
        render.dangling_lines(Imported(dangling=(DanglingLine(1, text),), dangling_count=1), most=1),
    ]


@pytest.mark.parametrize("position", range(11))
def test_markup_is_shown_as_it_is(position: int) -> None:
    """Square brackets in a memory are text, not style."""
    assert "[bold]x[/bold] [/] :smile:" in drawn(everything("[bold]x[/bold] [/] :smile:")[position])


@pytest.mark.parametrize("position", range(11))
def test_control_characters_do_not_reach_the_terminal(position: int) -> None:
    """Escape sequences, bells, C1 codes, bidi overrides and lone surrogates are replaced by signs."""
    shown = drawn(everything(NASTY)[position])
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    assert "␛[31mred" in shown


@given(st.text())
def test_visible_keeps_positions(text: str) -> None:
    """Each character becomes exactly one, so that marks stay where they were."""
    assert len(render.visible(text)) == len(render.one_line(text)) == len(text)
    assert "\n" not in render.one_line(text)


def test_matches_are_highlighted() -> None:
    """The marks of a snippet are shown in their own style, and nothing else is."""
    shown = render.marked(Snippet("a\x1bb walrus c", ((4, 10),)))
    assert shown.plain == "a␛b walrus c"
    assert [(span.start, span.end) for span in shown.spans] == [(4, 10)]


def test_the_reason_is_a_phrase() -> None:
    """The lane that gave the most comes first."""
    assert "words #1 +0.500  meaning #2 +0.400" in drawn(render.recall(an_answer("x")))


def test_how_sure_a_hit_is_is_shown() -> None:
    """Each hit has its confidence; where all are noise, or none is sure enough, a line says so."""
    sure = drawn(render.recall(an_answer("x")))
    assert "confidence 0.50" in sure
    assert "nothing relevant" not in sure
    hit = replace(an_answer("x").hits[0], make_confidence=lambda: 0.01)
    assert "nothing relevant" in drawn(render.recall(an_answer("x", hits=(hit,))))
    missed = drawn(render.recall(an_answer("x", hits=(), nearest_miss=hit)))
    assert "nothing relevant is remembered; the nearest miss:" in missed
    assert "confidence 0.01" in missed


def test_the_lift_of_an_exact_match_is_a_reason() -> None:
    """What fusion adds beside the lanes is shown like a lane."""
    hit = an_answer("x").hits[0]
    lifted = replace(hit, why=Why((*hit.why, Contribution("exact", 1, 7.5, 0.3, 0.3, "exact"))))
    for explain in (False, True):
        assert "exact match" in drawn(render.recall(an_answer("x", hits=(lifted,)), explain=explain))


def test_a_degraded_answer_says_what_is_missing() -> None:
    """Each lane that did not answer is named in yellow, with its reason."""
    lanes = (LaneReport("vector", "vector", "failed", "no [key] is set"), LaneReport("keyword", "keyword", "ok"))
    shown = drawn(render.recall(an_answer("x", degraded=True, lanes=lanes)), color=True)
    assert "\x1b[33mdegraded: lane vector failed: no [key] is set" in shown


def test_an_expectation_says_where_it_was_lost() -> None:
    """Stage and reason of the expected memory are shown."""
    expected = Expectation("m9", "below the cut", "it came 14 of 20", rank=14)
    assert "expected m9: below the cut, it came 14 of 20" in drawn(render.recall(an_answer("x", expected=expected)))


def test_lines_fit_their_width() -> None:
    """Nothing is wider than the console, however long the texts."""
    for thing in everything("word " * 200):
        assert max(map(len, drawn(thing).splitlines())) <= 100


def test_no_colour_where_it_is_not_wanted(cli: Cli) -> None:
    """No escape sequences into a pipe."""
    cli.remember("The walrus paid")
    assert b"\x1b" not in cli.process("recall", "walrus", "--explain").stdout
    assert b"\x1b" not in cli.process("--help").stdout


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_on_a_terminal(cli: Cli, no_color: str, coloured: bool) -> None:
    """A terminal gets colours, unless NO_COLOR is set."""
    pty = pytest.importorskip("pty", reason="pseudo-terminals are a Unix thing")
    cli.remember("The walrus paid")
    import os
    import subprocess
    import sys

    mine, theirs = pty.openpty()
    environment = {**os.environ, **cli.environment, "TERM": "xterm", "NO_COLOR": no_color}
    subprocess.run(
        [sys.executable, "-m", "recollect.servers.cli", "recall", "walrus"], stdout=theirs, env=environment, check=True
    )
    os.close(theirs)
    shown = os.read(mine, 100_000)
    os.close(mine)
    assert b"walrus" in shown
    assert (b"\x1b[1;33mwalrus" in shown) is coloured


def test_hits_that_score_nothing_are_counted_instead_of_shown() -> None:
    """Those at the end; the best hit is shown whatever it scores."""
    (hit,) = an_answer("The walrus").hits
    scored = tuple(replace(hit, score=score) for score in (0.9, 0.001, 0.2, 0.004, 0.0))
    assert "3 hits by balanced in 3 ms; 2 more with a score of 0.00 left out" in drawn(
        render.recall(an_answer("The walrus", hits=scored))
    )
    assert "1 hit by balanced in 3 ms; 1 more" in drawn(render.recall(an_answer("The walrus", hits=scored[3:])))
    assert "left out" not in drawn(render.recall(an_answer("The walrus")))
