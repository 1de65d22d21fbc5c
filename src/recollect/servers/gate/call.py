"""One call as the gate sees it: its first line, its headers, and the credentials it shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from recollect.servers.logs import one_line

STREAMED = re.compile(rb"/v1/spaces/[^/]+/import")
"""Paths whose body may have any length: it is streamed."""
SESSION_COOKIE = "recollect_session"


class Credentials(NamedTuple):
    """A token's secret; or, where a browser sent it by itself, what its session is known by."""

    secret: str
    by_cookie: bool = False


def credentials(headers: Headers) -> Credentials | None:
    """What the caller shows; a header before a cookie. Another scheme than Bearer is a secret that no token has."""
    if (given := headers.get("authorization")) is not None:
        scheme, _, secret = given.partition(" ")
        return Credentials(secret.strip() if scheme.lower() == "bearer" else "")
    secret = cookie_parser(headers.get("cookie", "")).get(SESSION_COOKIE, "")
    return Credentials(secret, by_cookie=True) if secret else None


@dataclass(frozen=True)
class Call:
    """A request's first line, headers and origin."""

    scope: Scope

    @cached_property
    def headers(self) -> Headers:
        return Headers(scope=self.scope)

    @cached_property
    def credentials(self) -> Credentials | None:
        return credentials(self.headers)

    @property
    def state(self) -> dict[str, Any]:
        """What the gate and the door behind it tell each other of it."""
        state: dict[str, Any] = self.scope.setdefault("state", {})
        return state

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @property
    def address(self) -> str:
        """Where it comes from, or "" where that is not known."""
        return str(self.scope["client"][0]) if self.scope.get("client") else ""

    @property
    def streamed(self) -> bool:
        return self.method == "POST" and STREAMED.fullmatch(self.scope.get("raw_path") or b"") is not None

    @property
    def declared(self) -> int:
        """The size of its body, as far as it says."""
        said = self.headers.get("content-length", "")
        return int(said) if said.isdecimal() else 0

    @property
    def target(self) -> str:
        """The path and the query, to come back to."""
        query = self.scope.get("query_string", b"").decode("latin-1")
        return f"{self.path}?{query}" if query else self.path

    def __str__(self) -> str:
        """For log lines: without the query, which may hold anything."""
        return one_line(f"{self.method} {self.path}")
