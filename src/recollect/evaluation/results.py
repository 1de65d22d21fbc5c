"""The results of an evaluation: one `Result` per recipe, and the comparisons between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.evaluation.calibration import Judged
from recollect.evaluation.compare import CONFIDENCE, Interval, paired_bootstrap
from recollect.evaluation.metrics import percentile
from recollect.evaluation.sureness import Sureness


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds per question, asked one at a time.

    `recall` has every question with its vector given. `with_embedding` has a sample, with the time to embed each
    question without a cache.
    """

    recall: tuple[float, ...]
    with_embedding: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "p50_ms": _rounded(percentile(self.recall, 0.50)),
            "p95_ms": _rounded(percentile(self.recall, 0.95)),
            "p50_ms_with_embedding": _rounded(percentile(self.with_embedding, 0.50)),
            "p95_ms_with_embedding": _rounded(percentile(self.with_embedding, 0.95)),
            "embedding_sample": len(self.with_embedding),
        }


@dataclass(frozen=True, slots=True)
class Result:
    """How one recipe did on one set.

    `questions` are the scored ones; `unjudged` had nothing relevant and were left out. `skipped` documents had
    neither text nor title; `copies` were exact copies of another in their space. `metrics` are means over the
    questions, and `ndcg` holds each question's own, for comparisons. `degraded` answers lacked a lane: `failures`
    says which and why, with counts, and a result with any is not one of the whole recipe. `best` says how sure the best
    hit of each question was, and whether it was right.
    """

    dataset: str
    recipe: str
    embedder: str
    documents: int
    skipped: int
    copies: int
    questions: int
    unjudged: int
    metrics: Mapping[str, float]
    ndcg: tuple[float, ...]
    latency: Latency
    degraded: int
    failures: Mapping[str, int]
    best: tuple[Judged, ...] = ()
    sureness: Sureness | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "recipe": self.recipe,
            "embedder": self.embedder,
            "documents": self.documents,
            "skipped": self.skipped,
            "copies": self.copies,
            "questions": self.questions,
            "unjudged": self.unjudged,
            **{name: round(value, 6) for name, value in self.metrics.items()},
            **self.latency.to_json(),
            "degraded": self.degraded,
            "failures": dict(self.failures),
            **({} if self.sureness is None else {"confidence": self.sureness.to_json()}),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much more nDCG@10 `recipe` has than `baseline` on the same questions."""

    dataset: str
    baseline: str
    recipe: str
    interval: Interval

    def to_json(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "metric": "ndcg@10",
            "baseline": self.baseline,
            "recipe": self.recipe,
            "difference": round(self.interval.difference, 6),
            "low": round(self.interval.low, 6),
            "high": round(self.interval.high, 6),
            "confidence": CONFIDENCE,
        }


def comparisons(results: Sequence[Result]) -> list[Comparison]:
    """Each result against the first of its set."""
    baselines: dict[str, Result] = {}
    compared = []
    for result in results:
        baseline = baselines.setdefault(result.dataset, result)
        if result is not baseline and result.ndcg:
            interval = paired_bootstrap(baseline.ndcg, result.ndcg)
            compared.append(Comparison(result.dataset, baseline.recipe, result.recipe, interval))
    return compared


def to_json(results: Sequence[Result]) -> dict[str, Any]:
    """The whole report, as `recollect eval --json` prints it."""
    return {
        "results": [result.to_json() for result in results],
        "comparisons": [comparison.to_json() for comparison in comparisons(results)],
    }


def _rounded(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 3)
