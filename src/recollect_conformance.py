"""Recollect's conformance kit as a pytest plugin: `pytest --recollect-store mypkg:make`.

It is a module of its own so that a pytest run without the option imports nothing of Recollect.
"""

from __future__ import annotations

import pkgutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from recollect.conformance import MakeStore

OPTION = "--recollect-store"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name the store to check."""
    parser.getgroup("recollect").addoption(
        OPTION, metavar="MODULE:MAKE", help="check the store that this function makes against the specs of Recollect"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Run the specs: alone, or with the tests that the command line names."""
    if not config.getoption(OPTION):
        return
    pytest.register_assert_rewrite("recollect.conformance")  # so that a failure shows what was compared
    from recollect.conformance import suite

    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []
    if suite.__file__ not in config.args:  # a worker of pytest-xdist is given the arguments of the first process
        config.args = [*config.args, suite.__file__]


@pytest.fixture(scope="session")
def recollect_make(request: pytest.FixtureRequest) -> MakeStore:
    """The function that the option names."""
    named = request.config.getoption(OPTION)
    try:
        make: MakeStore = pkgutil.resolve_name(named)
    except (ImportError, AttributeError, ValueError) as error:
        raise pytest.UsageError(f"{OPTION} {named}: {error}; write MODULE:FUNCTION") from error
    return make


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what the store leaves out, and how many specs were skipped for it."""
    if not config.getoption(OPTION):
        return
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", [])]
    reasons = Counter(str(reason[2]) for reason in skipped if isinstance(reason, tuple))
    left_out = {reason: count for reason, count in reasons.items() if "the store leaves out" in reason}
    if left_out:
        terminalreporter.section("left out by the store")
        for reason, count in sorted(left_out.items()):
            terminalreporter.line(f"{count:4} {reason.removeprefix('Skipped: ')}")
