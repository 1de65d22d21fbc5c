"""Metrics for Prometheus: every recall of the client, through any door, and how far indexes lag behind."""

from __future__ import annotations

from collections import Counter as ByLeg
from datetime import UTC, datetime
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

from recollect.client import AsyncRecollect
from recollect.errors import RecallFailed, RecollectError
from recollect.servers.labels import recipe_label
from recollect.types import LaneReport, Recall

__all__ = ["CONTENT_TYPE", "Meters"]

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


class Meters:
    """The meters of one client."""

    def __init__(self, client: AsyncRecollect) -> None:
        self._client = client
        self._all = every = CollectorRegistry()
        ProcessCollector(registry=every)
        self._recalls = Counter(
            "recollect_recalls", "Recalls; outcome: ok, degraded, failed.", ["recipe", "outcome"], registry=every
        )
        self._took = Histogram(
            "recollect_recall_seconds", "Recalls, whole.", ["recipe"], buckets=SECONDS, registry=every
        )
        self._lane = Histogram("recollect_lane_seconds", "Lanes.", ["leg"], buckets=SECONDS, registry=every)
        self._lanes = Counter(
            "recollect_lanes", "Lanes; status: ok, late, failed, skipped.", ["leg", "status"], registry=every
        )
        self._hits = Counter("recollect_hits", "Hits of answers that a leg found.", ["leg"], registry=every)
        self._waiting = Gauge(
            "recollect_index_waiting", "Changes that an index has not got yet.", ["index"], registry=every
        )
        self._lag = Gauge(
            "recollect_index_lag_seconds", "Since when the first of them waits.", ["index"], registry=every
        )
        client.on_recall(self.recalled)

    def recalled(self, space: str, recipe: str, outcome: Recall | RecallFailed) -> None:  # noqa: ARG002 - no label
        """Count a recall. Spaces and lanes are no label: callers name them, and there may be any number of them."""
        recipe = recipe_label(recipe)
        for report in outcome.lanes:
            self._count_lane(report)
        if isinstance(outcome, RecallFailed):
            self._recalls.labels(recipe, "failed").inc()
            return
        self._recalls.labels(recipe, "degraded" if outcome.degraded else "ok").inc()
        self._took.labels(recipe).observe(outcome.took / 1000)
        for leg, found in ByLeg(leg for hit in outcome.hits for leg in hit.why.legs).items():
            self._hits.labels(leg).inc(found)

    def _count_lane(self, report: LaneReport) -> None:
        if report.wanted:
            self._lanes.labels(report.leg, report.status).inc()
            if report.status != "skipped":
                self._lane.labels(report.leg).observe(report.ms / 1000)

    async def exposition(self) -> bytes:
        """Everything in Prometheus' text format; of a store that is down, no lag."""
        try:
            lags = await self._client.lag()
        except RecollectError:
            self._waiting.clear()
            self._lag.clear()
            lags = {}
        for index, (waiting, since) in lags.items():
            self._waiting.labels(index).set(waiting)
            self._lag.labels(index).set((datetime.now(UTC) - since).total_seconds() if since else 0.0)
        return generate_latest(self._all)
