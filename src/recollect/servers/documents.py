"""What every door answers with: the library's values as JSON, the same by CLI, HTTP and MCP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from recollect.types import Hit


def json_ready(value: object) -> Any:
    """Records as objects, times as ISO 8601, sequences as arrays."""
    if isinstance(value, Hit):
        shown = ("memory", "score", "why", "snippet", "before", "after")
        return {name: json_ready(getattr(value, name)) for name in shown}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: json_ready(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return json_ready(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_ready(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value
