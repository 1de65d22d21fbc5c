"""Hashed words: vectors without a model, for tests and for trying things out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import ConfigError
from recollect.ports import Role
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

WORD = re.compile(r"\w+")
MOST_DIMENSIONS = 4096
WORD_WEIGHT = 1.0
TRIGRAM_WEIGHT = 0.5


class HashingEmbedder:
    """Feature hashing (Weinberger et al., 2009) of a text's words and their character trigrams.

    The same text gives the same vector on every machine; texts that share words, or parts of words, are near.
    """

    def __init__(self, dimensions: int = 256) -> None:
        if not 1 <= dimensions <= MOST_DIMENSIONS:
            raise ConfigError(f"the dimensions of hashing are {dimensions}, and must be from 1 to {MOST_DIMENSIONS}")
        self._dimensions = dimensions

    @classmethod
    def named(cls, argument: str, settings: Settings) -> HashingEmbedder | None:  # noqa: ARG003 (every embedder's)
        """The embedder of `hashing` or `hashing:DIMENSIONS`."""
        if not argument:
            return cls()
        return cls(int(argument)) if argument.isdecimal() else None

    in_process = True

    @property
    def name(self) -> str:
        return f"hashing-{self._dimensions}"

    @property
    def dimensions(self) -> int:
        return self._dimensions

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:  # noqa: ARG002 (one function for all)
        return await asyncio.to_thread(self._vectors, texts)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            self._fill(vector, text.casefold())
        return vectors

    def _fill(self, vector: Vector, text: str) -> None:
        for feature, weight in _features(text):
            place, sign = _hashed(feature)
            vector[place % self._dimensions] += sign * weight
        length = np.linalg.norm(vector)
        if length == 0:  # the signs cancelled out: use the whole text as one feature
            place, sign = _hashed(text)
            vector[place % self._dimensions] = sign
        else:
            vector /= length


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in WORD.findall(text) or [text]:
        yield word, WORD_WEIGHT
        framed = f"<{word}>"
        for start in range(len(framed) - 2):
            yield framed[start : start + 3], TRIGRAM_WEIGHT


@lru_cache(maxsize=1 << 16)
def _hashed(feature: str) -> tuple[int, int]:
    """A place and a sign, independent of each other and of Python's own per-process `hash`."""
    number = int.from_bytes(blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    return number >> 1, 1 if number & 1 else -1
