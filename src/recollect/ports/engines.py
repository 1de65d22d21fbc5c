"""Anything that a recall asks and may have to wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from recollect.types import Vectors

Role: TypeAlias = Literal["query", "document"]
"""What a text is to an embedder: a question, or what answers it."""


class Engine(Protocol):
    """What a recall asks and may have to wait for: a store, an index beside it, an embedder."""

    @property
    def name(self) -> str:
        """For messages, e.g. "sqlite"."""

    @property
    def in_process(self) -> bool:
        """Whether it runs inside this process. Such an engine never hangs, however long a busy processor makes it take:
        no deadline is held against it, unless a caller gives one.
        """


class Embedder(Engine, Protocol):
    """Texts into unit vectors. `name` identifies the model: vectors of two names are never compared."""

    @property
    def dimensions(self) -> int | None:
        """None until the model is known well enough to tell (a remote one, before its first answer)."""

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        """One row per text, in order, float32, each of length 1. Many models embed a question differently from the
        texts that it is compared with. Raises EmbeddingError.
        """

    async def close(self) -> None: ...


class Reranker(Engine, Protocol):
    """Reads a question together with each passage, which tells more than comparing what was made of each alone."""

    @property
    def languages(self) -> Sequence[str]:
        """The languages it knows, as `recollect.text.languages` names them; none named: all of them."""

    async def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        """For each passage, in order, a number from 0 (nothing to do with the question) to 1 (answers it). Raises
        BackendError.
        """

    async def close(self) -> None: ...
