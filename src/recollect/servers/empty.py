"""A note for those who look into a space that holds nothing: often its name was misspelt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.errors import RecollectError
from recollect.servers.caller import Caller

if TYPE_CHECKING:
    from recollect.client import AsyncRecollect

MOST = 10
"""Names of other spaces that a note holds."""


def empty_note(space: str, holding: Sequence[str]) -> str:
    """That a space is empty, and which others hold something; nothing where it is one of them.

    >>> empty_note("wrok", ["home", "work"])
    "space 'wrok' is empty; these hold something: home, work"
    """
    if space in holding:
        return ""
    if not holding:
        return f"space {space!r} is empty"
    more = f" and {len(holding) - MOST:,} more" if len(holding) > MOST else ""
    return f"space {space!r} is empty; these hold something: {', '.join(holding[:MOST])}{more}"


async def note_for(caller: Caller, client: AsyncRecollect, space: str) -> str:
    """The note with the spaces that a caller may read. A store that does not answer is no reason to fail."""
    try:
        holding = await client.spaces()
    except RecollectError:
        return ""
    if space in holding:
        return ""
    return empty_note(space, [name for name in holding if caller.may("read", name)])
