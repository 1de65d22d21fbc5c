"""Snippets: the part of a text around the first match, with the places of all matches in it."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain, takewhile

from recollect.text.analyzer import matches
from recollect.types import Snippet

WIDTH = 240
ELLIPSIS = "…"


def snippet(text: str, terms: Collection[str], language: str | None = None, *, width: int = WIDTH) -> Snippet:
    """`width` characters of `text` centred on the first token that is one of `terms`, else from its beginning.

    An ellipsis stands on each side that was cut; `marks` point at every match within the snippet. `language` is the
    question's, where it shows; the text's own is guessed otherwise.

    >>> snippet("Invoice 12345 was paid on 3 May", {"12345"}, width=16).text
    '…voice 12345 was …'
    """
    found = matches(text, frozenset(terms), language)
    first = next(found, None)
    start, end = 0, min(width, len(text))
    if first and len(text) > width:
        middle = (first.start + first.end) // 2
        start = min(max(middle - width // 2, 0), len(text) - width)
        end = start + width
    left, right = (ELLIPSIS if start else ""), (ELLIPSIS if end < len(text) else "")
    inside = takewhile(lambda token: token.end <= end, chain([first], found) if first else ())
    marks = _apart([(token.start, token.end) for token in inside], len(left) - start)
    return Snippet(left + text[start:end] + right, tuple(marks))


def _apart(places: Collection[tuple[int, int]], shift: int) -> list[tuple[int, int]]:
    """Places in order, moved by `shift`; those that overlap (an identifier and its parts) are merged."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if merged and start + shift < merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end + shift)
        else:
            merged.append((start + shift, end + shift))
    return merged
