"""The dashboard's routes: which view answers which path, and what a view's errors look like."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from recollect.client import AsyncRecollect
from recollect.errors import NotAllowed, RecollectError
from recollect.servers.dashboard import access, health, memories, recall, signing_in
from recollect.servers.dashboard.shell import Visit, environment, go, here
from recollect.servers.problems import Problem, problem, problem_of

ExceptionHandler: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]
View: TypeAlias = Callable[[Visit], Awaitable[Response]]
STATIC = Path(__file__).with_name("static")


def routes(client: AsyncRecollect) -> list[BaseRoute]:
    """Every page, for an application that says who calls (`request.state.caller`)."""
    templates = environment()

    def page(path: str, view: View, method: str = "GET") -> Route:
        async def endpoint(request: Request) -> Response:
            return await answer(view, Visit(client, request, templates))

        return Route(path, endpoint, methods=[method], name=view.__name__)

    return [
        page("/", recall.show),
        page("/memories", memories.browse),
        page("/memory", memories.one),
        page("/health", health.show),
        page("/spaces", access.show),
        page("/tokens", access.create, "POST"),
        page("/tokens/revoke", access.revoke, "POST"),
        page("/login", signing_in.show),
        page("/login", signing_in.sign_in, "POST"),
        page("/logout", signing_in.sign_out, "POST"),
        page("/theme", signing_in.choose_theme, "POST"),
        Mount("/static", StaticFiles(directory=STATIC), name="static"),
    ]


def lost(client: AsyncRecollect) -> ExceptionHandler:
    """What a browser is shown where there is no page."""
    templates = environment()

    async def nowhere(request: Request, _: Exception) -> Response:
        detail = f"there is no page {request.url.path!r:.200} here"
        return refused(Visit(client, request, templates), problem(HTTPStatus.NOT_FOUND, detail))

    return nowhere


async def answer(view: View, visit: Visit) -> Response:
    """A view's page, or one that says why there is none. Who is not known is sent to sign in; who was refused at the
    gate, or by an engine that it asked, is told so here.
    """
    refusal = getattr(visit.request.state, "refusal", None)
    if isinstance(refusal, Problem):
        return refused(visit, refusal)
    try:
        return await view(visit)
    except NotAllowed as error:
        if not error.known:
            return go(f"/login?next={quote(here(visit.request), safe='')}")
        return failed(visit, error)
    except RecollectError as error:
        return failed(visit, error)


def failed(visit: Visit, error: RecollectError) -> Response:
    return refused(visit, problem_of(error))


def refused(visit: Visit, problem: Problem) -> Response:
    response = visit.page("error.html", problem.status, heading=problem.title, error=problem.detail)
    response.headers.update(problem.headers)
    return response
