"""From the lanes' rankings to the hits of an answer: fuse, weigh by quality, read from the store, leave out near-copies
or diversify, cut, and add neighbours.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from recollect.calls.deadline import current_deadline, within
from recollect.calls.gate import in_words
from recollect.engine.confidence import confidence_of
from recollect.engine.engines import Engines
from recollect.engine.expect import explain_absence
from recollect.engine.lanes import by_space
from recollect.engine.quality import quality_factor, weighed
from recollect.engine.query import Query
from recollect.engine.sizes import ROWS_AT_ONCE, full
from recollect.engine.windows import with_windows
from recollect.errors import BackendUnavailable
from recollect.legs.question import Question
from recollect.limits import ANSWER_BYTES, fitting
from recollect.ranking.diversity import NearCopyFilter, mmr
from recollect.ranking.fusion import by_max, fuse, keep_exact
from recollect.text.snippets import snippet
from recollect.types import Expectation, Fused, Hit, LaneReport, Memory, Ranking

if TYPE_CHECKING:
    from recollect.types import Vector

SPARE = 5
"""Extra rows to fetch while filling an answer, because some turn out forgotten or near-copies."""
COMPARED_AT_ONCE = 10_000
"""The most pairs of vectors compared on the event loop: a few milliseconds."""
DIVERSITY_SHARE = 0.5
"""The share of the remaining time for reading the vectors that MMR compares. The answer does not need them."""

Row = tuple[Fused, Memory]
_ID, _NAME, _TERM = attrgetter("id"), attrgetter("name"), attrgetter("term")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The answer's memories in order, the near-copies left out, and a sentence about what could not be read."""

    answer: list[Row]
    copies: frozenset[str] = frozenset()
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """An answer's hits, the lanes they come from, what could not be read, what became of the expected memory, how the
    stages after fusion went, and the most confident hit if none was confident enough.
    """

    hits: tuple[Hit, ...]
    lanes: Set[str]
    lost: str = ""
    expected: Expectation | None = None
    truncated: str = ""
    stages: tuple[LaneReport, ...] = ()
    miss: Hit | None = None


async def find(engines: Engines, query: Query, question: Question, rankings: Mapping[str, Ranking]) -> Found:
    """The hits for the rankings of the lanes that answered. Raises BackendUnavailable if the store cannot be read."""
    recipe = query.recipe
    candidates = fuse(recipe.fusion, zip(recipe.lanes, map(rankings.get, map(_NAME, recipe.lanes)), strict=True))
    if recipe.quality_weight:
        candidates = await _weigh(engines, query, question, candidates, rankings)
    stages: tuple[LaneReport, ...] = ()
    if recipe.rerank is not None:
        candidates, report = await engines.reranking.rerank(question, recipe.rerank, candidates, rankings)
        stages = (report,)
    least = recipe.min_score
    fused = candidates if least is None else [f for f in candidates if f.score >= least]
    choose = _diversify if recipe.diversity.method == "mmr" else _fill
    chosen = await choose(engines, query, question, fused, rankings)
    hits, truncated = await _hits(engines, query, question, chosen.answer)
    hits, miss = _sure_enough(hits, recipe.min_confidence)
    expected = None
    if query.expect is not None:
        expected = await explain_absence(engines.rows, question, query, candidates, chosen.copies, hits)
    return Found(hits, rankings.keys(), chosen.lost, expected, truncated, stages, miss)


async def _weigh(
    engines: Engines, query: Query, question: Question, fused: list[Fused], rankings: Mapping[str, Ranking]
) -> list[Fused]:
    """Weigh by quality. Exact matches keep their place."""
    qualities: dict[str, float | None] = {}
    for place in range(0, len(fused), ROWS_AT_ONCE):
        some = [f.id for f in fused[place : place + ROWS_AT_ONCE]]
        rows = await by_space(question.space, some, engines.rows.get)
        qualities |= {id: memory.quality for id, memory in rows.items()}
    ordered = weighed(fused, qualities, query.recipe.quality_weight)
    for ranking in rankings.values() if query.recipe.fusion.method == "calibrated" else ():
        ordered = keep_exact(ordered, ranking)
    return ordered


async def _fill(
    engines: Engines, query: Query, question: Question, fused: Sequence[Fused], _: Mapping[str, Ranking]
) -> Chosen:
    """The first visible memories of the fused list. If the recipe says so, near-copies only fill an answer that would
    be short.
    """
    near_copies = NearCopyFilter() if query.recipe.diversity.method == "near_copies" else None
    kept: list[Row] = []
    copies: list[Row] = []
    async for some in _some_visible(engines, question, fused, query.limit + SPARE):
        for row in some:
            if len(kept) < query.limit:
                (kept if near_copies is None or near_copies.accepts(row[1].text) else copies).append(row)
        if len(kept) == query.limit:
            break
    spare = query.limit - len(kept)
    return Chosen(kept + copies[:spare], frozenset([f.id for f, _ in copies[spare:]]))


