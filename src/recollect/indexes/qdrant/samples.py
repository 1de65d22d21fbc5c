"""What an ordinary cosine is in each space, told by a few of its vectors that are kept in the process for a while."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from recollect.indexes.exact import SAMPLE, products
from recollect.types import Background

if TYPE_CHECKING:
    from recollect.types import Vector, Vectors

_DRIFT: Final = 0.01
"""The share of a space that may change before its sample is taken anew."""
_SECONDS: Final = 5.0
"""How long a count is believed; others may write as well."""
_SPACES: Final = 64
"""Samples kept: of 256 vectors of 384 dimensions, 25 MB."""


@dataclass(frozen=True, slots=True)
class _Sample:
    vectors: Vectors
    taken_of: int
    """How many there were when it was taken."""
    count: int
    counted_at: float
    touched: int = 0
    """How many were written here since it was taken."""

    @property
    def has_drifted(self) -> bool:
        return abs(self.count - self.taken_of) + self.touched > _DRIFT * self.taken_of


class Samples:
    """A sample of each space that was lately searched."""

    def __init__(self, count: Callable[[str], Awaitable[int]], take: Callable[[str], Awaitable[Vectors]]) -> None:
        self._count = count
        self._take = take
        self._samples: OrderedDict[str, _Sample] = OrderedDict()

    async def background(self, space: str, vector: Vector) -> Background | None:
        """How a vector compares with the space at large; None while that is empty."""
        sample = await self._sample(space)
        if not len(sample.vectors):
            return None
        cosines = products(sample.vectors, vector)
        return Background(float(cosines.mean()), float(cosines.std()), sample.count)

    def touch(self, space: str, changes: int) -> None:
        """So many memories of the space were written here. One that is no larger than its sample is counted again at
        once, and told exactly; a larger one need not follow each write.
        """
        known = self._samples.get(space)
        if known:
            counted_at = -_SECONDS if known.taken_of <= SAMPLE else known.counted_at
            self._samples[space] = replace(known, touched=known.touched + changes, counted_at=counted_at)

    def clear(self) -> None:
        self._samples.clear()

    async def _sample(self, space: str) -> _Sample:
        known, now = self._samples.get(space), time.monotonic()
        if known is None or now - known.counted_at > _SECONDS:
            known = await self._renewed(space, known, now)
            self._samples[space] = known
            if len(self._samples) > _SPACES:
                self._samples.popitem(last=False)
        self._samples.move_to_end(space)
        return known

    async def _renewed(self, space: str, known: _Sample | None, now: float) -> _Sample:
        count = await self._count(space)
        if known is not None:
            known = replace(known, count=count, counted_at=now)
            if not known.has_drifted:
                return known
        return _Sample(await self._take(space), count, count, now)
