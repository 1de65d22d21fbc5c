"""What turns texts into vectors on the engine's behalf, and makes sure that two models never mix in one store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from recollect.errors import EmbeddingError, EmbeddingMismatch
from recollect.ports import Embedder, Records
from recollect.types import Generation, Memory

if TYPE_CHECKING:
    from recollect.types import Vectors


class Passages(NamedTuple):
    """The vectors of some memories, and the generation that they are of."""

    vectors: Vectors
    generation: Generation


class Embedding:
    """An embedder bound to a store: the store's first vectors decide the model, another one is refused.

    Which generation this process works with is decided once, and changed by `use`. When another process changes the
    store to another model, this one goes on asking the old vectors, but its own are not stored any more (`outdated`).
    """

    def __init__(self, embedder: Embedder, records: Records) -> None:
        self.embedder = embedder
        self._records = records
        self._generation: Generation | None = None
        self.outdated = False

    @property
    def generation(self) -> Generation | None:
        """The generation of the vectors that questions are compared with, as far as it is known."""
        return self._generation

    def use(self, embedder: Embedder, generation: Generation) -> None:
        """Embed with another model from now on, which the store was changed to."""
        self.embedder, self._generation, self.outdated = embedder, generation, False

    @property
    def is_known(self) -> bool:
        """Whether the store has said which model made its vectors, and need not be asked again."""
        return self._generation is not None

    async def check(self) -> Generation | None:
        """The store's generation (None while it has no vectors). Raises EmbeddingMismatch."""
        if self._generation is None:
            self._generation = await self._records.generation()
        known = self._generation
        if known is not None:
            dimensions = self.embedder.dimensions
            if known.model != self.embedder.name or dimensions not in (None, known.dimensions):
                raise EmbeddingMismatch.between(known, self.embedder.name, dimensions)
        return known

    async def claim(self, dimensions: int) -> None:
        """Before the first vectors are stored: record which model they are from."""
        if await self.check() is None:
            generation = Generation(self.embedder.name, dimensions)
            await self._records.set_generation(generation)
            self._generation = generation
        elif self._generation is not None and self._generation.dimensions != dimensions:
            raise EmbeddingMismatch.between(self._generation, self.embedder.name, dimensions)

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
