"""`recollect config`: every setting, its value, and where it came from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.servers.cli import options as opt
from recollect.servers.cli.output import show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from recollect.settings import Setting


def config(store: opt.Store = None, embedder: opt.EmbedderSpec = None, as_json: opt.Json = False) -> None:
    """Show every setting, its value, and where that came from. Keys and passwords are not shown."""
    from recollect.settings import config_paths, explained

    found, places = explained(url=store, embedder=embedder), config_paths()
    document = {"files": [{"path": str(path), "found": path.is_file()} for path in places], "settings": found}
    show(document, lambda _: sheet(found, places), as_json=as_json)


def sheet(found: Sequence[Setting], places: Sequence[Path]) -> RenderableType:
    """One line for each setting, then where `recollect.toml` was looked for."""
    from rich.console import Group
    from rich.text import Text

    from recollect.servers.cli.render import QUIET, one_line, plain_table

    table = plain_table("setting", "value", "from")
    for one in found:
        value = Text("not set", style=QUIET) if one.value is None else Text(one_line(str(one.value)), overflow="fold")
        style = QUIET if one.origin == "default" else ""
        table.add_row(one.name, value, Text(one_line(one.origin), style=style, overflow="fold"))
    used = next((path for path in places if path.is_file()), None)
    lines = [f"{'read' if path == used else 'not read' if path.is_file() else 'not there'}: {path}" for path in places]
    return Group(table, "", Text("\n".join(map(one_line, lines)), style=QUIET))
