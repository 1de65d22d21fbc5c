"""Where answers go: text for people or one JSON document for programs on stdout, progress on stderr."""

from __future__ import annotations

import codecs
import io
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO, TypeVar

from recollect.servers.documents import json_ready

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

T = TypeVar("T")

WIDTH = 100
"""Columns where there is no terminal to ask, and at most where there is: longer lines are hard to read."""


def show(value: T, draw: Callable[[T], RenderableType], *, as_json: bool) -> None:
    """Print a value: as JSON, or as `draw` draws it."""
    if as_json:
        print_json(value)
    else:
        console().print(draw(value))


def hint(note: str) -> None:
    """Say something beside the answer, on standard error; nothing where there is nothing to say."""
    from recollect.servers.cli.render import visible

    if note:
        console(sys.stderr).print(visible(note), style="yellow")


def print_json(value: object) -> None:
    """One JSON document on one line; escaped beyond ASCII where the stream could not carry more."""
    unicode = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    sys.stdout.write(json.dumps(json_ready(value), ensure_ascii=not unicode) + "\n")


def console(file: TextIO | None = None) -> Console:
    """A console that prints text as it is: no markup, no guessing at numbers, no emoji names."""
    from rich.console import Console

    stream = file or sys.stdout
    made = Console(file=stream, markup=False, highlight=False, emoji=False, width=None if stream.isatty() else WIDTH)
    made.width = min(made.width, WIDTH)
    return made


def progress(*, of_bytes: bool = False) -> Progress:
    """A progress display on standard error, silent unless that is a terminal."""
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(complete_style="cyan", finished_style="cyan"),
        DownloadColumn() if of_bytes else MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console(sys.stderr),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def survive_odd_terminals() -> None:
    """A character that the terminal cannot show is printed as an escape instead of stopping the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
