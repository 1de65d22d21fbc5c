"""What is known of a hit when its confidence is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.legs.question import Question
from recollect.ranking.confidence import Signals, confidence, lead_of, similarity
from recollect.ranking.rerank import log_odds
from recollect.recipes import Recipe
from recollect.text.query import coverage
from recollect.types import LEGS, Fused, Memory

COVERED = 20_000
"""Characters of a memory in which the question's words are looked for."""


def confidence_of(
    recipe: Recipe,
    question: Question,
    embedder: str,
    fused: Fused,
    memory: Memory,
    scores: Sequence[float],
    place: int,
) -> float:
    """The confidence of the hit at a place of an answer, whose hits have these scores."""
    return confidence(signals(recipe, question, embedder, fused, memory, lead_of(scores, place)))


def signals(recipe: Recipe, question: Question, embedder: str, fused: Fused, memory: Memory, lead: float) -> Signals:
    why = fused.why
    cosines = [part.raw for part in why if part.kind == "vector"]
    read = [part for part in why if part.kind == "rerank" and (part.contribution or not part.normalised)]
    surprise = sum(part.contribution for part in why if part.kind in LEGS)
    adds_surprisals = recipe.fusion.method == "calibrated"
    return Signals(
        similarity=similarity(max(cosines), embedder) if cosines else None,
        coverage=coverage(question.words, f"{memory.title} {memory.text}"[:COVERED]),
        surprise=surprise if adds_surprisals else None,
        lead=lead if adds_surprisals else None,
        odds=log_odds(read[0].raw) if read else None,
    )
