"""Documentation that cannot drift: the examples run, the pages that are linked exist."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import recollect

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
EXAMPLES = re.compile(r"```python\n(.*?)```", re.DOTALL)
LINKS = re.compile(r"\]\(([^)#:]*)(?:#([^)]+))?\)")
ANCHORS = re.compile(r"^#+ (.+)$|<a id=\"(\w+)\">", re.MULTILINE)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def modules() -> list[str]:
    found = pkgutil.walk_packages(recollect.__path__, "recollect.")
    return ["recollect", *(m.name for m in found if not m.name.endswith("__main__"))]


@pytest.mark.parametrize("name", modules())
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    """Every `>>>` in the package does what it says."""
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_in_the_pages_are_true(page: Path) -> None:
    """Every `>>>` in the pages does what it says, with the packaged model."""
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS)
    assert failed == 0


def test_the_readmes_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The first thing a newcomer copies works as it stands."""
    (example,) = EXAMPLES.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    exec(example, {})
    assert "Invoice 12345 was paid on 3 May" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """What a page links to within the repository is there, to the heading or the word."""
    missing = []
    for link, anchor in LINKS.findall(page.read_text(encoding="utf-8")):
        target = page.parent / link if link else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(f"{link}#{anchor}")
    assert missing == []


def anchors(page: Path) -> set[str]:
    """What a link can point to on a page: its headings, in the form that GitHub gives them, and its marks."""
    found = ANCHORS.findall(page.read_text(encoding="utf-8"))
    return {mark or re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading, mark in found}


def test_the_reference_is_what_the_declarations_say() -> None:
    """docs/reference.md is what scripts/make_reference.py writes."""
    script = ROOT / "scripts" / "make_reference.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
