"""The OpenAPI document: what FastAPI derives from the routes, and beside it who may call and every way to fail."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field

from recollect.servers.http.answers import shape
from recollect.servers.problems import MEDIA_TYPE
from recollect.types import LaneReport

PROBLEM = "#/components/schemas/Problem"
FASTAPIS_OWN = ("HTTPValidationError", "ValidationError")
"""How FastAPI would answer what it cannot read; here that is a problem as any other."""
FAILURES = {
    HTTPStatus.BAD_REQUEST: "The body cannot be read.",
    HTTPStatus.UNAUTHORIZED: "No token, or one that is wrong, expired or revoked.",
    HTTPStatus.FORBIDDEN: "The token does not allow this here; or the Host or Origin header is another's.",
    HTTPStatus.NOT_FOUND: "Not found.",
    HTTPStatus.METHOD_NOT_ALLOWED: "The path does not take this method.",
    HTTPStatus.REQUEST_TIMEOUT: "The request did not come to its end.",
    HTTPStatus.CONFLICT: "Another request with this key is under way; or the store's vectors are of another model.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "The request cannot be carried out as it stands; nothing was changed.",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "The headers are too large, or too many.",
    HTTPStatus.TOO_MANY_REQUESTS: "Too often; `Retry-After` says when again.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "A fault of the server.",
    HTTPStatus.BAD_GATEWAY: "The embedding provider failed.",
    HTTPStatus.SERVICE_UNAVAILABLE: "An engine cannot be reached, or every lane of a recall failed.",
}


class Problem(BaseModel):
    """What was wrong, with what value, and what to do about it (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:recollect:not-found",
                    "title": "Not found",
                    "status": 404,
                    "detail": "space 'work' holds no memory '42'",
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    lanes: list[shape(LaneReport)] = Field(  # type: ignore[valid-type]
        default=[], description="How each lane failed, where a recall had no answer."
    )


def document(app: FastAPI) -> dict[str, Any]:
    """The document of an application."""
    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    problem.pop("$defs", None)
    schemas = made["components"]["schemas"]
    schemas["Problem"] = problem
    for name in FASTAPIS_OWN:
        schemas.pop(name, None)
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    failures = {str(int(status)): _failure(text) for status, text in FAILURES.items()}
    for path, operations in made["paths"].items():
        for operation in operations.values():
            operation["responses"].pop(str(int(HTTPStatus.UNPROCESSABLE_ENTITY)), None)
            operation["responses"] = {**failures, **operation["responses"]}
            operation["security"] = [{}] if path.startswith("/health") else [{"token": []}, {}]
    return made


def _failure(text: str) -> dict[str, Any]:
    return {"description": text, "content": {MEDIA_TYPE: {"schema": {"$ref": PROBLEM}}}}
