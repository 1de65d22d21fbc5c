"""Adds the prefixes that a model expects, and shortens its vectors."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2s
from typing import TYPE_CHECKING

import numpy as np

from recollect.embedders.conventions import Conventions, conventions_of
from recollect.errors import EmbeddingError
from recollect.ports import Embedder, Role
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.types import Vectors


class RoleEmbedder:
    """Another embedder with a prefix for each role and vectors cut to `dimensions`.

    Of a Matryoshka model's vector only the beginning is kept, scaled to length 1 (Kusupati et al., 2022). Prefixes and
    cuts are part of the name, so that such vectors are never compared with others. `name` replaces the inner name, for
    a model that is never used without its prefixes.
    """

    def __init__(
        self, inner: Embedder, conventions: Conventions, *, dimensions: int | None = None, name: str | None = None
    ) -> None:
        self._inner = inner
        self._prefixes = {"query": conventions.query_prefix, "document": conventions.document_prefix}
        self._cut = dimensions
        self._name = name or inner.name + _mark(conventions)

    @property
    def name(self) -> str:
        return self._name if self._cut is None else f"{self._name}-{self._cut}"

    @property
    def in_process(self) -> bool:
        return self._inner.in_process

    @property
    def dimensions(self) -> int | None:
        return self._cut or self._inner.dimensions

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        prefix = self._prefixes[role]
        vectors = await self._inner.embed([prefix + text for text in texts], space=space, role=role)
        return vectors if self._cut is None else _shortened(vectors, self._cut, self._inner.name)

    async def close(self) -> None:
        await self._inner.close()


def with_roles(embedder: Embedder, model: str, settings: Settings, *, name: str | None = None) -> Embedder:
    """The embedder with its model's prefixes and the dimensions of the settings."""
    declared = settings.models.get(model)
    conventions = conventions_of(model, declared)
    dimensions = declared.dimensions if declared else None
    if dimensions is None and not conventions.has_prefixes:
        return embedder
    return RoleEmbedder(embedder, conventions, dimensions=dimensions, name=name)


def _shortened(vectors: Vectors, dimensions: int, model: str) -> Vectors:
    if not len(vectors):
        return np.empty((0, dimensions), np.float32)
    if dimensions > vectors.shape[1]:
        raise EmbeddingError(
            f"{model} makes vectors of {vectors.shape[1]} dimensions, which cannot be cut to {dimensions}: "
            "lower `dimensions`"
        )
    head = vectors[:, :dimensions]
    lengths = np.linalg.norm(head, axis=1, keepdims=True)
    if not lengths.all():
        raise EmbeddingError(
            f"the first {dimensions} dimensions of a vector by {model} are all zero: raise `dimensions`"
        )
    return np.asarray(head / lengths, np.float32)


def _mark(conventions: Conventions) -> str:
    if not conventions.has_prefixes:
        return ""
    both = f"{conventions.query_prefix}\0{conventions.document_prefix}"
    return f"@{blake2s(both.encode(), digest_size=3).hexdigest()}"
