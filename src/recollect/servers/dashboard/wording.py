"""How values read on a page: numbers, times, sizes of things, and links that keep what was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from recollect.types import Memory, Snippet

LABEL_CHARACTERS = 90


def count(number: int, one: str, many: str = "") -> str:
    """`1 memory`, `1,200 memories`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(when: datetime) -> str:
    """To the minute, in UTC."""
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def share(part: int, whole: int) -> str:
    """`2.5%`; nothing of nothing is 0%."""
    return f"{part / whole:.1%}" if whole else "0%"


def label(memory: Memory, most: int = LABEL_CHARACTERS) -> str:
    """A memory on one line: its title, and the beginning of its text."""
    words = " ".join(": ".join(part[: 4 * most] for part in (memory.title, memory.text) if part).split())
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def marked(snippet: Snippet) -> list[tuple[str, bool]]:
    """A snippet in pieces, each with whether it is a match.

    >>> marked(Snippet("a red door", ((2, 5),)))
    [('a ', False), ('red', True), (' door', False)]
    """
    pieces, at = [], 0
    for start, end in snippet.marks:
        pieces += [(snippet.text[at:start], False), (snippet.text[start:end], True)]
        at = end
    pieces.append((snippet.text[at:], False))
    return [piece for piece in pieces if piece[0]]


def link(path: str, **asked: Any) -> str:
    """A path with what was asked; what is empty is left out.

    >>> link("/memories", space="work", tag="", kind="fact")
    '/memories?space=work&kind=fact'
    """
    given = {name: value for name, value in asked.items() if value not in ("", None, False)}
    return f"{path}?{urlencode(given)}" if given else path


def indented(metadata: Mapping[str, Any]) -> str:
    return json.dumps(dict(metadata), indent=2, ensure_ascii=False)
