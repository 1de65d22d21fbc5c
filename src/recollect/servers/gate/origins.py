"""From where: what the Host and Origin headers may say. A page of another site must not reach a server through the
browser of somebody who may, nor by a name of its own that leads here (DNS rebinding).
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from recollect.errors import NotAllowed

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "example.com", "")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def name_of(host: str) -> str:
    """A Host header without its port; "" for one that cannot be read.

    >>> [name_of(host) for host in ("Localhost:8700", "[::1]:8700", "a@b", "")]
    ['localhost', '::1', '', '']
    """
    try:
        parts = urlsplit(f"//{host}")
    except ValueError:
        return ""
    return "" if parts.username is not None or parts.path else parts.hostname or ""


def check_host(headers: Headers) -> None:
    """For a server that is open to everybody on this machine: it must be called by a name of this machine."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not is_loopback(name_of(hosts[0])):
        raise NotAllowed(
            f"the Host header is {', '.join(hosts)!r:.80}, and a server without tokens is called as localhost or "
            "127.0.0.1: make a token by `recollect token create --all-spaces --scope admin` to use another name"
        )


def check_origin(headers: Headers, method: str, *, by_cookie: bool) -> None:
    """A browser says by which site's page a request was made: that must be a page of this server. A cookie is sent by
    browsers alone, and for what changes something the origin is then asked for.
    """
    origin = headers.get("origin")
    if origin is None:
        if by_cookie and method not in SAFE_METHODS and headers.get("sec-fetch-site") != "same-origin":
            raise NotAllowed("a request by cookie that changes something must carry an Origin header: send a token")
        return
    if origin == "null" and headers.get("sec-fetch-site") == "same-origin":
        return
    try:
        same = urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""
    except ValueError:
        same = False
    if not same:
        raise NotAllowed(f"the Origin header is {origin!r:.80}, which is not this server")
