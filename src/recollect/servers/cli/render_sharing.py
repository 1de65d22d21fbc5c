"""Grants as people read them."""

from __future__ import annotations

from recollect.servers.cli.render import one_line
from recollect.types import Grant

MAY = {"read": "may read", "write": "may read and write"}


def granted(grant: Grant) -> str:
    """Who may do what where."""
    return one_line(f"{grant.to} {MAY[grant.access]} {grant.namespace} of {grant.space}")
