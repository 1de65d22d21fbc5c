"""The Postgres store keeps every spec, on the private server and on one that is named with `--pg-dsn`."""

from __future__ import annotations

import pytest

from recollect.conformance import SPECS, Spec
from recollect.stores.postgres.store import PostgresStore


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.area}.{spec.name}")
async def test_spec(spec: Spec, pg_store: PostgresStore) -> None:
    """What the spec's docstring says holds for Postgres."""
    await spec.check(pg_store)
