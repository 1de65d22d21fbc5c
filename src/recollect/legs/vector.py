"""The vector leg: which memories mean what the question means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from recollect.legs.question import Question
from recollect.ports import Beside, Sample
from recollect.recipes import Lane
from recollect.types import Background, Filter, Ranking, Scored

if TYPE_CHECKING:
    from recollect.legs import LegEngines
    from recollect.types import Vector

REACH = 2
"""How far a thread's neighbours are looked at, on each side."""
BLEND = (0.3, 0.15)
"""What the neighbours at distance 1 and 2 add to a memory's own vector."""

SAMPLED = 256
"""Memories that stand for all that a guest may see."""


class Threads(Protocol):
    """What the leg needs of a store: what stands beside a memory, which of that may be seen, and some memories that
    stand for all of some namespaces.
    """

    async def beside(self, space: str, ids: Sequence[str], reach: int) -> dict[str, Beside]: ...

    async def visible(self, space: str, ids: Sequence[str], where: Filter) -> set[str]: ...

    async def sample(self, space: str, namespaces: Sequence[str], *, limit: int) -> Sample: ...


class VectorLeg:
    def __init__(self, engines: LegEngines) -> None:
        self._index = engines.vectors
        self._threads = engines.rows

    async def search(self, question: Question, lane: Lane) -> Ranking:
        found = await question.nearest(question.filter_of(lane), lane.ef_search)
        hits = found.hits
        threaded = [hit.id for hit in hits if found.threaded is None or hit.id in found.threaded]
        if lane.context and threaded:
            hits = await self._with_neighbours(question, lane, hits, threaded)
        background = found.background
        if question.guest:
            background = await question.together.once("background", lambda: self._seen_by(question), "store")
        return Ranking(lane.name, "vector", clamped(hits, lane.lowest), background, tail="normal")

    async def _seen_by(self, question: Question) -> Background | None:
        """How the question compares with what a guest may see: the rest of the space must not show in its scores."""
        import numpy as np  # late: a recipe can be read without it

        total, ids = await self._threads.sample(question.space, question.within, limit=SAMPLED)
        vectors = await self._index.vectors(question.space, ids)
        rows = [vectors[id] for id in ids if id in vectors]
        if not rows:
            return None
        return Background.of(np.vecdot(np.stack(rows), await question.vector()).tolist(), total)

    async def _with_neighbours(
        self, question: Question, lane: Lane, hits: Sequence[Scored], threaded: Sequence[str]
    ) -> Sequence[Scored]:
        """The hits and what stands beside them, each scored with its neighbours' vectors blended into its own."""
        threads = await self._threads.beside(question.space, threaded, 2 * REACH)
        if not threads:
            return hits
        around = neighbourhoods(threads)
        found = {hit.id for hit in hits}
        beside = [id for id in around if id not in found]
        where = question.filter_of(lane)
        candidates = found | await self._threads.visible(question.space, beside, where)
        wanted = candidates.intersection(around)
        needed = wanted.union(*(filter(None, around[id]) for id in wanted))
        vectors = await self._index.vectors(question.space, list(needed))
        scores = {hit.id: hit.score for hit in hits if hit.id not in wanted}
        scores |= blended_scores(await question.vector(), vectors, {id: around[id] for id in wanted})
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [Scored(id, score) for id, score in ranked[: question.fanout]]


def clamped(hits: Sequence[Scored], lowest: float) -> tuple[Scored, ...]:
    """The hits with no score below `lowest`. Those that lay below keep their order."""
    return tuple(hit if hit.score >= lowest else Scored(hit.id, lowest) for hit in hits)


def neighbourhoods(threads: Mapping[str, Beside]) -> dict[str, tuple[str | None, ...]]:
    """For each memory within `REACH` of a hit, its neighbours as (next before, next after, second before, second
    after); None where the thread ends. `threads` has twice that reach, so that the outermost have theirs too.
    """
    around: dict[str, tuple[str | None, ...]] = {}
    for id, beside in threads.items():
        chain: list[str | None] = [*reversed(beside.before), id, *beside.after]
        middle = len(beside.before)
        for at in range(max(0, middle - REACH), min(len(chain), middle + REACH + 1)):
            known = chain[at]
            if known is not None and known not in around:
                around[known] = tuple(
                    chain[n] if 0 <= n < len(chain) else None for n in (at - 1, at + 1, at - 2, at + 2)
                )
    return around


def blended_scores(
    question: Vector, vectors: Mapping[str, Vector], around: Mapping[str, tuple[str | None, ...]]
) -> dict[str, float]:
    """Cosine of the question with `own + 0.3 (prev + next) + 0.15 (prev2 + next2)`."""
    import numpy as np  # late: a recipe can be read without it

    ids = [id for id in around if id in vectors]
    if not ids:
        return {}
    place = {id: n for n, id in enumerate(vectors)}
    rows = np.vstack([*vectors.values(), np.zeros_like(question)])  # the last row stands for "nobody there"
    own = rows[[place[id] for id in ids]]
    beside = np.array([[place.get(n or "", -1) for n in around[id]] for id in ids])
    near, far = BLEND
    blend = own + near * (rows[beside[:, 0]] + rows[beside[:, 1]]) + far * (rows[beside[:, 2]] + rows[beside[:, 3]])
    lengths = np.linalg.norm(blend, axis=1)
    cosines = np.vecdot(blend, question) / np.where(lengths > 0, lengths, 1)
    return dict(zip(ids, cosines.tolist(), strict=True))
