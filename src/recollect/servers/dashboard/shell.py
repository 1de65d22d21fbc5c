"""What every page shares: who asks, about which space, and the shell that the answer is shown in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from recollect.client import AsyncRecollect
from recollect.errors import BackendError, InvalidRequest, NotAllowed
from recollect.limits import check_name
from recollect.servers import why
from recollect.servers.caller import VERBS, Caller
from recollect.servers.dashboard import charts, wording

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{what} {source}" for what, source in POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Nothing inline, nothing from other sites, no frames, no cache."""

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "recollect_theme"
FORWARDED_HTTPS = re.compile(r'(?:^|;)\s*proto="?https"?\s*(?:;|$)', re.IGNORECASE)
FORM = "application/x-www-form-urlencoded"
FIELDS = 1000
"""How many fields a form may have."""


@dataclass(frozen=True, slots=True)
class Where:
    """The space that a page is about, and those that the caller can pick from (none: it must name one)."""

    space: str
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page."""

    client: AsyncRecollect
    request: Request
    templates: Environment

    @property
    def caller(self) -> Caller:
        """The caller. Raises NotAllowed where it is not known."""
        caller = getattr(self.request.state, "caller", None)
        if not isinstance(caller, Caller):
            raise NotAllowed("sign in first", known=False)
        return caller

    def asked(self, name: str, otherwise: str = "") -> str:
        """A part of the query string, without the blanks around it."""
        return self.request.query_params.get(name, "").strip() or otherwise

    async def where(self) -> Where:
        """The space that was asked for, else `default` or, without one, the first. Raises NotAllowed for another's."""
        known = await self.spaces()
        first = known[0] if known and "default" not in known else "default"
        space = check_name("space", self.asked("space") or first)
        self.caller.must("read", space)
        return Where(space, known)

    async def spaces(self) -> tuple[str, ...]:
        """The spaces that the caller may know of: those of its token, or all, if it administers all."""
        if pinned := self.caller.pinned:
            return pinned
        try:
            return tuple(await self.client.spaces()) if self.caller.may("admin") else ()
        except BackendError:  # which the page itself is about to say
            return ()

    async def form(self) -> Mapping[str, list[str]]:
        """The fields of a form that was sent, each with its values."""
        if self.request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            raise InvalidRequest(f"a form must be sent as {FORM}")
        try:
            return parse_qs((await self.request.body()).decode(), max_num_fields=FIELDS)
        except ValueError as error:
            raise InvalidRequest(f"the form cannot be read: {error}") from None

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A template in the shell."""
        caller = getattr(self.request.state, "caller", None)
        shown = {"caller": caller, "theme": self.theme, "here": here(self.request), "where": None, **values}
        html = self.templates.get_template(template).render(path=self.request.url.path, **shown)
        return HTMLResponse(html, status, HEADERS)

    @property
    def theme(self) -> str:
        chosen = self.request.cookies.get(THEME_COOKIE, "")
        return chosen if chosen in THEMES else THEMES[0]

    def keep(self, response: Response, cookie: str, value: str, seconds: int | None = None) -> None:
        """Set a cookie that neither scripts nor other sites can use, and that over https goes nowhere else."""
        response.set_cookie(cookie, value, seconds, httponly=True, samesite="strict", secure=by_https(self.request))


def environment() -> Environment:
    """Templates that escape everything, and know how values read."""
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {name: getattr(wording, name) for name in ("moment", "label", "marked", "indented")}
    made.globals |= {name: getattr(wording, name) for name in ("count", "share", "link")}
    made.globals |= {"bar": charts.bar, "why": why, "THEMES": THEMES, "VERBS": VERBS}
    return made


def by_https(request: Request) -> bool:
    """Whether the browser asked by https, as this server sees it, or a proxy in front says, or the browser's own Origin
    header. Anybody can claim it, and thereby only make a cookie of their own stricter; nothing else is believed.
    """
    headers = request.headers
    forwarded = headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return (
        request.url.scheme == "https"
        or forwarded == "https"
        or FORWARDED_HTTPS.search(headers.get("forwarded", "").partition(",")[0]) is not None
        or headers.get("origin", "").startswith("https://")
    )


def go(path: str) -> RedirectResponse:
    """To another page, by GET."""
    return RedirectResponse(path, 303, HEADERS)


def here(request: Request) -> str:
    """The page that is being looked at, to come back to."""
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def local(path: str) -> str:
    """A path of this server to go back to; the first page instead of anywhere else."""
    elsewhere = path.startswith(("//", "/\\")) or any(ord(sign) <= ord(" ") for sign in path)
    return path if path.startswith("/") and not elsewhere else "/"
