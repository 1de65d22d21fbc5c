"""From one embedding model to another, while others read and write.

A second generation of vectors is filled beside the current one, in small batches with rests between them. What is
written meanwhile, by whichever process, lacks a vector of the next generation and is found by the next look. When
nothing lacks one, the store switches in one step. Killed at any moment, it goes on where it was when it is run again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from recollect.engine.embedding import passage
from recollect.errors import EmbeddingError, InvalidRequest
from recollect.ports import Embedder, GenerationState, Store
from recollect.types import Generation, Memory

if TYPE_CHECKING:
    from recollect.engine.engine import Engine

BATCH: Final = 16
"""Memories embedded at once: a question that arrives meanwhile waits for no more."""
REST: Final = 1.0
"""Seconds of rest for each second of work, where no rate is given."""
GRACE: Final = timedelta(days=7)
"""So long the old vectors are kept after the switch."""
PROBE: Final = "How many dimensions does a vector have?"


@dataclass(frozen=True, slots=True)
class ReembedProgress:
    """How many memories have a vector of the new model, of how many."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Reembedded:
    """What a change of the model did: how many memories it embedded, and the ids, by space, that it could not."""

    generation: Generation
    before: Generation | None
    embedded: int
    failed: dict[str, list[str]]


async def reembed(
    engine: Engine, embedder: Embedder, *, rate: float | None, on_progress: Callable[[ReembedProgress], None]
) -> Reembedded:
    """Change a store to another embedder, and this process with it. At most `rate` memories a second are embedded;
    without one, it rests as long as it works.
    """
    store = engine.store
    wanted = await _generation_of(store, embedder)
    before = await store.generation()
    if before is None:
        await store.set_generation(wanted)
    if before in (None, wanted):
        await _switch(engine, embedder, wanted)
        return Reembedded(wanted, before, 0, {})
    await store.generations.begin(wanted)
    filling = _Filling(store, embedder, wanted, rate, on_progress)
    while True:
        await filling.fill()
        for feeder in engine.feeders.values():
            await feeder.drain()
        if await store.generations.publish(wanted, without=filling.failed):
            break
    await _switch(engine, embedder, wanted)
    return Reembedded(wanted, before, filling.embedded, filling.failed)


async def _switch(engine: Engine, embedder: Embedder, wanted: Generation) -> None:
    """Use the new model in this process, too. Links to the nearest are made anew, and what was stored without a vector
    at the moment of the switch gets one.
    """
    engine.use(embedder, wanted)
    while await engine.store.generations.relink():
        pass
    for space in await engine.store.spaces():
        engine.upkeep.catch_up(space)


async def abandon(engine: Engine) -> list[Generation]:
    """Give up a change that is not complete: drop the vectors of the next generation."""
    return await _drop(engine, lambda one: one.state == "next")


async def drop_old(engine: Engine, *, older_than: timedelta = timedelta(0)) -> list[Generation]:
    """Drop the vectors of models that answered before, and which ones these were."""
    now = datetime.now(UTC)
    return await _drop(engine, lambda one: one.state == "old" and (one.since is None or now - one.since >= older_than))


async def old_one(store: Store) -> Generation:
    """The generation that answered before the current one. Raises InvalidRequest if its vectors are gone."""
    old = [one for one in await store.generations.all() if one.state == "old"]
    if not old:
        raise InvalidRequest("there are no vectors of an earlier model to go back to")
    return max(old, key=lambda one: one.since or datetime.min.replace(tzinfo=UTC)).generation


async def _drop(engine: Engine, chosen: Callable[[GenerationState], bool]) -> list[Generation]:
    dropped = [one.generation for one in await engine.store.generations.all() if chosen(one)]
    for generation in dropped:
        await engine.store.generations.drop(generation)
        if engine.vectors is not None:
            await engine.vectors.drop(generation)
    return dropped


async def _generation_of(store: Store, embedder: Embedder) -> Generation:
    """What an embedder makes; a remote one is asked, if need be."""
    if embedder.dimensions is not None:
        return Generation(embedder.name, embedder.dimensions)
    space = next(iter(await store.spaces()), "default")  # a key may be a space's own
    return Generation(embedder.name, (await embedder.embed([PROBE], space=space, role="document")).shape[1])


class _Filling:
    """Gives every memory its vector of the next generation."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        generation: Generation,
        rate: float | None,
        on_progress: Callable[[ReembedProgress], None],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._generation = generation
        self._rate = rate
        self._on_progress = on_progress
        self.embedded = 0
        self.failed: dict[str, list[str]] = {}

    async def fill(self) -> None:
        """Look through all spaces once."""
        counts = {one.state: one.vectors for one in await self._store.generations.all()}
        done, total = counts.get("next", 0), counts.get("current", 0)
        self._on_progress(ReembedProgress(done, total))
        for space in await self._store.spaces():
            after = ""
            while found := await self._store.generations.unembedded(space, self._generation, after=after, limit=BATCH):
                started, after = time.monotonic(), found[-1].id
                some = [memory for memory in found if memory.id not in self.failed.get(space, ())]
                await self._embed(space, some)
                done += len(some)
                self._on_progress(ReembedProgress(done, max(done, total)))
                await self._rest(len(some), time.monotonic() - started)

    async def _embed(self, space: str, memories: Sequence[Memory]) -> None:
        """One text that the embedder cannot take does not hold up the others: each is then tried alone."""
        if not memories:
            return
        try:
            await self._put(space, memories)
        except EmbeddingError:
            await self._embedder.embed([PROBE], space=space, role="document")  # raises where the embedder is down
            if len(memories) == 1:
                self.failed.setdefault(space, []).append(memories[0].id)
            else:
                for memory in memories:
                    await self._embed(space, [memory])

    async def _put(self, space: str, memories: Sequence[Memory]) -> None:
        texts = [passage(memory) for memory in memories]
        vectors = await self._embedder.embed(texts, space=space, role="document")
        await self._store.generations.put(space, self._generation, list(zip(memories, vectors, strict=True)))
        self.embedded += len(memories)

    async def _rest(self, count: int, worked: float) -> None:
        pause = REST * worked if self._rate is None else count / self._rate - worked
        await asyncio.sleep(max(pause, 0.0))
