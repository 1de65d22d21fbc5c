"""Questions in one language, memories in another, and what the multilingual model costs beside the packaged one:

    python benchmarks/multilingual.py ../shared/data/xquad_mixed_de_en

The folder holds paragraphs and questions in English and German (ids begin with `en:` and `de:`), where a question's
own language has grade 2 and the translation grade 1. Needs `pip install ./distributions/recollect-multilingual`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from statistics import median

from recollect import AsyncRecollect, Draft
from recollect.embedders import make_embedder
from recollect.embedders.disk import DiskCachedEmbedder
from recollect.evaluation.datasets import Dataset, load
from recollect.settings import cache_folder

NAMES = ("local", "local-multilingual")
LIMIT = 10
WEIGHTS: dict[str, dict[str, float]] = {"balanced": {}, "vector": {"keyword": 0.0, "graph": 0.0}}
TIMED_QUESTIONS = 60
TIMED_TEXTS = 12


async def recall_at_10(dataset: Dataset, name: str, asked: str, stored: str) -> tuple[float, float]:
    """The share of questions in the language `asked` whose paragraph in the language `stored` is among the first ten,
    by the default recipe and by meaning alone.
    """
    answers = {
        query.id: {id for id, _ in dataset.qrels[query.id].items() if id.startswith(stored)}
        for query in dataset.queries
    }
    questions = [query for query in dataset.queries if query.id.startswith(asked)]
    found = {"balanced": 0, "vector": 0}
    async with AsyncRecollect(
        "sqlite:///:memory:", embedder=DiskCachedEmbedder(make_embedder(name), cache_folder() / "eval")
    ) as r:
        space = r.space("xquad")
        documents = (document for document in dataset.documents if document.id.startswith(stored))
        await space.remember_many([Draft(document.text, id=document.id) for document in documents])
        for question in questions:
            for which, weights in WEIGHTS.items():
                recall = await space.recall(question.text, limit=LIMIT, weights=weights)
                found[which] += any(hit.memory.id in answers[question.id] for hit in recall.hits)
    return found["balanced"] / len(questions), found["vector"] / len(questions)


async def costs(dataset: Dataset) -> list[tuple[str, float, float]]:
    """Milliseconds of processor time for a question and for a paragraph, the models in turns."""
    questions = [query.text for query in dataset.queries[:TIMED_QUESTIONS]]
    texts = [document.text for document in dataset.documents[:TIMED_TEXTS]]
    embedders = {name: make_embedder(name) for name in NAMES}
    took: dict[tuple[str, str], list[float]] = {(name, what): [] for name in NAMES for what in ("query", "document")}
    for embedder in embedders.values():
        await embedder.embed(["load"], space="s", role="query")
    for _ in range(3):
        for name, embedder in embedders.items():
            for text in questions:
                began = time.process_time()
                await embedder.embed([text], space="s", role="query")
                took[name, "query"].append(time.process_time() - began)
            began = time.process_time()
            await embedder.embed(texts, space="s", role="document")
            took[name, "document"].append((time.process_time() - began) / len(texts))
    for embedder in embedders.values():
        await embedder.close()
    return [(name, 1000 * median(took[name, "query"]), 1000 * median(took[name, "document"])) for name in NAMES]


async def main(folder: Path) -> None:
    dataset = load(folder)
    for name in NAMES:
        for asked, stored in (("de:", "en:"), ("en:", "de:"), ("en:", "en:")):
            balanced, vector = await recall_at_10(dataset, name, asked, stored)
            which = f"{name:20} question {asked[:2]}, memory {stored[:2]}"
            print(f"{which}: recall@10 {balanced:.3f}, meaning alone {vector:.3f}")
    measured = await costs(dataset)
    for name, question, text in measured:
        print(f"{name:20} a question {question:6.1f} ms, a paragraph {text:6.1f} ms of processor time")
    (_, question, text), (_, other_question, other_text) = measured
    print(f"{NAMES[1]} costs {other_question / question:.1f} x a question, {other_text / text:.1f} x a paragraph")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
