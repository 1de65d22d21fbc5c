"""The specs, and what a store may leave out."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from recollect.conformance import (
    filters,
    generations,
    grants,
    graph,
    history,
    isolation,
    outbox,
    records,
    replies,
    threads,
    tokens,
    upkeep,
    usage,
    vectors,
    words,
)
from recollect.conformance.capabilities import declared
from recollect.ports import Store

MakeStore: TypeAlias = Callable[[Path], "Store | AbstractAsyncContextManager[Store]"]
"""Makes an empty store: one that is not open yet, or an async context manager that gives an open one and clears away
after it. The folder is new and empty, for a store that lives in files.
"""


@dataclass(frozen=True, slots=True)
class Spec:
    """One rule: which area it belongs to, what it says, and how to check it."""

    area: str
    name: str
    rule: str
    check: Callable[[Store], Awaitable[None]]

    def __str__(self) -> str:
        return f"{self.area}.{self.name}"


def _specs(module: ModuleType) -> Iterator[Spec]:
    area = module.__name__.rpartition(".")[2]
    for name, check in inspect.getmembers(module, inspect.iscoroutinefunction):
        if name.startswith("spec_"):
            yield Spec(area, name.removeprefix("spec_"), inspect.getdoc(check) or "", check)


AREAS = (
    records, threads, history, upkeep, filters, words, vectors, generations, graph, outbox, usage, grants, tokens,
    replies, isolation,
)  # fmt: skip
SPECS = tuple(spec for area in AREAS for spec in _specs(area))


async def check(spec: Spec, make: MakeStore, folder: Path) -> None:
    """Check one spec on a fresh store. Raises LeftOut when it calls for what the store leaves out, and whatever the
    spec raises when the store breaks it.
    """
    made = make(folder)
    async with made if isinstance(made, AbstractAsyncContextManager) else _opened(made) as store:
        await spec.check(declared(store))


@asynccontextmanager
async def _opened(store: Store) -> AsyncIterator[Store]:
    await store.open()
    try:
        yield store
    finally:
        await store.close()
