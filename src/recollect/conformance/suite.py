"""Every spec as a test. The pytest plugin adds this file to a run; a test module that imports `test_spec` and has a
fixture `recollect_make` checks its own store.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from recollect.conformance.capabilities import LeftOut
from recollect.conformance.specs import SPECS, MakeStore, Spec, check


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_spec(spec: Spec, recollect_make: MakeStore, tmp_path: Path) -> None:
    """What the docstring of the spec says holds for this store."""
    try:
        asyncio.run(check(spec, recollect_make, tmp_path))
    except LeftOut as reason:
        pytest.skip(str(reason))
