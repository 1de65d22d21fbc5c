"""What a Postgres store really asks of its server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from psycopg import AsyncConnection


class Statement(NamedTuple):
    """A statement on one line, its parameters, and a number of the connection that it was sent over."""

    connection: int
    sql: str
    values: Mapping[str, Any]


def record_statements(monkeypatch: pytest.MonkeyPatch) -> list[Statement]:
    """Every statement from now on, in the order in which they are sent."""
    sent: list[Statement] = []
    execute = AsyncConnection.execute

    async def recorded(self: AsyncConnection[Any], query: Any, params: Any = None, **options: Any) -> Any:
        sent.append(Statement(id(self), " ".join(str(query).split()), params or {}))
        return await execute(self, query, params, **options)

    monkeypatch.setattr(AsyncConnection, "execute", recorded)
    return sent
