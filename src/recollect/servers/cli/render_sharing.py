"""Grants as people read them."""

from __future__ import annotations

from recollect.servers.cli.render import one_line
from recollect.types import Grant

MAY = {"read": "may read", "write": "may read and write"}


def granted(grant: Grant) -> str:
    """Who may do what where, or could."""
    may = f"{grant.to} {MAY[grant.access]} {grant.namespace} of {grant.space}"
    return one_line(may if grant.accepted else f"offered, not accepted yet: {may}")
