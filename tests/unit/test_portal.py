"""The portal: calls that other threads wait for, cancelled by Ctrl-C, and refused where they cannot be run."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from itertools import count
from types import FrameType
from typing import Any

import pytest

from recollect import InvalidRequest
from recollect.portal import Portal


@pytest.fixture
def portal() -> Iterator[Portal]:
    portal = Portal()
    yield portal
    portal.close()


class Frozen:
    """Work that does not end by itself."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.cancelled = False

    async def __call__(self) -> None:
        try:
            self.begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def running() -> int:
    """How many calls are under way beside this one."""
    return len(asyncio.all_tasks()) - 1


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


def press_ctrl_c(after: threading.Event) -> threading.Thread:
    """Interrupt the main thread, as a terminal does, once something has happened."""

    def press() -> None:
        after.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


def test_ctrl_c_cancels_the_call_and_leaves_the_portal_usable(portal: Portal) -> None:
    """The call has ended when the caller goes on."""
    frozen = Frozen()
    presser = press_ctrl_c(frozen.begun)
    with pytest.raises(KeyboardInterrupt):
        portal.run(frozen())
    presser.join()
    assert frozen.cancelled
    assert portal.run(running()) == 0
    assert portal.run(answer(7)) == 7


class Interruption:
    """Raises KeyboardInterrupt before the nth line that the caller's thread runs, and notes when it waits."""

    FILES = ("portal.py", "concurrent/futures/_base.py", "asyncio/base_events.py", "asyncio/selector_events.py")

    def __init__(self, line: int) -> None:
        self.line = line
        self.seen: set[tuple[FrameType, int]] = set()
        self.waiting = threading.Event()

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_qualname == "Condition.wait":
            self.waiting.set()
        if not frame.f_code.co_filename.endswith(self.FILES):
            return None
        here = (frame, frame.f_lineno)
        if event == "line" and here not in self.seen:  # a `with` is seen again when it is left: no signal strikes there
            self.seen.add(here)
            if len(self.seen) == self.line:
                self.waiting.set()
                raise KeyboardInterrupt
        return self

    async def until_waited_for(self) -> str:
        while not self.waiting.is_set():  # noqa: ASYNC110  # it is set by another thread
            await asyncio.sleep(0)
        return "answered"


def test_ctrl_c_loses_no_call_wherever_it_strikes(portal: Portal) -> None:
    """Before each line that the caller's thread runs, from the first to the last: no call goes on without its caller,
    and none is left half begun.
    """
    before, answered = sys.gettrace(), None
    gc.disable()  # a finalizer would swallow the interruption
    for line in count(1):
        interruption = Interruption(line)
        work = interruption.until_waited_for()
        sys.settrace(interruption)
        try:
            answered = portal.run(work)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        assert portal.run(running()) == 0, line
        assert inspect.getcoroutinestate(work) in (inspect.CORO_CREATED, inspect.CORO_CLOSED), line
        work.close()
        if answered:
            break
    gc.enable()
    assert answered == "answered"
    assert line > 20


def test_what_a_callback_raises_to_exit_reaches_the_caller(portal: Portal) -> None:
    """It does not end the loop, which others use."""

    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        portal.run(leave())
    assert portal.run(answer(7)) == 7


def test_closing_ends_a_call_that_another_thread_waits_for() -> None:
    """It is told why; and what comes later is refused."""
    portal, frozen, said = Portal(), Frozen(), []

    def call() -> None:
        with pytest.raises(InvalidRequest) as error:
            portal.run(frozen())
        said.append(str(error.value))

    thread = threading.Thread(target=call)
    thread.start()
    frozen.begun.wait()
    portal.close()
    thread.join()
    assert said == ["this Recollect was closed while the call was under way"]
    assert frozen.cancelled
    with pytest.raises(InvalidRequest, match="is closed: open a new one"):
        portal.run(answer(7))
    portal.close()


def test_a_generator_that_is_left_is_ended(portal: Portal) -> None:
    """What it holds open is let go of at once, not when the client closes."""
    ended = []

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            for number in range(5):
                yield number
        finally:
            ended.append(True)

    assert list(portal.each(numbers())) == [0, 1, 2, 3, 4]
    some = portal.each(numbers())
    assert next(some) == 0
    assert len(ended) == 1
    some.close()  # type: ignore[attr-defined]  # it is a generator
    assert len(ended) == 2


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_is_told_to_open_its_own(portal: Portal) -> None:
    """The thread of the loop is not in it, so a call would wait for ever."""
    child = os.fork()
    if child == 0:
        try:
            portal.run(answer(7))
        except InvalidRequest as error:
            os._exit(0 if "before the process forked" in str(error) and not portal.is_open else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert portal.run(answer(7)) == 7
