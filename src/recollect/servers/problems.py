"""What goes wrong on a server, as RFC 9457 problem documents: the tree of `recollect.errors`, on one table."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from recollect.errors import (
    BackendError,
    BackendUnavailable,
    ConfigError,
    EmbeddingError,
    EmbeddingMismatch,
    InvalidRequest,
    NotAllowed,
    NotFound,
    RecallFailed,
    RecollectError,
    SchemaOutdated,
)
from recollect.limits import shown
from recollect.servers.documents import json_ready

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1
"""When a client may try again what failed because an engine was away."""

TABLE: Mapping[type[RecollectError], tuple[HTTPStatus, str]] = {
    InvalidRequest: (HTTPStatus.UNPROCESSABLE_ENTITY, "The request cannot be carried out as it stands"),
    NotFound: (HTTPStatus.NOT_FOUND, "Not found"),
    NotAllowed: (HTTPStatus.FORBIDDEN, "This is not allowed"),
    EmbeddingMismatch: (HTTPStatus.CONFLICT, "The store's vectors are of another model"),
    RecallFailed: (HTTPStatus.SERVICE_UNAVAILABLE, "Every lane failed"),
    SchemaOutdated: (HTTPStatus.SERVICE_UNAVAILABLE, "The store is of another version"),
    BackendUnavailable: (HTTPStatus.SERVICE_UNAVAILABLE, "An engine cannot be reached"),
    EmbeddingError: (HTTPStatus.BAD_GATEWAY, "The embedding provider failed"),
    BackendError: (HTTPStatus.INTERNAL_SERVER_ERROR, "An engine failed"),
    ConfigError: (HTTPStatus.INTERNAL_SERVER_ERROR, "The server is not set up for this"),
}
"""The status and the title of each error; the first that an error is an instance of holds."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An answer that says what was wrong. `more` are members of its own kind."""

    status: int
    kind: str
    title: str
    detail: str
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        known = {"type": f"urn:recollect:{self.kind}", "title": self.title, "status": self.status}
        return {**known, "detail": self.detail, **self.more}

    @property
    def body(self) -> bytes:
        return json.dumps(self.document, ensure_ascii=False).encode("utf-8", "backslashreplace")


def problem_of(error: RecollectError) -> Problem:
    """What a caller sees of an error that was raised on purpose."""
    status, title = next((found for kind, found in TABLE.items() if isinstance(error, kind)), BUG)
    more: dict[str, Any] = {}
    headers: dict[str, str] = {}
    if isinstance(error, NotAllowed) and not error.known:
        status, headers = HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": "Bearer"}
    if isinstance(error, RecallFailed):
        more = {"lanes": json_ready(error.lanes)}
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {"Retry-After": str(RETRY_SECONDS)}
    return Problem(status, _kebab(type(error).__name__), title, str(error), more, headers)


def problem(status: HTTPStatus, detail: str, **headers: str) -> Problem:
    """What HTTP itself has a status for; a header is named with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Problem(status, status.phrase.lower().replace(" ", "-"), status.phrase, detail, headers=named)


BUG = (HTTPStatus.INTERNAL_SERVER_ERROR, "Something is wrong here")


def bug() -> Problem:
    """What a caller sees of an unexpected error; the log has the rest."""
    status, title = BUG
    detail = "this is a fault of the server, not of the request: the reason is in its log"
    return Problem(status, "bug", title, detail)


WANTED: Mapping[str, str] = {
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "finite": "a number that is not infinite",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "a JSON object",
    "model": "a JSON object",
}
"""What a value must be, by the first word of a mistake's type."""
BOUNDS: Mapping[str, str] = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be {le} or less",
    "too_short": "must have at least {min_length} items, not {actual_length}",
    "too_long": "must have at most {max_length} items",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_unicode": "holds half a character (a lone surrogate)",
    "int_parsing_size": "has too many digits",
}
ALTERNATIVES = ("one", "many")
"""What pydantic calls the two kinds of body that take one thing or a list of them."""
OURS = "recollect"
"""The type of a mistake that our own checks found: its message is in our words already."""


def in_words(mistake: Mapping[str, Any], where: str = "") -> str:
    """One mistake that pydantic found, in our words: where it is, what is wrong, and with what value.

    >>> in_words({"type": "int_parsing", "loc": ("body", "limit"), "input": "ten"})
    "limit must be a whole number, not 'ten'"
    >>> in_words({"type": "too_short", "loc": ("body",), "input": [], "ctx": {"min_length": 1, "actual_length": 0}})
    'the body must have at least 1 item, not 0'
    """
    kind, value = str(mistake["type"]), in_json(mistake["input"])
    where = where or place_of(mistake["loc"])
    if kind == "missing":
        return f"{where} is missing"
    if kind == "extra_forbidden":
        return f"unknown name {where!r}"
    if kind == OURS:
        return f"{where} {mistake['msg']}"
    if kind == "value_error":  # whose sentence is that of the check which raised it
        return f"{where}: {mistake['ctx']['error']}".rstrip(".")
    if kind in BOUNDS:
        said = re.sub(r"\b1 items", "1 item", BOUNDS[kind].format_map(mistake.get("ctx", {})))
        return f"{where} {said}" if kind.startswith(("too", "string")) else f"{where} {said}, not {value}"
    wanted = WANTED.get(kind.partition("_")[0])
    return f"{where} must be {wanted}, not {value}" if wanted else f"{where} cannot be {value}"


def place_of(parts: Sequence[str | int]) -> str:
    """Where a mistake is, in a request: what comes after `body`, without the names of alternatives.

    >>> place_of(("body", "one", "tags", 0)), place_of(("body", "many"))
    ('tags[0]', 'the body')
    """
    named = [part for part in parts[1:] if part not in ALTERNATIVES]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in named)
    return path.removeprefix(".") or "the body"


def in_json(value: object) -> str:
    """The beginning of a value, as JSON calls it."""
    return json.dumps(value) if value is None or isinstance(value, bool) else shown(value)


def _kebab(name: str) -> str:
    """The name of a class as a part of a URN.

    >>> _kebab("NotFound")
    'not-found'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
