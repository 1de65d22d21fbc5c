"""What every door answers with: the library's values as JSON, the same by CLI, HTTP and MCP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from recollect.types import Hit, Recall

PLAIN = frozenset({str, int, float, bool, type(None)})
"""What is JSON already: most of an answer, so it is looked for first."""
JSON_ALREADY = "metadata"
"""A field that is taken as it is: it was checked when it was stored, and may be deep."""
SHOWN: Mapping[type, tuple[str, ...]] = {
    Hit: ("memory", "score", "confidence", "why", "snippet", "before", "after"),
    Recall: ("hits", "answerable", *(field.name for field in fields(Recall) if field.name != "hits")),
}
"""Records that are shown with what they work out themselves."""


def json_ready(value: object) -> Any:
    """Records as objects, times as ISO 8601, sequences as arrays."""
    kind = type(value)
    if kind in PLAIN:
        return value
    names = _known.get(kind)
    if names is None:
        names = _known[kind] = shown_fields(kind)
    if names:
        document = {}
        for name in names:
            item = getattr(value, name)
            document[name] = item if type(item) in PLAIN or name == JSON_ALREADY else json_ready(item)
        return document
    if isinstance(value, list | tuple | set | frozenset):
        return [json_ready(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    return value


_known: dict[type, tuple[str, ...]] = {}


def shown_fields(kind: type) -> tuple[str, ...]:
    """What a record of this type is shown by; nothing, if it is no record."""
    if kind in SHOWN:
        return SHOWN[kind]
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return tuple(getattr(kind, "_fields", ()))
