"""Work that several lanes of a question want alike: done once, and waited for by each on its own deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from math import isinf
from typing import Any, Literal, TypeAlias, TypeVar, cast

from recollect.calls.deadline import Deadline, Stopped, Wait, current_deadline, let_go, start
from recollect.calls.gate import no_answer
from recollect.recipes import DEADLINE

T = TypeVar("T")

Asked: TypeAlias = Literal["embedder", "vector index", "store"]
"""What lanes ask together."""


class SharedWork:
    """What one question has asked on behalf of all its lanes. `outside` names what is asked outside this process."""

    def __init__(self, outside: Collection[Asked] = ()) -> None:
        self.outside = outside
        self._tasks: dict[object, tuple[asyncio.Task[Any], Deadline]] = {}

    async def once(self, key: object, work: Callable[[], Coroutine[Any, Any, T]], what: Asked, share: float = 1.0) -> T:
        """What `work` gives, done once even when several lanes want it; one that gives up does not take it away from
        the others. Raises BackendTimeout when a lane has waited for `what` is asked with a `share` of its deadline.
        """
        deadline = current_deadline()
        if key not in self._tasks:
            own = Deadline(max(deadline.seconds, DEADLINE))
            self._tasks[key] = start(own, work()), own
        task, own = self._tasks[key]
        outside = what in self.outside
        if not outside and isinf(deadline.until) and not task.done():  # nothing is timed
            await asyncio.wait((task,))
        if task.done():
            return cast("T", _result(task, what))
        waiter = asyncio.get_running_loop().create_future()

        def wake(_: object = None) -> None:
            if not waiter.done():
                waiter.set_result(None)

        wait = Wait(deadline, wake, outside=outside, share=share)
        task.add_done_callback(wake)
        try:
            await waiter
        finally:
            wait.end()
            task.remove_done_callback(wake)
        if not task.done():
            own.over = True
            raise no_answer(f"the {what}", share * deadline.seconds)
        return cast("T", _result(task, what))

    def close(self) -> None:
        """Let go of work that no lane waits for any more."""
        for task, _ in self._tasks.values():
            let_go(task)


def _result(task: asyncio.Task[T], what: Asked) -> T:
    if task.cancelled():  # not by us: a CancelledError would look as if our own caller had gone
        raise Stopped("it was stopped while under way", backend=what)
    return task.result()
