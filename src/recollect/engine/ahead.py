"""Reading ahead: while some lanes are slow, prepare the answer from those that have answered. If the others are late,
it is ready, and the caller does not wait beyond the deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from typing import Any

from recollect.calls.deadline import Deadline, let_go, on_deadline, start
from recollect.engine.finding import Found
from recollect.engine.lanes import Answered, rankings_of
from recollect.errors import BackendUnavailable
from recollect.legs.question import Question
from recollect.types import Ranking

GRACE = 0.06
"""Seconds beyond the deadline for reading the hits from an external store, if the last lane was just in time. A recall
may take 0.1 s longer than its deadline; this leaves some of that for a busy event loop.
"""
ROWS_SHARE = 0.5
"""The least share of the longest deadline that reading the hits gets in all."""


class ReadAhead:
    """Prepares the answer from the lanes that have answered so far, and again from all."""

    def __init__(
        self,
        find: Callable[[Mapping[str, Ranking]], Coroutine[Any, Any, Found]],
        deadline: float,
        question: Question,
    ) -> None:
        self._find = find
        self._deadline = deadline
        self._question = question
        self._lanes: Set[str] = frozenset()
        self._task: asyncio.Task[Found] | None = None
        self._earlier: Found | None = None
        self._readings: list[Deadline] = []

    def begin(self, answered: Sequence[Answered]) -> None:
        """Start reading for the lanes that have answered so far."""
        rankings = rankings_of(answered)
        if rankings and rankings.keys() != self._lanes:
            deadline = self._next_deadline()
            self._lanes = rankings.keys()
            self._task = start(deadline, self._find(rankings))

    async def of(self, rankings: Mapping[str, Ranking]) -> Found:
        """What the lanes found. If that cannot be read in time, what an earlier, smaller set of them found."""
        try:
            if self._task is not None and self._lanes == rankings.keys() and not _failed(self._task):
                return await self._task
            with on_deadline(self._next_deadline()):  # also after a failure: the store may be back
                return await self._find(rankings)
        except BackendUnavailable:
            if self._earlier is None:
                raise
            return self._earlier

    def _next_deadline(self) -> Deadline:
        """Keep what was found so far, cancel what is running, and return the deadline of the next reading."""
        if self._task is not None and self._task.done() and not _failed(self._task):
            self._earlier = self._task.result()
        self.close()
        whole = self._deadline + GRACE
        if self._earlier is not None:
            seconds = whole - self._question.waited()
        else:
            read = sum(reading.spent for reading in self._readings)
            took = time.monotonic() - self._question.started
            seconds = max(whole - took, ROWS_SHARE * self._deadline - read)
        self._readings.append(Deadline(seconds))
        return self._readings[-1]

    def close(self) -> None:
        if self._task is not None:
            let_go(self._task)


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
