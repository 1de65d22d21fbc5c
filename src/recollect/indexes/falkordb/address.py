"""Where an index lives: the server in its URL, and the names of its keys there.

PREFIX:generations     how many generations were begun
PREFIX:generation      the one that answers; none: 0
PREFIX:N:SPACE         the graph of a space in generation N
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from recollect.errors import ConfigError

PORT: Final = 6379
PREFIX: Final = "recollect"
TLS: Final = {"falkordb": False, "falkordbs": True}
NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class GraphName(NamedTuple):
    """What a graph is called on the server, taken apart."""

    generation: int
    space: str


@dataclass(frozen=True, slots=True)
class Address:
    """The server and the prefix that a URL names. The password never appears in a repr or a message."""

    host: str
    port: int = PORT
    prefix: str = PREFIX
    tls: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @staticmethod
    def parse(url: str) -> Address:
        """Read `falkordb://[user:password@]host[:port][/prefix]`. Raises ConfigError."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise _refused("its host or port cannot be read") from None
        if reason := _fault(parts):
            raise _refused(reason)
        return Address(
            host=unquote(parts.hostname or ""),
            port=PORT if port is None else port,
            prefix=parts.path.strip("/") or PREFIX,
            tls=TLS[parts.scheme],
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
        )

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"FalkorDB on {host}:{self.port}"

    @property
    def current(self) -> str:
        return f"{self.prefix}:generation"

    @property
    def begun(self) -> str:
        return f"{self.prefix}:generations"

    @property
    def tickets(self) -> str:
        return f"{self.prefix}:tickets"

    def graph(self, generation: int, space: str) -> str:
        return f"{self.prefix}:{generation}:{key_of(space)}"

    def graph_name(self, name: str) -> GraphName | None:
        """The generation and space of a graph of this index; None for other names."""
        prefix, _, rest = name.partition(":")
        number, colon, space = rest.partition(":")
        if prefix != self.prefix or not colon or not number.isdecimal():
            return None
        return GraphName(int(number), name_of(space))


def key_of(name: str) -> str:
    """A space or an id quoted for FalkorDB: letters, digits and `%_.-~`. Its index trims blanks, and colons separate
    the parts of our keys.
    """
    return quote(name, safe="")


def name_of(key: str) -> str:
    """The name behind a key."""
    return unquote(key)


def _fault(parts: SplitResult) -> str:
    """What is wrong with a URL, or an empty string."""
    if parts.scheme not in TLS:
        return f"it must begin with {' or '.join(f'{scheme}://' for scheme in TLS)}"
    if not parts.hostname:
        return "it names no host"
    if parts.port == 0:
        return "0 is not a port"
    if parts.query or parts.fragment:
        return "it takes no options after ? or #"
    if parts.path.strip("/") and not NAME.fullmatch(parts.path.strip("/")):
        return "its prefix must be letters, digits, dots, dashes and underscores"
    return ""


def _refused(reason: str) -> ConfigError:
    """The message leaves out the URL, which may hold a password."""
    return ConfigError(
        f"the URL of the graph index is not a FalkorDB URL ({reason}): write falkordb://:password@host:6379/prefix"
    )
