"""Snippets: the part of a text around the first match, and where the matches are."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from recollect.text.analyzer import Token, tokens
from recollect.types import Snippet

WIDTH = 240
ELLIPSIS = "…"
PIECE = 4096
"""Long texts are read in pieces of about this many characters, so that an early match is found early."""

_GAP = re.compile(r"\s")


def snippet(text: str, terms: Collection[str], *, width: int = WIDTH) -> Snippet:
    """`width` characters of `text` centred on the first token that is one of `terms`, else from its beginning.

    An ellipsis stands on each side that was cut; `marks` point at every match within the snippet.

    >>> snippet("Invoice 12345 was paid on 3 May", {"12345"}, width=16).text
    'Invoice 12345 wa…'
    """
    wanted = frozenset(terms)
    first = next(_matches(text, wanted), None) if wanted else None
    start = 0
    if first is not None and len(text) > width:
        middle = (first.start + first.end) // 2
        start = min(max(middle - width // 2, 0), len(text) - width)
    end = min(start + width, len(text))
    left, right = (ELLIPSIS if start else ""), (ELLIPSIS if end < len(text) else "")
    return Snippet(left + text[start:end] + right, _marks(text, wanted, start, end, shift=len(left) - start))


def _marks(text: str, wanted: frozenset[str], start: int, end: int, *, shift: int) -> tuple[tuple[int, int], ...]:
    if not wanted:
        return ()
    found = sorted({(start + t.start, start + t.end) for t in tokens(text[start:end]) if t.term in wanted})
    merged: list[tuple[int, int]] = []
    for left, right in found:
        if merged and left < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return tuple((left + shift, right + shift) for left, right in merged)


def _matches(text: str, wanted: frozenset[str]) -> Iterator[Token]:
    for start, piece in _pieces(text):
        for token in tokens(piece):
            if token.term in wanted:
                yield Token(token.term, start + token.start, start + token.end)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        gap = _GAP.search(text, start + PIECE) if len(text) - start > PIECE else None
        end = gap.end() if gap else len(text)
        yield start, text[start:end]
        start = end