async def _diversify(
    engines: Engines, query: Query, question: Question, fused: Sequence[Fused], rankings: Mapping[str, Ranking]
) -> Chosen:
    """Choose by maximal marginal relevance among all visible memories."""
    pool = [f async for some in _some_visible(engines, question, fused, ROWS_AT_ONCE) for f, _ in some]
    order, lost = await _by_mmr(engines, query, question, pool, rankings)
    return Chosen(await _visible(engines, question, [pool[i] for i in order]), lost=lost)


async def _some_visible(
    engines: Engines, question: Question, fused: Sequence[Fused], count: int
) -> AsyncIterator[list[Row]]:
    """Read `count` memories at a time: each may be large, and most are not needed."""
    for place in range(0, len(fused), count):
        yield await _visible(engines, question, fused[place : place + count])


async def _visible(engines: Engines, question: Question, fused: Sequence[Fused]) -> list[Row]:
    """The memories of fused ids, without those that were forgotten, superseded, expired or revoked since the search."""
    found = await by_space(question.space, [*map(_ID, fused)], engines.rows.get)
    now = question.where.now or datetime.now(UTC)
    rows: list[Row] = []
    for f in fused:
        memory = found.get(f.id)
        if memory is None:
            continue
        where = question.where if memory.space == question.space else question.where_in(memory.space)
        if (
            (memory.space == question.space or memory.namespace in where.namespaces)
            and (memory.superseded_by is None or where.include_superseded)
            and (where.include_expired or memory.expires_at is None or memory.expires_at > now)
        ):
            rows.append((f, memory))
    return rows


async def _by_mmr(
    engines: Engines, query: Query, question: Question, fused: Sequence[Fused], rankings: Mapping[str, Ranking]
) -> tuple[list[int], str]:
    """The order by MMR over the vectors, and why that failed, if it did. Without vectors, the order by fused score."""
    lost = ""
    wanted: Vector | None = None
    how = query.recipe.diversity
    vectors: Mapping[str, Vector] = {}
    if any(lane.leg == "vector" and lane.name in rankings for lane in query.recipe.lanes):
        read = partial(engines.vectors.vectors, generation=question.generation)
        reading = by_space(question.space, [f.id for f in fused], read)
        try:
            vectors = await within(DIVERSITY_SHARE * current_deadline().left, reading)
            wanted = await question.vector() if how.relevance == "cosine" else None
        except BackendUnavailable as error:
            lost = f"not diversified, because its vectors could not be read: {in_words(error)}"

    def cosine(one: Vector | None, other: Vector | None) -> float | None:
        return float(one @ other) if one is not None and other is not None else None

    own = [vectors.get(f.id) for f in fused]
    relevance = by_max([f.score for f in fused])
    if wanted is not None:
        relevance = [
            share if v is None else float(wanted @ v) * quality_factor(f)
            for f, v, share in zip(fused, own, relevance, strict=True)
        ]
    pick = partial(mmr, relevance, lambda a, b: cosine(own[a], own[b]), balance=how.balance, count=query.limit)
    large = len(fused) * query.limit > COMPARED_AT_ONCE
    return await asyncio.to_thread(pick) if large else pick(), lost


async def _hits(
    engines: Engines, query: Query, question: Question, answer: Sequence[Row]
) -> tuple[tuple[Hit, ...], str]:
    """The hits and neighbours that fit into an answer, and a sentence about what was left out."""
    terms, language = frozenset(map(_TERM, question.words.terms)), question.words.language
    scores = [f.score for f, _ in answer]
    hits: list[Hit] = []
    for place, (f, memory) in enumerate(answer):  # what few callers look at is computed when it is first read
        marked = partial(snippet, memory.text, terms, language)
        sure = partial(confidence_of, query.recipe, question, engines.embedder, f, memory, scores, place)
        hits.append(Hit(memory, f.score, f.why, marked, sure))
    count, room = fitting(map(itemgetter(1), answer), ANSWER_BYTES)
    if count < len(hits):
        return tuple(hits[:count]), f"{full()}: the last {len(hits) - count} hits and all neighbours are left out"
    if not query.window or not hits:
        return tuple(hits), ""
    return await with_windows(engines.rows, question, hits, query.window, room)


def _sure_enough(hits: tuple[Hit, ...], least: float | None) -> tuple[tuple[Hit, ...], Hit | None]:
    """The hits with at least the confidence wanted; where there is none, the one that comes nearest to it."""
    if least is None:
        return hits, None
    kept = tuple(hit for hit in hits if hit.confidence >= least)
    return kept, None if kept else max(hits, key=lambda hit: hit.confidence, default=None)
