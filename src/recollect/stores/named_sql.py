"""Named SQL: a file in a store's `sql/` holds blocks that begin with `-- name: …` and a comment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_STEP = re.compile(r"(\d{3})_\w+\.sql")
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def read(module: str, name: str) -> str:
    """The text of one file in the `sql/` beside a module."""
    return files(module.rpartition(".")[0]).joinpath("sql", name).read_text(encoding="utf-8")


@cache
def load(module: str, name: str) -> Mapping[str, str]:
    """The statements of one file in the `sql/` beside a module by their names, comments left out."""
    _, *parts = _NAME.split(read(module, name))
    return MappingProxyType({key: _statement(body) for key, body in zip(parts[::2], parts[1::2], strict=True)})


@cache
def steps_beside(module: str) -> Mapping[int, str]:
    """Each migration in the `sql/migrations/` beside a module, by the version that it leads to."""
    folder = files(module.rpartition(".")[0]).joinpath("sql", "migrations")
    if not folder.is_dir():
        return {}
    named = ((_STEP.fullmatch(entry.name), entry) for entry in folder.iterdir())
    return {int(match[1]): entry.read_text(encoding="utf-8") for match, entry in named if match}


def newest(steps: Mapping[int, str]) -> int:
    """The version that a schema has after all steps."""
    return max(steps, default=1)


def _statement(block: str) -> str:
    return "\n".join(line for line in block.splitlines() if line.strip() and not line.startswith("--"))
