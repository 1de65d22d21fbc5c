"""The SQLite store keeps every spec."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from recollect.conformance import SPECS, Spec, run
from recollect.errors import NotFound
from recollect.ports import Store
from recollect.stores.sqlite.store import SqliteStore


@asynccontextmanager
async def fresh_store(folder: Path) -> AsyncIterator[Store]:
    store: Store = SqliteStore(folder / "store.db")
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.area}.{spec.name}")
async def test_spec(spec: Spec, tmp_path: Path) -> None:
    """What the spec's docstring says holds for SQLite."""
    async with fresh_store(tmp_path) as store:
        await spec.check(store)


async def test_every_spec_states_its_rule() -> None:
    """Each spec has a rule to show in a report, and a name of its own."""
    assert all(spec.rule for spec in SPECS)
    assert len({(spec.area, spec.name) for spec in SPECS}) == len(SPECS)


async def test_a_report_names_what_was_broken(tmp_path: Path) -> None:
    """A run goes on after a broken spec and says which rule was broken and how."""

    async def broken(store: Store) -> None:
        raise NotFound("no such luck")

    kept = next(spec for spec in SPECS if spec.name == "get_leaves_out_what_is_not_there")
    report = await run(lambda: fresh_store(tmp_path), [kept, Spec("made up", "broken", "Luck holds.", broken)])
    assert [result.spec.name for result in report.failed] == ["broken"]
    assert "1 of 2 specs kept" in str(report)
    assert "Luck holds." in str(report)
    assert "no such luck" in str(report)
