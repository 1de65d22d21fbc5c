"""One loaded model for all tests of this folder, and an embedder that counts what it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recollect.embedders.hashing import HashingEmbedder
from recollect.embedders.local import LocalEmbedder
from recollect.ports import Role

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors


@pytest.fixture(scope="session")
def local() -> LocalEmbedder:
    """The packaged model; its threads are shut down with the interpreter."""
    return LocalEmbedder()


class CountingEmbedder(HashingEmbedder):
    """The hashing embedder, remembering each call's texts."""

    def __init__(self, dimensions: int = 32) -> None:
        super().__init__(dimensions)
        self.calls: list[list[str]] = []

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        self.calls.append(list(texts))
        return await super().embed(texts, space=space, role=role)


@pytest.fixture
def counting() -> CountingEmbedder:
    return CountingEmbedder()


def cosine(one: Vector, other: Vector) -> float:
    return float(np.dot(one, other))
