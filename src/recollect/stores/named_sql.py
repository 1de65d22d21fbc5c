"""Named SQL: a file in a store's `sql/` holds blocks that begin with `-- name: …` and a line that says what the block
is for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def read(module: str, name: str) -> str:
    """The text of one file in the `sql/` beside a module."""
    return files(module.rpartition(".")[0]).joinpath("sql", name).read_text(encoding="utf-8")


@cache
def load(module: str, name: str) -> Mapping[str, str]:
    """The statements of one file in the `sql/` beside a module by their names, comments left out."""
    _, *parts = _NAME.split(read(module, name))
    return MappingProxyType({key: _statement(body) for key, body in zip(parts[::2], parts[1::2], strict=True)})


def _statement(block: str) -> str:
    return "\n".join(line for line in block.splitlines() if line.strip() and not line.startswith("--"))
