"""Where an expected memory was lost on its way to the answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from recollect.legs.question import Question
from recollect.ports import Records
from recollect.types import Expectation, Filter, Fused, Hit, Lost, Memory


async def explain_absence(
    records: Records, question: Question, id: str, fused: Sequence[Fused], copies: Collection[str], hits: Sequence[Hit]
) -> Expectation:
    """The stage at which memory `id` left the way of this question, in the order of the stages."""
    for rank, hit in enumerate(hits, 1):
        if hit.memory.id == id:
            return Expectation(id, "found", f"it is hit {rank} of {len(hits)}", rank, hit.why)
    memory = (await records.get(question.space, [id])).get(id)
    if memory is None:
        return Expectation(id, "not stored", f"space {question.space!r} holds no memory with this id")
    if id not in await records.visible(question.space, [id], question.where):
        return Expectation(id, *_why_filtered(memory, question.where))
    for rank, one in enumerate(fused, 1):
        if one.id == id:
            if id in copies:
                return Expectation(id, "near-copy", "a hit above it says the same in the same words", rank, one.why)
            reason = f"it came {rank} of {len(fused)} after fusion, with {one.score:.4f}"
            return Expectation(id, "below the cut", reason, rank, one.why)
    reason = f"no lane had it among its {question.fanout} candidates, or its score was below the least one wanted"
    return Expectation(id, "not a candidate", reason)


def _why_filtered(memory: Memory, where: Filter) -> tuple[Lost, str]:
    if memory.superseded_by is not None and not where.include_superseded:
        return "superseded", f"it was replaced by {memory.superseded_by}"
    now = where.now or datetime.now(UTC)
    if memory.expires_at is not None and memory.expires_at <= now and not where.include_expired:
        return "expired", f"it expired at {memory.expires_at.isoformat()}"
    return "filtered", "the filters of this recall leave it out"
