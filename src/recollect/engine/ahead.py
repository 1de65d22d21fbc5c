"""Reading ahead: while lanes are slow, the answer is made of those that have answered so far. If the others turn out
late it is there, and its caller is not kept waiting beyond the deadline.
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
"""Seconds beyond the deadline for reading what the lanes found from a store outside this process, where the last lane
was just in time. That leaves something for an event loop that is late itself, before a recall has taken 0.1 s more than
it was given.
"""
ROWS_SHARE = 0.5
"""How much of the longest deadline that reading has at least, however often it is begun again."""


class ReadAhead:
    """Finds the answer of the lanes, for those that have answered so far and again for all."""

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
        """Go ahead with what has been answered so far."""
        rankings = rankings_of(answered)
        if rankings and rankings.keys() != self._lanes:
            deadline = self._anew()
            self._lanes = rankings.keys()
            self._task = start(deadline, self._find(rankings))

    async def of(self, rankings: Mapping[str, Ranking]) -> Found:
        """What all lanes found that have answered; where that cannot be read in time, what fewer of them found."""
        try:
            if self._task is not None and self._lanes == rankings.keys() and not _failed(self._task):
                return await self._task
            with on_deadline(self._anew()):  # also after a failure: the store may have come back since
                return await self._find(rankings)
        except BackendUnavailable:
            if self._earlier is None:
                raise
            return self._earlier

    def _anew(self) -> Deadline:
        """Keep what was found so far, and be ready for another reading: for how long that may wait for a store."""
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
    """Whether it ended without an answer."""
    return task.done() and (task.cancelled() or task.exception() is not None)
