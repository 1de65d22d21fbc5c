"""Parses the answers of an OpenAI-compatible provider. Pure functions.

A ValueError says what was wrong, but never quotes the answer, which may hold a key or a text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from recollect.types import Vectors


def parse_answer(content: bytes, count: int) -> Vectors:
    """The `count` embeddings of an answer, in the order of their `index`, each of length 1. Raises ValueError."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    items = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise ValueError("it has no list `data`")
    if len(items) != count:
        raise ValueError(f"it has {len(items)} embeddings instead of {count}")
    embeddings = {index: item.get("embedding") for item in items if isinstance(index := item.get("index"), int)}
    if embeddings.keys() != set(range(count)):
        raise ValueError(f"its indexes are not 0 to {count - 1}")
    return _unit([_numbers(embeddings[index]) for index in range(count)])


def retry_after(value: str | None, *, now: datetime | None = None) -> float | None:
    """The seconds of a `Retry-After` header, a number or a date; None if it has neither."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - (now or datetime.now(UTC))).total_seconds()
        except (ValueError, TypeError):  # not a date, or one without a time zone
            return None
    return max(0.0, seconds) if np.isfinite(seconds) else None


def _numbers(embedding: Any) -> npt.NDArray[np.float64]:
    try:
        numbers = np.asarray(embedding)
    except (ValueError, OverflowError):
        numbers = np.empty(0, object)
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "if":
        raise ValueError("an embedding is not a list of numbers")
    return numbers.astype(np.float64)


def _unit(rows: list[npt.NDArray[np.float64]]) -> Vectors:
    if len({len(row) for row in rows}) > 1:
        raise ValueError("its embeddings differ in length")
    vectors = np.stack(rows)
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    if not np.isfinite(largest).all() or not largest.all():
        raise ValueError("an embedding is all zero, or holds a number that is not finite")
    vectors /= largest  # first, so that squaring cannot overflow
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)
