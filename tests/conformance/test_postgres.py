"""The Postgres store keeps every spec, on the private server and on one that is named with `--pg-dsn`."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.conformance import MakeStore
from recollect.conformance.suite import test_spec
from recollect.settings import PostgresSettings
from recollect.stores.postgres.store import PostgresStore

__all__ = ["test_spec"]


@pytest.fixture
def recollect_make(pg_dsn: str, pg_schema: str) -> MakeStore:
    """A store in a schema of its own."""

    def make(folder: Path) -> PostgresStore:
        return PostgresStore(pg_dsn, PostgresSettings(schema=pg_schema))

    return make
