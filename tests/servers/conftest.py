"""The command line on a store of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.cli_runner import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)
