"""Answers: the library's values as JSON, the same as by every other door, and their schemas for the OpenAPI document.

A schema derives from the record that `documents.json_ready` renders; answers are not checked against it on their way
out. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic_core import to_json
from starlette.responses import Response

from recollect.servers.documents import json_ready, shown_fields
from recollect.servers.problems import MEDIA_TYPE, Problem

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
NOTE = "Left out, unless the space is empty: then which spaces hold something."


def answer(value: object, status: int = 200, note: str = "") -> Response:
    """A value as a JSON document, and a note on it where there is one."""
    document = json_ready(value) | {"note": note} if note else json_ready(value)
    return Response(to_json(document, inf_nan_mode="null"), status, HEADERS, "application/json")


def refusal(problem: Problem) -> Response:
    """What went wrong, as a problem document."""
    return Response(problem.body, problem.status, {**HEADERS, **problem.headers}, MEDIA_TYPE)


def ok(kind: Any, description: str, status: int = 200, *, note: bool = False) -> dict[int | str, dict[str, Any]]:
    """What a route answers when all goes well: a value of this type, perhaps with a note."""
    model = shape(kind)
    if note:
        model = create_model(
            kind.__name__, __base__=model, __doc__=kind.__doc__, note=(str, Field("", description=NOTE))
        )
    return {status: {"model": model, "description": description}}


def document(name: str, /, **fields: Any) -> type[BaseModel]:
    """A JSON object with these fields, where the library has no record."""
    each: dict[str, Any] = {field: (shape(kind), ...) for field, kind in fields.items()}
    return create_model(name, __config__=ConfigDict(extra="forbid"), **each)


def shape(kind: Any) -> Any:
    """The type of what `json_ready` makes of a value of this type: records become models, tuples lists."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return reduce(or_, [shape(one) for one in args])
    if origin in (tuple, list):
        return list[shape(args[0])]  # type: ignore[misc]
    if origin is Mapping:
        return dict[args[0], shape(args[1])]  # type: ignore[misc, valid-type]
    if isinstance(kind, type) and issubclass(kind, tuple) and not hasattr(kind, "_fields"):
        return shape(kind.__orig_bases__[0])  # type: ignore[attr-defined]
    return _model(kind) if isinstance(kind, type) and shown_fields(kind) else kind


@cache
def _model(kind: type) -> type[BaseModel]:
    """The model of a record, with the fields that are shown of it."""
    hints = get_type_hints(kind)
    for name in set(shown_fields(kind)) - set(hints):  # a property, which may be cached
        made_by = vars(kind)[name]
        hints[name] = get_type_hints(getattr(made_by, "func", None) or made_by.fget)["return"]
    made = document(kind.__name__, **{name: hints[name] for name in shown_fields(kind)})
    made.__doc__ = kind.__doc__
    return made
