"""What turns texts into vectors on the engine's behalf, and makes sure that two models never mix in one store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from recollect.errors import EmbeddingError, EmbeddingMismatch, RecollectError
from recollect.ports import Embedder, Records
from recollect.types import Generation, Memory

if TYPE_CHECKING:
    from recollect.types import Vectors

LOOK_SECONDS: Final = 5.0
"""Between two looks at whether another process changed the store to another model."""


class Passages(NamedTuple):
    """The vectors of some memories, and the generation that they are of."""

    vectors: Vectors
    generation: Generation


class Embedding:
    """An embedder bound to a store: the store's first vectors decide the model, another one is refused.

    Which generation this process works with is decided once, and changed by `use`. When another process changes the
    store to another model, this one goes on asking the old vectors. Its own are not stored any more, and its answers
    say so (`outdated`).
    """

    def __init__(self, embedder: Embedder, records: Records) -> None:
        self.embedder = embedder
        self._records = records
        self.generation: Generation | None = None
        """That of the vectors that questions are compared with, as far as it is known."""
        self.settled_until = 0.0
        """Until then, on the monotonic clock, a recall need not ask: the embedder makes vectors like the store's,
        and the store was looked at a moment ago."""
        self._current: Generation | None = None
        self._look: asyncio.Task[None] | None = None
        self._looked_at = 0.0

    def use(self, embedder: Embedder, generation: Generation) -> None:
        """Embed with another model from now on, which the store was changed to."""
        self.embedder, self.generation, self._current = embedder, generation, generation
        self.settled_until = 0.0

    @property
    def mismatch(self) -> EmbeddingMismatch | None:
        """That the store's vectors, as far as they are known, are of another model than the embedder's."""
        known, dimensions = self.generation or self._current, self.embedder.dimensions
        if known is None or (known.model == self.embedder.name and dimensions in (None, known.dimensions)):
            return None
        return EmbeddingMismatch.between(known, self.embedder.name, dimensions)

    @property
    def outdated(self) -> EmbeddingMismatch | None:
        """That the store has changed to another model, and what to do."""
        known, current = self.generation, self._current
        return None if known is None or current in (None, known) else EmbeddingMismatch.after_change(current, known)

    def look_now_and_then(self) -> None:
        """See, in the background, whether the store has changed to another model."""
        now = time.monotonic()
        if self.generation is not None and now >= self._looked_at + LOOK_SECONDS and self._look is None:
            self._looked_at = now
            self._look = asyncio.create_task(self._look_quietly())
            self._look.add_done_callback(self._looked)

    async def current(self) -> Generation | None:
        """The generation that answers now, whichever this process works with."""
        self._current = await self._records.generation()
        if self.outdated:
            self.settled_until = 0.0
        return self._current

    async def close(self) -> None:
        """Wait for a look that is under way."""
        if self._look is not None:
            await asyncio.wait([self._look])

    async def _look_quietly(self) -> None:
        with suppress(RecollectError):  # a store that is away tells whoever asks it
            await self.current()

    def _looked(self, _: asyncio.Task[None]) -> None:
        self._look = None

    async def check(self) -> Generation | None:
        """The store's generation (None while it has no vectors). Raises EmbeddingMismatch."""
        if self.generation is None:
            self.generation = await self._records.generation()
            self._looked_at = time.monotonic()
        if self.generation is not None:
            if why := self.mismatch:
                raise why
            if self.embedder.dimensions is not None and not self.outdated:
                self.settled_until = self._looked_at + LOOK_SECONDS
        return self.generation

    async def claim(self, dimensions: int) -> None:
        """Before the first vectors are stored: record which model they are from."""
        if await self.check() is None:
            generation = Generation(self.embedder.name, dimensions)
            await self._records.set_generation(generation)
            self.generation = generation
        elif self.generation is not None and self.generation.dimensions != dimensions:
            raise EmbeddingMismatch.between(self.generation, self.embedder.name, dimensions)

    async def dimensions(self) -> int | None:
        """How many numbers a vector for this store has, as far as is known."""
        known = await self.check()
        return known.dimensions if known is not None else self.embedder.dimensions

    async def passages(self, space: str, memories: Sequence[Memory]) -> Passages | None:
        """One vector per memory; None when the embedder is down (the memories are then embedded later)."""
        embedder = self.embedder
        try:
            vectors = await embedder.embed([passage(memory) for memory in memories], space=space, role="document")
        except EmbeddingError:
            return None
        if embedder is self.embedder:  # else the store was changed to another model meanwhile
            await self.claim(vectors.shape[1])
        return Passages(vectors, Generation(embedder.name, vectors.shape[1]))

    async def works(self, space: str) -> bool:
        """Whether the embedder takes a text that nothing is wrong with."""
        try:
            await self.embedder.embed(["Does the embedder work?"], space=space, role="query")
        except EmbeddingError:
            return False
        return True


def passage(memory: Memory) -> str:
    """The text that stands for a memory in meaning: its title and its text."""
    return f"{memory.title}\n{memory.text}" if memory.title else memory.text
