"""Tokens as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.text import Text

from recollect.servers.cli.render import QUIET, moment, one_line, plain_table
from recollect.types import Issued, Token


def issued(made: Issued) -> Text:
    """A new token, and its secret on a line of its own."""
    token, secret = made
    end = f"until {moment(token.expires_at)}" if token.expires_at else "until it is revoked"
    return Text.assemble(
        one_line(f"token {token.id}: {token.scope} in {_where(token)}, {end}"),
        "\nits secret, shown this once and kept nowhere:\n",
        (secret, "bold"),
    )


def listed(tokens: Sequence[Token]) -> RenderableType:
    """One line for each."""
    if not tokens:
        return "no tokens"
    now = datetime.now(UTC)
    table = plain_table("id", "name", "spaces", "scope", "made", "state")
    for token in tokens:
        state, style = _state(token, now)
        table.add_row(
            Text(token.id, no_wrap=True),
            one_line(token.name),
            one_line(_where(token)),
            token.scope,
            moment(token.created_at),
            Text(state, style=style),
        )
    return table


def _where(token: Token) -> str:
    return ", ".join(token.spaces) or "all spaces"


def _state(token: Token, now: datetime) -> tuple[str, str]:
    """Whether it can be used, and the style to say so in."""
    if token.revoked_at is not None:
        return f"revoked {moment(token.revoked_at)}", QUIET
    if token.expires_at is None:
        return "in force", "green"
    if token.expires_at <= now:
        return f"expired {moment(token.expires_at)}", QUIET
    return f"until {moment(token.expires_at)}", "green"
