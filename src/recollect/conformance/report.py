"""Gathering the specs, running them against a store, and telling what came of it."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import TypeAlias

from recollect.conformance import (
    filters,
    grants,
    graph,
    history,
    isolation,
    outbox,
    records,
    replies,
    tokens,
    upkeep,
    usage,
    vectors,
    words,
)
from recollect.ports import Store

FreshStore: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]


@dataclass(frozen=True, slots=True)
class Spec:
    """One rule: which area it belongs to, what it says, and how to check it."""

    area: str
    name: str
    rule: str
    check: Callable[[Store], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Result:
    """A spec and how the store broke it; no failure means that it kept it."""

    spec: Spec
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a run."""

    results: tuple[Result, ...]

    @property
    def failed(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.failure)

    def __str__(self) -> str:
        kept = f"{len(self.results) - len(self.failed)} of {len(self.results)} specs kept"
        broken = [f"{found.spec.area}.{found.spec.name}: {found.spec.rule}\n{found.failure}" for found in self.failed]
        return "\n\n".join([kept, *broken])


def _specs(module: ModuleType) -> Iterator[Spec]:
    area = module.__name__.rpartition(".")[2]
    for name, check in inspect.getmembers(module, inspect.iscoroutinefunction):
        if name.startswith("spec_"):
            yield Spec(area, name.removeprefix("spec_"), inspect.getdoc(check) or "", check)


AREAS = (records, history, upkeep, filters, words, vectors, graph, outbox, usage, grants, tokens, replies, isolation)
SPECS = tuple(spec for area in AREAS for spec in _specs(area))


async def run(fresh_store: FreshStore, specs: Sequence[Spec] = SPECS) -> Report:
    """Check each spec on a fresh store."""
    return Report(tuple([Result(spec, await _failure(spec, fresh_store)) for spec in specs]))


async def _failure(spec: Spec, fresh_store: FreshStore) -> str:
    try:
        async with fresh_store() as store:
            await spec.check(store)
    except Exception:  # noqa: BLE001 (whatever a store raises is a finding of the report)
        return traceback.format_exc()
    return ""
