"""A memory as a point of a collection: its id there, and the payload that filters read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID, uuid5

from qdrant_client import models

from recollect.limits import utc
from recollect.types import Memory, Scored

if TYPE_CHECKING:
    from recollect.types import Vector

T = TypeVar("T")

ID: Final = "id"
SPACE: Final = "space"
NAMESPACE: Final = "namespace"
KIND: Final = "kind"
TAGS: Final = "tags"
THREAD: Final = "thread"
SOURCE: Final = "source"
TIME: Final = "time"
QUALITY: Final = "quality"
SUPERSEDED: Final = "superseded"
EXPIRES_AT: Final = "expires_at"

_SPACES: Final = UUID("6f0d2c1e-3b0a-5d53-9e35-5a0b8f2f7c11")
_DIGITS: Final = 6  # of a cosine: later ones depend on the order of float32 additions


def point_id(space: str, id: str) -> str:
    """The id of a memory's point. Qdrant's ids are numbers or UUIDs, and a memory's id may be any text."""
    return str(uuid5(uuid5(_SPACES, space), id))


def point(space: str, memory: Memory, vector: Vector) -> models.PointStruct:
    return models.PointStruct(id=point_id(space, memory.id), vector=vector.tolist(), payload=payload(space, memory))


def payload(space: str, memory: Memory) -> dict[str, Any]:
    """The fields that filters use; those that a memory lacks are left out."""
    fields: dict[str, Any] = {
        ID: memory.id,
        SPACE: space,
        NAMESPACE: memory.namespace,
        KIND: memory.kind,
        TAGS: list(memory.tags) or None,
        SOURCE: memory.source,
        THREAD: memory.thread,
        TIME: utc(memory.occurred_at or memory.created_at).isoformat(timespec="microseconds"),
        QUALITY: memory.quality,
        SUPERSEDED: memory.superseded_by is not None,
        EXPIRES_AT: memory.expires_at and utc(memory.expires_at).isoformat(timespec="microseconds"),
    }
    return {name: value for name, value in fields.items() if value is not None}


def cosine(found: models.ScoredPoint) -> float:
    """A score as the SQL stores give it: rounded, and within [-1, 1]."""
    return round(min(max(found.score, -1.0), 1.0), _DIGITS)


def ranked(points: Iterable[models.ScoredPoint], limit: int) -> list[Scored]:
    """The best of them, ties by id."""
    best = sorted((-cosine(found), field(found, ID)) for found in points)[:limit]
    return [Scored(id, -negated) for negated, id in best]


def field(found: models.ScoredPoint | models.Record, name: str) -> Any:
    """A field of a point's payload, or None."""
    return (found.payload or {}).get(name)


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
