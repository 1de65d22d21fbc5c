"""What a server tells of its engines, and to whom."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.engine.doctor import Check


def outlined(checks: Iterable[Check]) -> tuple[Check, ...]:
    """For those who do not administer all spaces: whether each engine answers. What it says of itself may name paths,
    hosts and other spaces.
    """
    return tuple(Check(one.name, one.ok, "answers" if one.ok else "does not answer") for one in checks)
