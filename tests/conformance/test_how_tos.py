"""The how-tos of CONTRIBUTING.md, followed to the letter."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from tests.third_party import install

ROOT = Path(__file__).parents[2]


def blocks(heading: str, language: str) -> list[str]:
    """The code of one how-to, in its order."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## )", page, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for code in re.findall(rf"^ *```{language}\n(.*?)^ *```", section, re.DOTALL | re.M)]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the source, to be changed: links to its files, so that it is there at once."""
    source = ROOT / "src" / "recollect"
    shutil.copytree(source, tmp_path / "src" / "recollect", copy_function=os.symlink, ignore=lambda *_: ["__pycache__"])
    return tmp_path / "src"


def run(path: Path, *command: str, question: str = "") -> str:
    """What a command of Python prints with a folder before everything else on its path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT / "src")])}
    done = subprocess.run(
        [sys.executable, *command], env=environment, cwd=path, input=question, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cli(path: Path, *arguments: str) -> str:
    return run(path, "-m", "recollect.servers.cli", *arguments)


def test_add_a_recipe(copy: Path) -> None:
    """The function of the how-to, named in `RECIPES`, is a recipe that the command line lists and asks with."""
    (function,) = blocks("Add a recipe", "python")
    file = copy / "recollect" / "recipes.py"
    text = file.read_text(encoding="utf-8")
    file.unlink()
    changed = text.replace("\nRECIPES:", f"\n{function}\n\nRECIPES:").replace(
        "_novamem())", "_novamem(), _words_first())"
    )
    file.write_text(changed, encoding="utf-8")
    assert "words_first" in [recipe["name"] for recipe in json.loads(cli(copy, "recipes", "--json"))]
    store = ("--store", f"sqlite:///{copy / 'memory.db'}", "--embedder", "hashing")
    cli(copy, "remember", "Invoice 12345 was paid", *store)
    answer = json.loads(cli(copy, "recall", "invoice 12345", "--recipe", "words_first", "--json", *store))
    assert [lane["lane"] for lane in answer["lanes"]] == ["keyword", "vector"]
    assert answer["hits"][0]["memory"]["text"] == "Invoice 12345 was paid"


def install_as_declared(folder: Path, name: str, code: str, declared: str) -> None:
    """Install a module with the entry points of its `pyproject.toml`."""
    ((group, points),) = tomllib.loads(declared)["project"]["entry-points"].items()
    lines = "\n".join(f"{name} = {value}" for name, value in points.items())
    install(folder, name, code, f"[{group}]\n{lines}\n")


def test_add_a_leg(tmp_path: Path) -> None:
    """The package of the how-to adds a leg that a recipe names, and the answer says what it found."""
    (declared,), (code, use) = blocks("Add a leg", "toml"), blocks("Add a leg", "python")
    install_as_declared(tmp_path, "recollect_identifiers", code, declared)
    assert run(tmp_path, "-c", use) == "Invoice 12346 is still open ['numbers', 'vector']\n"


def test_add_a_store(tmp_path: Path) -> None:
    """The package of the how-to passes specs of the kit, and its scheme opens its store."""
    (declared,), (code,) = blocks("Add a store", "toml"), blocks("Add a store", "python")
    install_as_declared(tmp_path, "recollect_notes", code, declared)
    kit = ("-m", "pytest", "-p", "recollect_conformance", "--recollect-store", "recollect_notes:make", "-k", "history")
    assert " passed" in run(tmp_path, *kit, "-p", "no:cacheprovider")
    store = ("--store", f"notes://{tmp_path / 'notes.db'}", "--embedder", "hashing")
    cli(tmp_path, "remember", "Invoice 12345 was paid", *store)
    assert "Invoice 12345 was paid" in cli(tmp_path, "recall", "invoice 12345", "--json", *store)


def test_add_a_door(copy: Path) -> None:
    """The door of the how-to answers a question, with the reasons that every door gives."""
    (code,) = blocks("Add a door", "python")
    package = copy / "recollect" / "servers" / "lines"
    package.mkdir()
    package.joinpath("__init__.py").touch()
    package.joinpath("door.py").write_text(code, encoding="utf-8")
    url = f"sqlite:///{copy / 'memory.db'}"
    cli(copy, "remember", "Invoice 12345 was paid", "--store", url, "--space", "work")
    start = f"from recollect.servers.lines.door import serve; serve({url!r}, 'work')"
    answer = run(copy, "-c", start, question="invoice 12345\n")
    assert re.fullmatch(r"Invoice 12345 was paid \(.*words #1.*\)\n", answer), answer
