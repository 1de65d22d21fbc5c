"""The file or folder that the URL of a store names."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from recollect.errors import ConfigError
from recollect.settings import with_store, without_password

MEMORY = ":memory:"
"""Instead of a path: a store that is deleted when it is closed."""


def path_of(url: str, *, create: bool) -> Path:
    """The path of `scheme:///path`. Raises ConfigError if it does not exist and `create` is False."""
    scheme, _, rest = url.partition("://")
    path = unquote(rest.removeprefix("/"))
    if not path or not rest.startswith("/") or set("?#\x00") & {*rest, *path}:
        forms = f"{scheme}:///memory, or {scheme}:////absolute/memory"
        meant = without_password(f"{scheme}:///{rest}") if rest and not set("/?#\x00") & {*rest, *path} else forms
        raise ConfigError(f"{without_password(url)!r} names no file: write {meant}")
    place = Path(path).expanduser()
    if not create and path != MEMORY and not place.exists():
        raise ConfigError(
            with_store(f"there is no store at {place} yet: `recollect migrate` makes one, or name another", url)
        )
    return place
