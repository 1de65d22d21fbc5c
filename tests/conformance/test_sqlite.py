"""The SQLite store keeps every spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.conformance import SPECS, MakeStore
from recollect.conformance.suite import test_spec
from recollect.stores.sqlite.store import SqliteStore

__all__ = ["test_spec"]


@pytest.fixture
def recollect_make() -> MakeStore:
    return make


def make(folder: Path) -> SqliteStore:
    return SqliteStore(folder / "store.db")


def test_every_spec_states_its_rule() -> None:
    """Each spec has a rule to show in a report, and a name of its own."""
    assert all(spec.rule for spec in SPECS)
    assert len({str(spec) for spec in SPECS}) == len(SPECS)
