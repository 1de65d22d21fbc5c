"""What reranking costs, beside the embedding of one question: `python benchmarks/rerank.py`.

Both are measured in turns, so that a busy machine slows both alike and the ratio still means something. Memory is that
of this process with both models loaded.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from statistics import median

from embedding import text_of

from recollect import AsyncRecollect, Draft
from recollect.embedders.local import LocalEmbedder
from recollect.rerankers.local import LocalReranker

QUESTION = "when was the invoice of the carpenter paid?"
COUNT = 30
ROUNDS = 15
LENGTHS = {"short turns": 30, "passages": 128, "long texts": 380}
"""Tokens of what is read, by what people would call it."""


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds that a piece of work takes."""
    started = time.perf_counter()
    await work()
    return (time.perf_counter() - started) * 1000


async def models() -> None:
    embedder, reranker = LocalEmbedder(), LocalReranker()
    await embedder.embed([QUESTION], space="bench", role="query")
    await reranker.score(QUESTION, ["a text"])
    for what, tokens in LENGTHS.items():
        passages = [text_of(tokens, seed) for seed in range(COUNT)]
        reading, embedding = [], []
        for _ in range(ROUNDS):
            reading.append(await timed(lambda some=passages: reranker.score(QUESTION, some)))  # type: ignore[misc]
            embedding.append(await timed(lambda: embedder.embed([QUESTION], space="bench", role="query")))
        cost, one = median(reading), median(embedding)
        print(f"{COUNT} {what:<12} {cost:8.1f} ms, {cost / one:6.1f} x one question's embedding ({one:.1f} ms)")
    await reranker.close()
    await embedder.close()


async def stage() -> None:
    """A recall of a conversation by `balanced` and by `careful`: each turn is read twice."""
    async with AsyncRecollect("sqlite:///:memory:") as client:
        space = client.space("bench")
        await space.remember_many([Draft(text_of(30, seed) + f" {seed}", thread="talk") for seed in range(300)])
        await space.settle()
        await client.warm_up("careful")
        times: dict[str, list[float]] = {"balanced": [], "careful": []}
        for _ in range(ROUNDS):
            for recipe, taken in times.items():
                taken.append(await timed(lambda by=recipe: space.recall(QUESTION, recipe=by)))  # type: ignore[misc]
        print("; ".join(f"a recall by {recipe} {median(taken):.1f} ms" for recipe, taken in times.items()))


if __name__ == "__main__":
    asyncio.run(models())
    asyncio.run(stage())
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB (goal: below 450)")
