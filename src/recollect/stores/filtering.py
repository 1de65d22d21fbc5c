"""What a `Filter` means, whichever database applies it: pure functions that every store shares."""

from __future__ import annotations

from typing import Final

from recollect.types import Filter

_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def is_open(where: Filter) -> bool:
    """Whether nothing but superseded and expired memories is filtered out."""
    unfiltered = Filter(
        include_superseded=where.include_superseded, include_expired=where.include_expired, now=where.now
    )
    return where == unfiltered


def first_after(prefix: str) -> str:
    """The first string that sorts, by its code points, after all that begin with `prefix`; empty when there is none."""
    stem = prefix.rstrip(chr(_LAST))
    if not stem:
        return ""
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)
