"""The command line on a store of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import Recollect
from tests.servers.cli_runner import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line, with a store that is there and empty."""
    cli = Cli(tmp_path)
    Recollect.migrate(cli.url)
    return cli
