"""Answers: the library's values as JSON, the same as by every other door."""

from __future__ import annotations

from pydantic_core import to_json
from starlette.responses import Response

from recollect.servers.documents import json_ready
from recollect.servers.problems import MEDIA_TYPE, Problem

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def answer(value: object, status: int = 200, note: str = "") -> Response:
    """A value as a JSON document, and a note on it where there is one."""
    document = json_ready(value) | {"note": note} if note else json_ready(value)
    return Response(to_json(document, inf_nan_mode="null"), status, HEADERS, "application/json")


def refusal(problem: Problem) -> Response:
    """What went wrong, as a problem document."""
    return Response(problem.body, problem.status, {**HEADERS, **problem.headers}, MEDIA_TYPE)
