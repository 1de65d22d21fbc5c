"""The address of a Qdrant, parsed from its URL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from recollect.errors import ConfigError

PORT: Final = 6333
PREFIX: Final = "recollect"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FORMS: Final = "qdrant+http://host:6333, qdrant+https://host:6333/prefix, or qdrant+local:///folder"


@dataclass(frozen=True, slots=True)
class Address:
    """A server's URL, or a folder for the local mode; and the prefix of our collections."""

    place: str | Path
    prefix: str = PREFIX

    def __str__(self) -> str:
        return f"the Qdrant folder {self.place}" if isinstance(self.place, Path) else f"Qdrant at {self.place}"


def parse(url: str) -> Address:
    """The address in a URL. Raises ConfigError, whose message does not repeat a password."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "qdrant+local":
        return Address(_folder(rest))
    if separator and scheme in ("qdrant+http", "qdrant+https"):
        return _server(url)
    raise ConfigError(f"the URL of Qdrant begins with {scheme[:40]!r}, and must be like {_FORMS}")


def _folder(rest: str) -> Path:
    path = unquote(rest.removeprefix("/"))
    if not path or not rest.startswith("/") or set("?#\x00") & {*rest, *path}:
        raise ConfigError(
            "the URL of Qdrant's local mode names no folder: write qdrant+local:///folder, or "
            "qdrant+local:////absolute/folder"
        )
    return Path(path).expanduser()


def _server(url: str) -> Address:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or PORT
    except ValueError as error:
        raise ConfigError(f"the URL of Qdrant cannot be read ({error}): write it like {_FORMS}") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError("the URL of Qdrant holds a user or a password: leave it out, and set the API key instead")
    if not host or parts.query or parts.fragment or not re.fullmatch(r"[\w.:%-]+", host, re.ASCII):
        raise ConfigError(f"the URL of Qdrant names no server: write it like {_FORMS}")
    shown = f"[{host}]" if ":" in host else host
    return Address(f"{parts.scheme.removeprefix('qdrant+')}://{shown}:{port}", _prefix(parts))


def _prefix(parts: SplitResult) -> str:
    prefix = unquote(parts.path.strip("/")) or PREFIX
    if not _NAME.fullmatch(prefix):
        raise ConfigError(
            f"the URL of Qdrant ends in {prefix[:80]!r}, and the prefix of its collections must be up to 64 letters, "
            "digits, hyphens and underscores"
        )
    return prefix
