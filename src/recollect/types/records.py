"""What is stored: memories, their links, and what travels between the engine and a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector: TypeAlias = npt.NDArray[np.float32]
    """One embedding: `dimensions` numbers, length 1."""
    Vectors: TypeAlias = npt.NDArray[np.float32]
    """Many embeddings: one row each."""

EmbeddingState: TypeAlias = Literal["ready", "pending", "failed"]


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored record, as callers see it.

    `hits` counts how often it was returned, `used` how often a caller said that it was of use.
    """

    id: str
    space: str
    text: str
    namespace: str = "default"
    kind: str = "fact"
    title: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    thread: str | None = None
    place: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime = datetime.min
    updated_at: datetime = datetime.min
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    superseded_by: str | None = None
    quality: float | None = None
    hits: int = 0
    last_hit_at: datetime | None = None
    used: int = 0
    last_used_at: datetime | None = None
    embedding: EmbeddingState = "pending"


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory before it is stored: only `text` is needed.

    `place` is the memory's position in its `thread`; left out, it goes to the end. The fields after `vector` are
    set by `import`, so that a memory comes back as it left; a caller who remembers something new leaves them out.
    """

    text: str
    namespace: str = "default"
    kind: str = "fact"
    title: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    thread: str | None = None
    place: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    vector: Sequence[float] | Vector | None = None
    id: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    superseded_by: str | None = None
    quality: float | None = None
    hits: int = 0
    last_hit_at: datetime | None = None
    used: int = 0
    last_used_at: datetime | None = None
    linked: bool = False
    """Whether its links to its nearest come along; else they are made."""


SIMILAR = "similar"
"""The relation of a memory to its nearest, which Recollect makes by itself and makes anew when a text changes."""
NEAREST = 3
"""How many of those a memory has. They are its nearest of all, whichever came first."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A directed link between two memories of one space, with a strength in (0, 1]."""

    source: str
    target: str
    relation: str = "related"
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Generation:
    """Which model made a store's vectors. Two generations are never compared."""

    model: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class Record:
    """What the engine hands to a store: a complete memory, its vector if there is one, and its first links.

    `linked` says that its nearest memories were looked for already; others are linked later, in batches. `hash` comes
    with a memory of another store, and says there what is an exact copy of it; left out, it is made of its fields.
    `joins` says whether a memory that answers for this record, being its exact copy, takes over what it lacks.
    `generation` is that of the vector; where it is not the current one any more, the memory waits for another vector.
    """

    memory: Memory
    vector: Vector | None = None
    edges: tuple[Edge, ...] = ()
    linked: bool = False
    hash: bytes | None = None
    joins: bool = True
    generation: Generation | None = None


class Remembered(NamedTuple):
    """What became of one record: the memory as stored, and whether it is new (False: an exact copy was there)."""

    memory: Memory
    created: bool


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories a search may see. Every leg applies it before it ranks.

    `tags` must all be there. `since` and `until` compare when a memory happened (`occurred_at`, else `created_at`),
    `since` inclusive and `until` exclusive. `min_quality` keeps memories that were never scored.
    `now` decides what has expired; the engine fills it in once per recall.
    """

    kinds: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    source_prefix: str = ""
    thread: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    min_quality: float | None = None
    include_superseded: bool = False
    include_expired: bool = False
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some memories in id order, and the cursor that continues after them (None: that was all)."""

    memories: tuple[Memory, ...]
    cursor: str | None
    truncated: str = ""
    """Why there are fewer than were asked for, where the page would be too large; the cursor goes on after them."""


@dataclass(frozen=True, slots=True)
class SpaceStats:
    """What a space holds."""

    space: str
    memories: int
    superseded: int
    pending: int
    edges: int
    kinds: Mapping[str, int]
    namespaces: Mapping[str, int]


class Migration(NamedTuple):
    """What was done to a store, or would be, step by step; and what is left to whoever looks after its server."""

    steps: tuple[str, ...]
    advice: tuple[str, ...] = ()
