"""An event loop in a thread, and the way in from other threads: what the synchronous client runs its calls on."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from recollect.errors import InvalidRequest

T = TypeVar("T")
CANCEL_SECONDS = 2.0
"""How long a cancelled call may take to end before nobody waits for it any more."""


class Portal:
    """Runs coroutines on a loop of its own, for callers in other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recollect", daemon=True)
        self._process = os.getpid()
        self._sending = threading.RLock()
        self._open = True
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises. Ctrl-C cancels it."""
        call = _Call(work)
        try:
            self._send(call.begin)
            return call.answer.result()
        except CancelledError:
            raise InvalidRequest("this Recollect was closed while the call was under way") from None
        except BaseException:
            if not call.answer.done():
                self._give_up(call)
            raise

    def each(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        """What an asynchronous generator yields."""

        async def following() -> T:
            return await anext(items)

        try:
            with suppress(StopAsyncIteration):
                while True:
                    yield self.run(following())
        finally:
            with suppress(InvalidRequest):  # after `close` there is nothing left to end
                self.run(items.aclose())

    @property
    def is_open(self) -> bool:
        """Whether a call can be run; never in a process that was forked off."""
        return self._open and os.getpid() == self._process

    def close(self) -> None:
        """Cancel what still runs, and end the thread. A second call does nothing."""
        with self._sending:
            closed, self._open = not self._open, False
        if closed:
            return
        asyncio.run_coroutine_threadsafe(_end_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _send(self, step: Callable[[], None]) -> None:
        """Have the loop take a step of a call. Steps are taken in the order in which they are sent."""
        if os.getpid() != self._process:
            raise InvalidRequest("this Recollect was opened before the process forked: open a new one here")
        if threading.current_thread() is self._thread:
            raise InvalidRequest(
                "a callback of this Recollect cannot call it and wait: note what to do, and do it after"
            )
        with self._sending:
            if not self._open:
                raise InvalidRequest("this Recollect is closed: open a new one")
            self._loop.call_soon_threadsafe(step)

    def _give_up(self, call: _Call[Any]) -> None:
        """End a call that its caller no longer waits for, wherever it has got to."""
        try:
            self._send(call.cancel)
        except InvalidRequest:
            call.drop()
        else:
            with suppress(CancelledError, TimeoutError):
                call.answer.exception(CANCEL_SECONDS)


class _Call(Generic[T]):
    """One call. `begin` and `cancel` run on the loop, so that neither can overtake the other."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self.answer: Future[T] = Future()

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(lambda _: self._end())

    def cancel(self) -> None:
        if self._task is None:
            self._end()
        else:
            self._task.cancel()

    def drop(self) -> None:
        """End a call that the loop refused. What has begun, the loop ends itself."""
        if self._task is None:
            self._end()

    async def _run(self) -> None:
        try:
            self.answer.set_result(await self._work)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # the caller's; SystemExit from a callback would end the loop
            self.answer.set_exception(error)

    def _end(self) -> None:
        """Neither does anything to a call that was answered."""
        self._work.close()
        self.answer.cancel()


async def _end_others() -> None:
    """Cancel all else that runs on this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        done, _ = await asyncio.wait(others, timeout=CANCEL_SECONDS)
        for task in done:
            task.cancelled() or task.exception()  # retrieved, so that asyncio does not report it as forgotten


class Client(Protocol):
    """An asynchronous client."""

    async def __aenter__(self) -> object: ...
    async def close(self) -> None: ...


class Opened:
    """A client that is open from when it is made until it is closed; `with` closes it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._portal = Portal()
        self._run = self._portal.run
        try:
            self._run(client.__aenter__())
        except BaseException:
            self._portal.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish what is under way and let go of the store. A second call does nothing."""
        if self._portal.is_open:
            try:
                self._run(self._client.close())
            finally:
                self._portal.close()
