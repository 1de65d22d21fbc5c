"""Signing in and out: a session in a cookie, for people who cannot send a header. And the theme of the pages."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response

from recollect.errors import InvalidRequest, NotAllowed
from recollect.servers.dashboard.shell import THEME_COOKIE, THEMES, Visit, go, local
from recollect.servers.gate.call import SESSION_COOKIE
from recollect.servers.problems import Problem, problem_of
from recollect.types import Token

YEAR = 365 * 24 * 3600


async def show(visit: Visit) -> Response:
    """The form, open to all. A cookie that is no longer valid is removed."""
    needed = await visit.client.tokens.required()
    response = visit.page("login.html", next=local(visit.asked("next")), needed=needed, error="")
    if SESSION_COOKIE in visit.request.cookies and getattr(visit.request.state, "caller", None) is None:
        visit.keep(response, SESSION_COOKIE, "", seconds=0)
    return response


async def sign_in(visit: Visit) -> Response:
    """A right token begins a session, which is all that the cookie holds; a wrong one is answered with 401, and one too
    many with 429.
    """
    form = await visit.form()
    next = local(form.get("next", ["/"])[0])
    try:
        token = await visit.client.tokens.check(form.get("token", [""])[0].strip())
    except NotAllowed as error:
        return refused(visit, next, getattr(visit.request.state, "spent", None) or problem_of(error))
    used = getattr(visit.request.state, "used", None)
    if used and (refusal := used(token)):
        return refused(visit, next, refusal)
    response = go(next)
    visit.keep(response, SESSION_COOKIE, await visit.client.tokens.sign_in(token), seconds_left(token))
    return response


def refused(visit: Visit, next: str, problem: Problem) -> Response:
    """The form again, with what was wrong."""
    again = visit.page("login.html", problem.status, next=next, needed=True, error=problem.detail)
    again.headers.update(problem.headers)
    return again


async def sign_out(visit: Visit) -> Response:
    """End the session; the token itself stays valid."""
    if session := visit.request.cookies.get(SESSION_COOKIE):
        await visit.client.tokens.sign_out(session)
    response = go("/login")
    visit.keep(response, SESSION_COOKIE, "", seconds=0)
    return response


async def choose_theme(visit: Visit) -> Response:
    """Light, dark, or as the system says; kept in a cookie, so that it works without scripts."""
    form = await visit.form()
    theme = form.get("theme", [""])[0]
    if theme not in THEMES:
        raise InvalidRequest(f"the theme is {theme!r:.80}, and must be one of: {', '.join(THEMES)}")
    response = go(local(form.get("back", ["/"])[0]))
    visit.keep(response, THEME_COOKIE, theme, YEAR)
    return response


def seconds_left(token: Token) -> int | None:
    """How long a cookie is to live: as long as its token; else until the browser is closed."""
    if token.expires_at is None:
        return None
    return max(int((token.expires_at - datetime.now(UTC)).total_seconds()), 0)
