"""One question on its way through the legs: what they share, computed once."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from recollect.calls.deadline import Deadline
from recollect.calls.shared import SharedWork
from recollect.ports import VectorHits, VectorIndex, WordIndex, WordSearch
from recollect.text.query import QueryWords, parse_query
from recollect.types import Filter, Generation, Scored

if TYPE_CHECKING:
    from recollect.recipes import Lane
    from recollect.types import Vector


@dataclass
class Question:
    """A question: its filter, how many hits each lane may return, and its vector, embedded when first needed.

    `shared` reads which namespaces of other spaces it may also search (None: none). Without `own_space` it searches
    only those. A `guest` is the same question in another space; it never leaves the namespaces of its filter. A
    `given` vector is not embedded.
    """

    space: str
    text: str
    where: Filter
    fanout: int
    embed: Callable[[], Coroutine[Any, Any, Vector]]
    vector_index: VectorIndex
    word_index: WordIndex
    shared: Callable[[], Coroutine[Any, Any, Mapping[str, tuple[str, ...]]]] | None = None
    own_space: bool = True
    guest: bool = False
    given: Vector | None = None
    generation: Generation | None = None
    """That of its vector: it is compared with no other."""
    started: float = field(default_factory=time.monotonic)
    _guests: tuple[Question, ...] = ()
    together: SharedWork = field(default_factory=SharedWork)
    """Work that several lanes need and that is done once."""
    deadlines: list[Deadline] = field(default_factory=list)
    """One for each lane."""

    @cached_property
    def words(self) -> QueryWords:
        return parse_query(self.text)

    async def vector(self, share: float = 1.0) -> Vector:
        """The question's vector, as given or embedded. Raises BackendTimeout."""
        if self.given is not None:
            return self.given

        return await self.together.once("vector", self.embed, "embedder", share)

    async def nearest(self, where: Filter, ef_search: int | None = None, share: float = 1.0) -> VectorHits:
        """The nearest memories by vector; lanes with the same filter share one search."""
        vector = await self.vector(share)

        search = partial(
            self.vector_index.search_vectors,
            self.space,
            vector,
            where,
            limit=self.fanout,
            ef_search=ef_search,
            generation=self.generation,
        )
        return await self.together.once(("nearest", where, ef_search), search, "vector index", share)

    async def best_by_words(self, where: Filter, *, limit: int) -> Sequence[Scored]:
        """The memories that score best for the question's words."""
        search = WordSearch(text=self.text, terms=self.words.terms, phrases=self.words.phrases, within=self.within)
        return (await self.word_index.search_words(self.space, search, where, limit=limit)).hits

    @property
    def within(self) -> tuple[str, ...]:
        """The namespaces whose word statistics count: for a guest those it may see, so that no score reveals anything
        about the others. Empty: the whole space.
        """
        return self.where.namespaces if self.guest else ()

    def filter_of(self, lane: Lane) -> Filter:
        """The caller's filter, narrowed to the lane's kinds."""
        where = self.where
        if lane.every_namespace and not self.guest:
            where = replace(where, namespaces=())
        if lane.kinds:
            wanted = tuple(k for k in lane.kinds if k in where.kinds) if where.kinds else lane.kinds
            where = replace(where, kinds=wanted or NO_KIND)
        return where

    async def shared_questions(self) -> Sequence[Question]:
        """The same question for each space that shares with this one, limited to what it shares."""
        return await self.together.once("shared", self._ask_others, "store")

    async def _ask_others(self) -> Sequence[Question]:
        visible = await self.shared() if self.shared is not None else {}
        self._guests = tuple(
            replace(
                self,
                space=owner,
                where=replace(self.where, namespaces=namespaces),
                embed=self.vector,
                shared=None,
                guest=True,
                together=SharedWork(self.together.outside),
            )
            for owner, namespaces in visible.items()
        )
        return self._guests

    def where_in(self, space: str) -> Filter:
        """Its filter in this space: its own, or that of a guest."""
        return next((guest.where for guest in self._guests if guest.space == space), self.where)

    def waited(self) -> float:
        """The longest time, in seconds, that any lane has waited for engines outside this process."""
        return max((deadline.spent for deadline in self.deadlines), default=0.0)

    def close(self) -> None:
        """Cancel work that no lane waits for any more."""
        self.together.close()
        for guest in self._guests:
            guest.close()


NO_KIND = ("",)
"""Matches nothing: the caller's kinds and the lane's have none in common (a kind is never empty)."""
