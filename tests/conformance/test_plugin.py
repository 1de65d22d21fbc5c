"""The conformance kit as other people run it: a store of a package of theirs, named to pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from recollect.conformance import CAPABILITIES
from recollect.ports import Ledger, Store
from tests.third_party import install

ROOT = Path(__file__).parents[2]
SOURCE = '''
from contextlib import asynccontextmanager
from recollect.stores.sqlite.store import SqliteStore

class Small(SqliteStore):
    """Has neither links nor a ledger."""
    capabilities = frozenset({"words"})
    walk = link = link_nearest = unlinked = edges = None

class Forgetful(SqliteStore):
    """Says that it forgot, and did not."""
    async def forget(self, space, ids):
        return len(ids)

class Boastful(SqliteStore):
    capabilities = frozenset({"telepathy"})

def small(folder):
    return Small(folder / "small.db")

def forgetful(folder):
    return Forgetful(folder / "forgetful.db")

def boastful(folder):
    return Boastful(folder / "boastful.db")

@asynccontextmanager
async def managed(folder):
    store = SqliteStore(folder / "managed.db")
    await store.open()
    try:
        yield store
    finally:
        await store.close()
        folder.joinpath("cleared").touch()
'''


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, "theirs", SOURCE)
    return folder


def run_pytest(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in an empty folder, with the plugin as an installed Recollect has it."""
    home = site.parent / "project"
    home.mkdir()
    path = os.pathsep.join([str(site), str(ROOT / "src")])
    command = [sys.executable, "-m", "pytest", "-p", "recollect_conformance", "-q", "--basetemp", str(home / "tmp")]
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""}
    return subprocess.run([*command, *arguments], cwd=home, env=environment, capture_output=True, text=True)


def counted(output: str) -> dict[str, int]:
    """How many tests passed, failed and were skipped."""
    return {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", output)}


def test_a_store_that_does_less_is_held_to_what_it_declares(site: Path) -> None:
    """Filters and words are checked, specs about links and tokens are skipped, and the report says why."""
    done = run_pytest(site, "--recollect-store", "theirs:small", "-k", "filters or tokens or walk or another_space")
    assert done.returncode == 0, done.stdout
    counts = counted(done.stdout)
    assert counts["passed"] >= 12
    assert counts["skipped"] >= 10
    assert "isolation.another_space_sees_nothing] SKIPPED" not in done.stdout
    assert "the store leaves out links, which has " in done.stdout
    assert "the store leaves out tokens, which has add_token()" in done.stdout


def test_a_store_that_breaks_a_rule_fails_with_the_assertion(site: Path) -> None:
    """The test is named after the spec, and the failure shows what the spec compared."""
    done = run_pytest(site, "--recollect-store", "theirs:forgetful", "-k", "beside")
    assert done.returncode == 1
    assert "test_spec[threads.beside_closes_the_gap]" in done.stdout
    assert "after: ('b', 'c') != ('c',)" in done.stdout
    assert counted(done.stdout) == {"failed": 1, "passed": 1}


def test_a_context_manager_clears_away_after_each_spec(site: Path) -> None:
    """What `make` gives may be a context manager; it is left after the spec."""
    done = run_pytest(site, "--recollect-store", "theirs:managed", "-k", "a_token_is_revoked_once")
    assert counted(done.stdout) == {"passed": 1}
    assert len(list((site.parent / "project").rglob("cleared"))) == 1


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("theirs:boastful", "the store declares ['telepathy']; there are only words, links"),
        ("theirs:nothing", "--recollect-store theirs:nothing: module 'theirs' has no attribute 'nothing'"),
        ("missing:make", "--recollect-store missing:make: No module named 'missing'"),
    ],
)
def test_a_wrong_name_is_said(site: Path, named: str, message: str) -> None:
    """A function that is not there, a capability that there is not."""
    done = run_pytest(site, "--recollect-store", named, "-k", "a_token_is_revoked_once")
    assert done.returncode != 0
    assert message in done.stdout + done.stderr


def test_other_runs_load_nothing_of_recollect(site: Path) -> None:
    """Without the option only the plugin itself is imported, and only the tests of the folder run."""
    site.joinpath("test_else.py").write_text(
        "import sys\ndef test_else(): assert not any(name.split('.')[0] == 'recollect' for name in sys.modules)\n"
    )
    done = run_pytest(site, str(site / "test_else.py"))
    assert counted(done.stdout) == {"passed": 1}, done.stdout


def test_capabilities_are_calls_of_a_store() -> None:
    """Each call that a store may leave out is one of the ports', and belongs to one capability."""
    calls = [call for calls in CAPABILITIES.values() for call in calls]
    assert len(calls) == len(set(calls))
    assert set(calls) <= {*dir(Store), *dir(Ledger)}


def test_the_plugin_comes_with_recollect() -> None:
    """The package declares it to pytest, under a name that is ours, and ships its module."""
    project = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"]["pytest11"] == {"recollect_conformance": "recollect_conformance"}
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert all((ROOT / path).exists() for path in wheel["only-include"])
    assert "src/recollect_conformance.py" in wheel["only-include"]
