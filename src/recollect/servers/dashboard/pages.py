"""The dashboard's routes: which view answers which path, and what a view's errors look like."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from recollect.client import AsyncRecollect
from recollect.errors import NotAllowed, RecollectError
from recollect.servers.dashboard import access, health, memories, recall, signing_in
from recollect.servers.dashboard.shell import HEADERS, Visit, environment, go, here
from recollect.servers.problems import MEDIA_TYPE, Problem, problem, problem_of

ExceptionHandler: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]
View: TypeAlias = Callable[[Visit], Awaitable[Response]]
NOWHERE: Mapping[int, str] = {
    HTTPStatus.NOT_FOUND: "there is no page {path} here",
    HTTPStatus.METHOD_NOT_ALLOWED: "{path} does not take {method}: the Allow header says what it takes",
}
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
        page("/memory/used", memories.used, "POST"),
        page("/health", health.Health(client).show),
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
    """What is answered where there is no page, or none by that method: a page for people, a document for programs."""
    templates = environment()

    async def nowhere(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - it is what this is registered for
        status = HTTPStatus(error.status_code)
        detail = NOWHERE.get(status, error.detail).format(method=request.method, path=f"{request.url.path!r:.200}")
        said = problem(
            status, detail, **{name.replace("-", "_"): value for name, value in (error.headers or {}).items()}
        )
        if "text/html" in request.headers.get("accept", ""):
            return refused(Visit(client, request, templates), said)
        return Response(said.body, status, {**HEADERS, **said.headers}, MEDIA_TYPE)

    return nowhere


async def answer(view: View, visit: Visit) -> Response:
    """A view's page, or one that says why there is none. A caller that is not known is sent to sign in; one that
    the gate or an engine refused sees why.
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
    visit.request.state.failure = error
    return refused(visit, problem_of(error))


def refused(visit: Visit, problem: Problem) -> Response:
    response = visit.page("error.html", problem.status, heading=problem.title, error=problem.detail)
    response.headers.update(problem.headers)
    return response
