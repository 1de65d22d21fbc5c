"""The vector leg: which memories mean what the question means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

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
        vectors = await self._index.vectors(question.space, ids, generation=question.generation)
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
        scores = dict(hits)
        beside = [*(around.keys() - scores.keys())]
        seen = await self._threads.visible(question.space, beside, question.filter_of(lane))
        wanted = {id: around[id] for id in (scores.keys() | seen) & around.keys()}
        needed = set[str | None](wanted).union(*wanted.values()) - {None}
        ids = cast("list[str]", [*needed])
        vectors = await self._index.vectors(question.space, ids, generation=question.generation)
        for id in wanted.keys() & scores.keys():
            del scores[id]
        scores |= blended_scores(await question.vector(), vectors, wanted)
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [*map(Scored._make, ranked[: question.fanout])]


def clamped(hits: Sequence[Scored], lowest: float) -> tuple[Scored, ...]:
    """The hits, best first, with no score below `lowest`. Those that lay below keep their order."""
    if not hits or hits[-1].score >= lowest:
        return tuple(hits)
    return tuple(hit if hit.score >= lowest else Scored(hit.id, lowest) for hit in hits)


def neighbourhoods(threads: Mapping[str, Beside]) -> dict[str, tuple[str | None, ...]]:
    """For each memory within `REACH` of a hit, its neighbours as (next before, next after, second before, second
    after); None where the thread ends. `threads` has twice that reach, so that the outermost have theirs too.
    """
    around: dict[str, tuple[str | None, ...]] = {}
    for id, beside in threads.items():
        end = [None] * REACH
        chain: list[str | None] = [*end, *end, *reversed(beside.before), id, *beside.after, *end, *end]
        middle = 2 * REACH + len(beside.before)
        for at in range(middle - REACH, middle + REACH + 1):
            known = chain[at]
            if known is not None and known not in around:
                around[known] = (chain[at - 1], chain[at + 1], chain[at - 2], chain[at + 2])
    return around


def blended_scores(
    question: Vector, vectors: Mapping[str, Vector], around: Mapping[str, tuple[str | None, ...]]
) -> dict[str, float]:
    """Cosine of the question with `own + 0.3 (prev + next) + 0.15 (prev2 + next2)`."""
    import numpy as np  # late: a recipe can be read without it

    ids = [id for id in around if id in vectors]
    if not ids:
        return {}
    place: dict[str | None, int] = dict(zip(vectors, range(len(vectors)), strict=True))
    rows = np.vstack([*vectors.values(), np.zeros_like(question)])  # the last row stands for "nobody there"
    own = rows[[*map(place.__getitem__, ids)]]
    beside = np.array([[*map(place.get, around[id], (-1, -1, -1, -1))] for id in ids])
    near, far = BLEND
    blend = own + near * (rows[beside[:, 0]] + rows[beside[:, 1]]) + far * (rows[beside[:, 2]] + rows[beside[:, 3]])
    lengths = np.linalg.norm(blend, axis=1)
    cosines = np.vecdot(blend, question) / np.where(lengths > 0, lengths, 1)
    return dict(zip(ids, cosines.tolist(), strict=True))
