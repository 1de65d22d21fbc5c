"""The file or folder that the URL of a store names."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from recollect.errors import ConfigError
from recollect.settings import with_store, without_password

MEMORY = ":memory:"
"""In the place of a file: a store that is gone when it is closed."""


def path_of(url: str, *, create: bool) -> Path:
    """The path that `scheme:///path` names. Unless it may be created, there must be something."""
    scheme, _, rest = url.partition("://")
    path = unquote(rest.removeprefix("/"))
    if not path or not rest.startswith("/") or set("?#\x00") & {*rest, *path}:
        raise ConfigError(
            f"{without_password(url)!r} names no file: write {scheme}:///memory, or {scheme}:////absolute/memory"
        )
    place = Path(path).expanduser()
    if not create and path != MEMORY and not place.exists():
        raise ConfigError(
            with_store(f"there is no store at {place} yet: `recollect migrate` makes one, or name another", url)
        )
    return place
