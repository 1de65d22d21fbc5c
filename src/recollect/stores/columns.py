"""A memory as the columns of a row, in the same order in every database: its own fields, then its hits and uses."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from recollect.stores.contents import json_text
from recollect.types import EmbeddingState, Memory

Columns: TypeAlias = tuple[Any, ...]


class Codec(NamedTuple):
    """How a database writes and reads times, and tags."""

    write_time: Callable[[datetime], Any]
    read_time: Callable[[Any], datetime]
    write_tags: Callable[[tuple[str, ...]], Any]
    read_tags: Callable[[Any], tuple[str, ...]]

    def encode(self, memory: Memory, *, place: int | None, embedding: EmbeddingState) -> Columns:
        """A memory's columns. Its place and the state of its embedding are the store's to decide."""
        return (
            memory.id,
            memory.text,
            memory.namespace,
            memory.kind,
            memory.title,
            self.write_tags(memory.tags),
            memory.source,
            memory.thread,
            place,
            json_text(memory.metadata) if memory.metadata else "{}",
            self.write_time(memory.created_at),
            self.write_time(memory.updated_at),
            memory.occurred_at and self.write_time(memory.occurred_at),
            memory.expires_at and self.write_time(memory.expires_at),
            memory.superseded_by,
            memory.quality,
            embedding,
            memory.hits,
            memory.last_hit_at and self.write_time(memory.last_hit_at),
            memory.used,
            memory.last_used_at and self.write_time(memory.last_used_at),
        )

    def decode(self, space: str, columns: Columns) -> Memory:
        (
            id, text, namespace, kind, title, tags, source, thread, place, metadata, created_at, updated_at,
            occurred_at, expires_at, superseded_by, quality, embedding, hits, last_hit_at, used, last_used_at,
        ) = columns  # fmt: skip
        time = self.read_time
        return Memory(
            id,
            space,
            text,
            namespace,
            kind,
            title,
            self.read_tags(tags),
            source,
            thread,
            place,
            {} if metadata == "{}" else json.loads(metadata),
            time(created_at),
            time(updated_at),
            None if occurred_at is None else time(occurred_at),
            None if expires_at is None else time(expires_at),
            superseded_by,
            quality,
            hits,
            None if last_hit_at is None else time(last_hit_at),
            used,
            None if last_used_at is None else time(last_used_at),
            embedding,
        )
