"""What going wrong looks like on this door: always a problem document, from one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from recollect.errors import InvalidRequest, RecollectError
from recollect.servers.http.answers import refusal
from recollect.servers.problems import bug, in_words, problem, problem_of

NAMED = 10
"""Mistakes of one request that its answer names."""
DETAILS: Mapping[int, str] = {
    HTTPStatus.BAD_REQUEST: "the body cannot be read as JSON: it must be UTF-8, and not nested too deeply",
    HTTPStatus.NOT_FOUND: "nothing is served at this path: see /openapi.json for what is",
    HTTPStatus.METHOD_NOT_ALLOWED: "this path does not take this method: the Allow header says which it takes",
}


def handle_failures(app: FastAPI) -> None:
    """Let an application answer with problems whatever goes wrong."""
    app.add_exception_handler(RecollectError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _bug)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, RecollectError)  # noqa: S101 - it is what this is registered for
    request.state.failure = error
    return refusal(problem_of(error))


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    mistakes = error.errors()
    if any(isinstance(mistake["input"], bytes) for mistake in mistakes):  # which JSON has none of
        return refusal(
            problem_of(InvalidRequest("the body has no JSON content type: send `Content-Type: application/json`"))
        )
    if any(mistake["type"] == "json_invalid" for mistake in mistakes):
        detail = f"the body is not JSON: {mistakes[0]['ctx']['error']} at character {mistakes[0]['loc'][-1]}"
        return refusal(problem(HTTPStatus.BAD_REQUEST, detail))
    return refusal(problem_of(InvalidRequest(all_in_words(mistakes))))


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    status = HTTPStatus(error.status_code)
    headers = {name.replace("-", "_"): value for name, value in (error.headers or {}).items()}
    return refusal(problem(status, DETAILS.get(status, str(error.detail)), **headers))


async def _bug(_: Request, __: Exception) -> Response:
    return refusal(bug())


def all_in_words(mistakes: Sequence[Mapping[str, Any]]) -> str:
    """The first mistakes, and how many more there are."""
    more = len(mistakes) - NAMED
    return "; ".join([*map(in_words, mistakes[:NAMED]), *([f"and {more:,} more"] if more > 0 else [])])
