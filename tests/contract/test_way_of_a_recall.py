"""How far it is through the house: the functions and files that one recall passes through, on every thread."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

import pytest

import recollect
from recollect import AsyncRecollect

ROOT = str(Path(recollect.__file__).parent)
MOST_FUNCTIONS, MOST_FILES = 230, 38
"""The goals of the house. Lower them when the way gets shorter."""
TURNS = 20


class Tracer:
    """Notes the code of Recollect that is called while it is `on`. Comprehensions count: they are code to follow."""

    def __init__(self) -> None:
        self.on = False
        self.seen: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if self.on and event == "call" and frame.f_code.co_filename.startswith(ROOT):
            self.seen.add(frame.f_code)


async def traced_recall(url: str, tracer: Tracer) -> None:
    """A recall over a conversation, after some others like it."""
    async with AsyncRecollect(url, embedder="hashing") as memory:
        work = memory.space("work")
        for number in range(TURNS):
            text = f"turn {number}: the invoice {1000 + number} for the trip to Paris was paid"
            await work.remember(text, kind="message", thread="trip")
        await work.settle()
        for _ in range(3):
            await work.recall("what about the invoice 1003?")
        tracer.on = True
        answer = await work.recall("what about the trip and invoice 1005?")
        tracer.on = False
    assert len(answer) == 10
    assert not answer.degraded


def test_the_way_of_a_recall_is_short(url: str) -> None:
    """A recall of the library on SQLite passes through few functions in few files; all threads are traced."""
    tracer = Tracer()
    before = sys.getprofile()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        asyncio.run(traced_recall(url, tracer))
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # which is how tracing is ended
    files = {code.co_filename for code in tracer.seen}
    if len(tracer.seen) > MOST_FUNCTIONS or len(files) > MOST_FILES:
        way = "\n".join(sorted(f"{code.co_filename[len(ROOT) + 1 :]} {code.co_qualname}" for code in tracer.seen))
        pytest.fail(f"{len(tracer.seen)} functions in {len(files)} files:\n{way}")
