"""Material for the specs: memories, vectors and questions, short to write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.ports import Store, WordSearch
from recollect.text.query import parse_query
from recollect.types import Edge, Filter, Generation, Memory, Record

if TYPE_CHECKING:
    from recollect.types import Vector

NOW = datetime(2024, 5, 3, 12, 30, 15, 123456, tzinfo=UTC)
MODEL = Generation("conformance", 4)
ALL = Filter(now=NOW)
HERE = "here"


def memory(id: str, text: str = "", **fields: Any) -> Memory:
    """A memory of the space `HERE`; with no text of its own it says its id."""
    return replace(Memory(id, HERE, text or f"memory {id}", created_at=NOW, updated_at=NOW), **fields)


def record(
    id: str, text: str = "", *, vector: Vector | None = None, edges: Any = (), linked: bool = False, **fields: Any
) -> Record:
    return Record(memory(id, text, **fields), vector, tuple(edges), linked)


def unit(*numbers: float) -> Vector:
    """A vector of `MODEL` of length 1 in this direction, the numbers left out being 0."""
    vector = np.zeros(MODEL.dimensions, dtype=np.float32)
    vector[: len(numbers)] = numbers
    return vector / np.float32(np.linalg.norm(vector))


def question(text: str, **settings: Any) -> WordSearch:
    """A question with its terms as the keyword leg would ask for them."""
    parsed = parse_query(text)
    return WordSearch(text, parsed.terms, parsed.phrases, **settings)


async def found(store: Store, text: str, where: Filter = ALL, *, limit: int = 10, **settings: Any) -> list[str]:
    """Ids by words, best first."""
    hits = (await store.search_words(HERE, question(text, **settings), where, limit=limit)).hits
    return [hit.id for hit in hits]


async def nearest(store: Store, vector: Vector, where: Filter = ALL, *, limit: int = 10) -> list[str]:
    """Ids by meaning, best first."""
    return [hit.id for hit in (await store.search_vectors(HERE, vector, where, limit=limit)).hits]


async def reached(store: Store, seeds: list[str], where: Filter = ALL, *, depth: int = 1, limit: int = 10) -> list[str]:
    """Ids by links, best first."""
    return [hit.id for hit in await store.walk(HERE, seeds, where, depth=depth, limit=limit)]


async def ids(store: Store, where: Filter = ALL) -> list[str]:
    """The ids of a whole space."""
    return [memory.id for memory in (await store.list(HERE, where, limit=1000)).memories]


async def edges(store: Store, ids: Sequence[str] | None = None, *, space: str = HERE) -> list[Edge]:
    """The links of a space, or those that touch these ids."""
    return [edge async for edge in store.edges(space, ids)]


@contextlib.contextmanager
def raises(error: type[Exception], *mentions: str) -> Iterator[None]:
    """The block must raise this error, with a message that mentions these."""
    message = None
    try:
        yield
    except error as raised:
        message = str(raised)
    assert message is not None, f"{error.__name__} should have been raised"
    for mention in mentions:
        assert mention in message, f"the message should mention {mention!r}: {message}"
