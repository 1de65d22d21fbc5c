"""Why an expected memory is not in the answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from recollect.engine.engines import Rows
from recollect.engine.query import Query
from recollect.legs.question import Question
from recollect.types import Expectation, ExpectationStage, Filter, Fused, Hit, Memory


async def explain_absence(
    records: Rows,
    question: Question,
    query: Query,
    candidates: Sequence[Fused],
    copies: Collection[str],
    hits: Sequence[Hit],
) -> Expectation:
    """The stage at which the expected memory dropped out. `candidates` are all that the lanes found, before any cut."""
    id = query.expect or ""
    for rank, hit in enumerate(hits, 1):
        if hit.memory.id == id and hit.memory.space == question.space:
            return Expectation(id, "found", f"it is hit {rank} of {len(hits)}", rank, hit.why)
    memory = (await records.get(question.space, [id])).get(id)
    if memory is None:
        return Expectation(id, "not stored", f"space {question.space!r} holds no memory with this id")
    if id not in await records.visible(question.space, [id], question.where):
        return Expectation(id, *_why_filtered(memory, question.where))
    for rank, one in enumerate(candidates, 1):
        if one.id == id:
            if id in copies:
                return Expectation(id, "near-copy", "a higher hit has almost the same text", rank, one.why)
            reason = f"it ranked {rank} of {len(candidates)} after fusion, with score {one.score:.4f}"
            return Expectation(id, "below the cut", reason, rank, one.why)
    lanes = [question.filter_of(lane) for lane in query.recipe.lanes if lane.weight > 0]
    if not any([await records.visible(question.space, [id], where) for where in lanes]):
        return Expectation(id, "filtered", f"no lane of {query.recipe.name!r} searches kind {memory.kind!r}")
    return Expectation(id, "not a candidate", f"no lane had it among its best {question.fanout}")


def _why_filtered(memory: Memory, where: Filter) -> tuple[ExpectationStage, str]:
    if memory.superseded_by is not None and not where.include_superseded:
        return "superseded", f"it was replaced by {memory.superseded_by}"
    now = where.now or datetime.now(UTC)
    if memory.expires_at is not None and memory.expires_at <= now and not where.include_expired:
        return "expired", f"it expired at {memory.expires_at.isoformat()}"
    return "filtered", "the filters of this recall exclude it"
