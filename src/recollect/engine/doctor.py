"""doctor: check that everything a recall needs is there and works, or only that each engine answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.errors import BackendError, BackendTimeout, EmbeddingError, RecollectError
from recollect.ports import GenerationState
from recollect.ranking.rerank import check_scores

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.engine.feeding import Feeder

ANSWER_SECONDS = 2.0
"""How long an engine may take to answer a check."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was checked."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


async def examine(engine: Engine) -> Diagnosis:
    """Check the store, the model of its vectors, the embedder, the rerankers of recipes, the indexes, and what each
    space is waiting for.
    """

    async def store() -> str:
        await engine.store.check()
        spaces = await engine.store.spaces()
        return f"{engine.store.name} answers, with {len(spaces)} space{'' if len(spaces) == 1 else 's'}"

    async def generation() -> str:
        await engine.embedding.check()
        await engine.embedding.current()
        if why := engine.embedding.outdated:
            raise why
        return described(await engine.store.generations.all())

    async def embedder() -> str:
        space = next(iter(await engine.store.spaces()), "default")  # a key may be a space's own
        vectors = await engine.embedding.embedder.embed(["Does the embedder work?"], space=space, role="query")
        return f"{engine.embedding.embedder.name} answers, with {vectors.shape[1]} dimensions"

    async def indexes() -> str:
        return "; ".join(await engine.store.remarks())

    checks = [await _try("store", store), await _try("vectors", generation), await _try("embedder", embedder)]
    models = dict.fromkeys(one.rerank.model for one in engine.recipes.values() if one.rerank)
    checks += [await _try("reranker", _reranker_check(engine, model)) for model in models]
    if checks[0].ok:
        looked = await _try("indexes", indexes)
        checks += [looked] if looked.detail else []
        checks += [await _try(name, _index_check(feeder)) for name, feeder in engine.feeders.items()]
        names = await engine.store.spaces()
        checks += [await _try(f"space {name}", _space_check(engine, name)) for name in names]
    return Diagnosis(tuple(checks))


async def answering(engine: Engine) -> Diagnosis:
    """Check concurrently that each engine answers. Nothing is embedded: an embedder is fine unless its gate is open or
    the store's vectors are of another model.
    """

    async def store() -> str:
        await engine.store.check()
        current = await engine.embedding.current()
        return f"{engine.store.name} answers" + (f", with vectors of {current.model}" if current else "")

    async def embedder() -> str:
        asked = engine.embedding.embedder
        if different := engine.embedding.mismatch or engine.embedding.outdated:
            raise different
        if why := engine.gates.of("embedder", asked).why_skipped():
            raise EmbeddingError(f"{asked.name} {why}")
        return f"{asked.name} works"

    looks = {"store": store, **{name: _answers(feeder) for name, feeder in engine.feeders.items()}}
    checks = await asyncio.gather(*(_try(name, _in_time(name, look)) for name, look in looks.items()))
    return Diagnosis((*checks, await _try("embedder", embedder)))


def described(states: Sequence[GenerationState]) -> str:
    """The model that answers, and how far a change to another one has come."""
    by_state = {one.state: one for one in states}
    current, coming = by_state.get("current"), by_state.get("next")
    if current is None:
        return "no vectors yet"
    told = f"{current.generation.model}, {current.generation.dimensions} dimensions"
    if coming is not None:
        told += f"; the change to {coming.generation.model} has {coming.vectors:,} of {current.vectors:,} vectors"
    return told


def _answers(feeder: Feeder) -> Callable[[], Awaitable[str]]:
    async def index() -> str:
        await feeder.index.check()
        return f"{feeder.index.name} answers"

    return index


def _in_time(name: str, look: Callable[[], Awaitable[str]]) -> Callable[[], Awaitable[str]]:
    async def looked() -> str:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await look()
        except TimeoutError:
            raise BackendTimeout(f"{name} gave no answer within {ANSWER_SECONDS:g} s", backend=name) from None

    return looked


def _index_check(feeder: Feeder) -> Callable[[], Awaitable[str]]:
    async def index() -> str:
        name = feeder.index.name
        await feeder.index.check()
        if differences := await feeder.compare():
            told = "; ".join(map(str, differences))
            raise BackendError(f"{name} differs from the store: {told}: run `recollect rebuild {name}`", backend=name)
        waiting, _ = await feeder.lag()
        return "answers, and holds what the store holds" + (f"; {waiting:,} changes are waiting" if waiting else "")

    return index


def _reranker_check(engine: Engine, model: str | None) -> Callable[[], Awaitable[str]]:
    async def reranker() -> str:
        reader = engine.rerankers.of(model)
        try:
            check_scores(await reader.score("Does the reranker work?", ["The reranker works."]), 1)
        except RecollectError:
            raise
        except Exception as error:  # a reranker may be another package's, and raise anything
            raise BackendError(f"{reader.name} failed: {error}", backend=reader.name) from error
        return f"{reader.name} answers"

    return reranker


def _space_check(engine: Engine, name: str) -> Callable[[], Awaitable[str]]:
    async def space() -> str:
        stats = await engine.store.stats(name)
        memories = "1 memory" if stats.memories == 1 else f"{stats.memories:,} memories"
        found = f"{memories}, {stats.edges:,} link{'' if stats.edges == 1 else 's'}"
        return found + (f"; {stats.pending:,} are waiting for their vector" if stats.pending else "")

    return space


async def _try(name: str, look: Callable[[], Awaitable[str]]) -> Check:
    try:
        return Check(name, True, await look())
    except RecollectError as error:
        return Check(name, False, str(error))
