"""Answers: the library's values as JSON, the same as by every other door."""

from __future__ import annotations

from pydantic_core import to_json
from starlette.responses import Response

from recollect.servers.documents import json_ready
from recollect.servers.problems import MEDIA_TYPE, Problem

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def answer(value: object, status: int = 200) -> Response:
    """A value as a JSON document."""
    return Response(to_json(json_ready(value), inf_nan_mode="null"), status, HEADERS, "application/json")


def refusal(problem: Problem) -> Response:
    """What went wrong, as a problem document."""
    return Response(problem.body, problem.status, {**HEADERS, **problem.headers}, MEDIA_TYPE)
