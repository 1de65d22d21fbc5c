"""How far it is through the house: the functions and files that one recall passes through, on every thread."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from types import CodeType, FrameType

import httpx
import pytest

import recollect
from recollect import AsyncRecollect
from recollect.servers.web import application
from tests.servers.dashboard_reader import ADDRESS, ORIGIN

ROOT = str(Path(recollect.__file__).parent)
MOST_FUNCTIONS, MOST_FILES = 230, 38
"""The goals of the house. Lower them when the way gets shorter."""
MOST_OVER_HTTP = 300, 64
"""What is reached over HTTP. The goal is a quarter more than the library: 288 functions in 48 files."""
TURNS = 20
RECALL = "/v1/spaces/work/recall"

Ask = Callable[[str], Awaitable[int]]
"""Recalls by a question; how many hits there were."""


class Tracer:
    """Notes the code of Recollect that is called while it is `on`. Comprehensions count: they are code to follow."""

    def __init__(self) -> None:
        self.on = False
        self.seen: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if self.on and event == "call" and frame.f_code.co_filename.startswith(ROOT):
            self.seen.add(frame.f_code)


async def filled(memory: AsyncRecollect) -> None:
    work = memory.space("work")
    for number in range(TURNS):
        text = f"turn {number}: the invoice {1000 + number} for the trip to Paris was paid"
        await work.remember(text, kind="message", thread="trip")
    await work.settle()


async def traced(ask: Ask, tracer: Tracer) -> None:
    """A recall over a conversation, after some others like it."""
    for _ in range(3):
        await ask("what about the invoice 1003?")
    tracer.on = True
    hits = await ask("what about the trip and invoice 1005?")
    tracer.on = False
    assert hits == 10


async def by_library(url: str, tracer: Tracer) -> None:
    async with AsyncRecollect(url, embedder="hashing") as memory:
        await filled(memory)
        work = memory.space("work")

        async def ask(question: str) -> int:
            answer = await work.recall(question)
            assert not answer.degraded
            return len(answer)

        await traced(ask, tracer)


async def over_http(url: str, tracer: Tracer) -> None:
    async with AsyncRecollect(url, embedder="hashing") as memory:
        await filled(memory)
        transport = httpx.ASGITransport(application(memory), client=ADDRESS)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as http:

            async def ask(question: str) -> int:
                answer = (await http.post(RECALL, json={"query": question})).json()
                assert not answer["degraded"]
                return len(answer["hits"])

            await traced(ask, tracer)


@pytest.mark.parametrize(("recall", "most"), [(by_library, (MOST_FUNCTIONS, MOST_FILES)), (over_http, MOST_OVER_HTTP)])
def test_the_way_of_a_recall_is_short(
    url: str, recall: Callable[[str, Tracer], Coroutine[None, None, None]], most: tuple[int, int]
) -> None:
    """A recall on SQLite passes through few functions in few files; all threads are traced."""
    tracer = Tracer()
    before = sys.getprofile()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        asyncio.run(recall(url, tracer))
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # which is how tracing is ended
    files = {code.co_filename for code in tracer.seen}
    if len(tracer.seen) > most[0] or len(files) > most[1]:
        way = "\n".join(sorted(f"{code.co_filename[len(ROOT) + 1 :]} {code.co_qualname}" for code in tracer.seen))
        pytest.fail(f"{len(tracer.seen)} functions in {len(files)} files:\n{way}")
