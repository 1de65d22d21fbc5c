"""Who calls: the token in a request's header or, from a browser, the session in the dashboard's cookie."""

from __future__ import annotations

from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

COOKIE = "recollect_session"


class Credentials(NamedTuple):
    """A token's secret; or, where a browser sent it by itself, what its session is known by."""

    secret: str
    by_cookie: bool = False


def credentials(headers: Headers) -> Credentials | None:
    """What the caller shows; a header before a cookie. Another scheme than Bearer is a secret that nobody has."""
    if (given := headers.get("authorization")) is not None:
        scheme, _, secret = given.partition(" ")
        return Credentials(secret.strip() if scheme.lower() == "bearer" else "")
    secret = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
    return Credentials(secret, by_cookie=True) if secret else None
