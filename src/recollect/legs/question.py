"""One question on its way through the legs: what they share, computed once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from recollect.ports import VectorHits, VectorIndex, WordIndex, WordSearch
from recollect.text.query import QueryWords, parse_query
from recollect.types import Filter, Scored

if TYPE_CHECKING:
    from recollect.recipes import Lane
    from recollect.types import Vector

T = TypeVar("T")


@dataclass
class Question:
    """A question, where it may look, how many hits each lane is asked for, and its vector when somebody asks."""

    space: str
    text: str
    where: Filter
    fanout: int
    embed: Callable[[], Awaitable[Vector]]
    vector_index: VectorIndex
    word_index: WordIndex
    _shared: dict[object, asyncio.Task[Any]] = field(default_factory=dict)

    @cached_property
    def words(self) -> QueryWords:
        return parse_query(self.text)

    async def vector(self) -> Vector:
        async def embed() -> Vector:
            return await self.embed()

        return await self.once("vector", embed)

    async def nearest(self, where: Filter, ef_search: int | None = None) -> VectorHits:
        """The nearest memories by plain vectors; lanes that look in the same place share one search."""

        async def search() -> VectorHits:
            return await self.vector_index.search_vectors(
                self.space, await self.vector(), where, limit=self.fanout, ef_search=ef_search
            )

        return await self.once(("nearest", where, ef_search), search)

    async def wordiest(self, where: Filter, *, limit: int) -> Sequence[Scored]:
        """The memories that hold most of the question's words."""
        search = WordSearch(text=self.text, terms=self.words.terms, phrases=self.words.phrases)
        return (await self.word_index.search_words(self.space, search, where, limit=limit)).hits

    def filter_of(self, lane: Lane) -> Filter:
        """The caller's filter, narrowed to the lane's kinds."""
        where = self.where
        if lane.every_namespace:
            where = replace(where, namespaces=())
        if lane.kinds:
            wanted = tuple(k for k in lane.kinds if k in where.kinds) if where.kinds else lane.kinds
            where = replace(where, kinds=wanted or NO_KIND)
        return where

    async def once(self, key: object, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `work` gives, done once per question even when several lanes want it; one that gives up (its
        deadline) does not take it away from the others.
        """
        if key not in self._shared:
            self._shared[key] = asyncio.create_task(work())
        task: asyncio.Task[T] = self._shared[key]
        return await asyncio.shield(task)

    def close(self) -> None:
        """Drop work that no lane waits for any more."""
        for task in self._shared.values():
            if task.done():
                task.cancelled() or task.exception()  # retrieved, so that asyncio does not report it as forgotten
            else:
                task.cancel()


NO_KIND = ("\x00",)
"""Matches nothing: the caller's kinds and the lane's have none in common (a kind never holds a NUL)."""
