"""The engine: every verb over one store, its indexes and one embedder. The only orchestration there is."""

from __future__ import annotations

import asyncio
import builtins
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from operator import length_hint
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect.engine import transfer
from recollect.engine.drafts import check_changes
from recollect.engine.embedding import Embedding
from recollect.engine.feeding import Feeder
from recollect.engine.guarded import Engines
from recollect.engine.guards import Guards, in_words
from recollect.engine.lanes import longest_deadline
from recollect.engine.quality import Rated, score
from recollect.engine.query import Query, check_settings, parse_filter, parse_query
from recollect.engine.recall import Recaller
from recollect.engine.remember import Ingested, Rememberer
from recollect.engine.scoring import Scoring
from recollect.engine.sharing import Looking, Sharing
from recollect.engine.sizes import read_all, read_nearest, read_page
from recollect.engine.turns import Turns
from recollect.engine.upkeep import Upkeep
from recollect.engine.usage import HitCounter, usage_since
from recollect.errors import BackendUnavailable, EmbeddingMismatch, InvalidRequest, NotFound, RecallFailed
from recollect.legs.question import Question
from recollect.legs.waiting import within
from recollect.limits import (
    check_flag,
    check_name,
    check_number,
    check_strength,
    check_supersedable,
    check_time,
    check_vector,
)
from recollect.options import ListOptions, RecallOptions
from recollect.ports import Embedder, ExternalLinks, ExternalVectors, Store
from recollect.recipes import Recipe
from recollect.types import (
    Draft,
    Edge,
    Filter,
    LaneReport,
    Leg,
    Memory,
    Neighbor,
    Page,
    Recall,
    Remembered,
    SpaceStats,
    SpaceUsage,
)

if TYPE_CHECKING:
    from recollect.types import Vector

RecallListener: TypeAlias = Callable[[str, str, Recall | RecallFailed], None]
"""Is told, after each recall, its space, the name of its recipe, and the answer or why there was none."""

LIST_MOST = 1000
HISTORY_MOST = 1000
"""How many versions before a memory, and how many after it, its history has at most: those nearest to it."""
VECTOR: Leg = "vector"
GRAPH: Leg = "graph"


class Engine:
    """One store, one embedder, every verb. `question_vector` embeds questions (the client puts a cache there)."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        question_vector: Callable[[str, str], Awaitable[Vector]],
        guards: Guards | None = None,
        vectors: ExternalVectors | None = None,
        links: ExternalLinks | None = None,
    ) -> None:
        self.store = store
        self.embedding = Embedding(embedder, store)
        self._question_vector = question_vector
        self._rememberer = Rememberer(store, store, self.embedding)
        self._upkeep = Upkeep(store, store, self.embedding)
        self._hits = HitCounter(store)
        self.scoring = Scoring(store, self._hits.flush)
        self._listeners: list[RecallListener] = []
        self._turns = Turns()
        self.guards = guards or Guards()
        self._engines = Engines(self.guards, embedder, store, vectors or store, links or store)
        self.feeders = {
            index.name: Feeder(store, index, leg, self.guards.presence(index.name))
            for index, leg in ((vectors, VECTOR), (links, GRAPH))
            if index is not None
        }
        self._rows = self.guards.of_rows(store)
        self.sharing = Sharing(store, self._rows)
        self._recaller = Recaller(self._engines)

    async def open(self) -> None:
        await self.store.open()
        with suppress(EmbeddingMismatch):  # which is told to whoever embeds
            await self.embedding.check()  # remembered, so that a recall need not ask a store that is away
        opened = await asyncio.gather(*(feeder.open() for feeder in self.feeders.values()), return_exceptions=True)
        for error in filter(None, opened):
            raise error

    def feeder(self, index: str) -> Feeder:
        """What feeds the external index of this name."""
        if index not in self.feeders:
            known = ", ".join(self.feeders) or "none is configured"
            raise InvalidRequest(f"there is no external index {index!r}: {known}")
        return self.feeders[index]

    def _wrote(self) -> None:
        """External indexes are told at once what this process has written."""
        for feeder in self.feeders.values():
            feeder.wake()

    async def close(self) -> None:
        """Finish what is under way. The store and the embedder are whoever's opened them to close."""
        await self.scoring.close()
        await self._upkeep.close()
        await self._hits.close()
        await asyncio.gather(*(feeder.close() for feeder in self.feeders.values()))
        await self.guards.close()

    def _first_use(self, space: str) -> None:
        """What an earlier process left undone in a space is taken up when it is first used, in the background."""
        self._upkeep.first_use(space)
        self.scoring.on_use(space)

    async def remember(self, space: str, draft: Draft) -> Remembered:
        self._first_use(space)
        remembered = await self._rememberer.remember(space, draft)
        self._wrote()
        if remembered.memory.embedding == "pending":
            self._upkeep.catch_up(space)
        return remembered

    async def remember_many(
        self, space: str, drafts: Iterable[Draft], *, on_progress: Callable[[int], None] | None = None
    ) -> Ingested:
        created = seen = 0
        try:
            async with self.store.bulk(length_hint(drafts)):
                async for remembered in self._rememberer.remember_many(space, drafts):
                    seen += len(remembered)
                    created += sum(one.created for one in remembered)
                    if on_progress is not None:
                        on_progress(seen)
        finally:
            self._upkeep.catch_up(space)
        return Ingested(created=created, copies=seen - created)

    async def settle(self, space: str) -> None:
        """Wait until vectors and links are complete."""
        await self._upkeep.settle(space)

    async def recall(self, space: str, text: str, options: RecallOptions) -> Recall:
        query = parse_query(text, options)
        async with self._turns.one():
            return await self._recall(space, text, query, options.get("vector"))

    async def _recall(self, space: str, text: str, query: Query, given: Sequence[float] | Vector | None) -> Recall:
        started = time.monotonic()
        self._first_use(space)
        try:
            dimensions, shared = await within(longest_deadline(query.recipe), self._known_first(space, query))
        except BackendUnavailable as error:
            why = f"what a recall must know first could not be read from {self.store.name}: {in_words(error)}"
            reports = tuple(LaneReport(lane.name, lane.leg, "skipped", why) for lane in query.recipe.lanes)
            failed = RecallFailed(why, lanes=reports)
            self._count_failed(space, query.recipe, failed)
            if query.recipe.all_failed == "empty":
                return Recall((), True, reports, 0.0, query.text, query.recipe.name)
            raise failed from error
        vector: Vector | None = None if given is None else check_vector(given, dimensions)

        async def embed() -> Vector:
            return await self._question_vector(text, space)

        question = Question(
            space,
            text,
            query.where,
            query.fanout,
            embed,
            self._engines.vectors,
            self._engines.words,
            shared=shared,
            at_home=query.at_home,
            given=vector,
            started=started,
            outside=self._engines.outside,
        )
        try:
            recall = await self._recaller.recall(query, question)
        except RecallFailed as failed:
            self._count_failed(space, query.recipe, failed)
            raise
        self._hits.count(space, query.recipe, recall)
        self._tell(space, query.recipe, recall)
        return recall

    def on_recall(self, listener: RecallListener) -> None:
        """Tell a listener of each recall from now on."""
        self._listeners.append(listener)

    def _count_failed(self, space: str, recipe: Recipe, failed: RecallFailed) -> None:
        self._hits.count_failed(space, recipe, failed.lanes)
        self._tell(space, recipe, failed)

    def _tell(self, space: str, recipe: Recipe, outcome: Recall | RecallFailed) -> None:
        for listener in self._listeners:
            listener(space, recipe.name, outcome)

    async def _known_first(self, space: str, query: Query) -> tuple[int | None, Looking]:
        """What the store's vectors are like, and how the recall learns what it may see of others'."""
        asked = self.embedding.dimensions
        dimensions = await (asked() if self.embedding.is_known else self._rows.call(asked))
        return dimensions, await self.sharing.looking(space, query.shared)

    async def get(self, space: str, id: str) -> Memory:
        found = await self.store.get(space, [check_name("id", id)])
        if id not in found:
            raise _missing(space, id)
        return found[id]

    async def history(self, space: str, id: str) -> builtins.list[Memory]:
        found = await self.store.history(space, check_name("id", id), limit=HISTORY_MOST)
        if not found:
            raise _missing(space, id)
        return await read_nearest(found, id, partial(self.store.get, space))

    async def list(self, space: str, options: ListOptions, *, limit: int, after: str | None) -> Page:
        check_settings("list", options, ListOptions.__annotations__)
        check_number("limit", limit, 1, LIST_MOST, whole=True)
        after = None if after is None else check_name("after", after)
        newest_first = check_flag("newest_first", options.get("newest_first", False))
        listed = partial(self.store.list, space, parse_filter(options), newest_first=newest_first)
        return await read_page(lambda most, start: listed(limit=most, after=start), limit, after)

    async def update(self, space: str, id: str, changes: Mapping[str, Any]) -> Memory:
        checked = check_changes(changes, datetime.now(UTC))
        revised = await self._rememberer.revise(space, check_name("id", id), checked)
        self._wrote()
        self._upkeep.catch_up(space)
        return revised

    async def forget(self, space: str, ids: Iterable[str]) -> int:
        gone = await self.store.forget(space, [check_name("id", id) for id in ids])
        self._wrote()
        return gone

    async def used(self, space: str, ids: Iterable[str]) -> int:
        """Memories were of use; how many of them there are."""
        wanted = [*dict.fromkeys(check_name("id", id) for id in ids)]
        return await self.store.mark_used(space, wanted, now=datetime.now(UTC))

    async def supersede(self, space: str, old: str, new: Draft | str) -> Memory:
        """Replace a memory by a new one (a draft) or by another that is there already (its id)."""
        self._upkeep.first_use(space)
        check_supersedable(await self.get(space, old), new)
        if isinstance(new, str) and (await self.get(space, new)).superseded_by is not None:
            raise InvalidRequest(f"memory {new!r} is itself superseded: name the one that holds now")
        successor = await self._rememberer.supersede(space, old, new)
        self._wrote()
        if successor.embedding == "pending":
            self._upkeep.catch_up(space)
        return successor

    async def link(self, space: str, edge: Edge) -> None:
        checked = Edge(
            check_name("id", edge.source),
            check_name("id", edge.target),
            check_name("relation", edge.relation),
            check_strength(edge.strength),
        )
        if checked.source == checked.target:
            raise InvalidRequest(f"memory {edge.source!r} cannot be linked to itself")
        await self.store.link(space, [checked])
        self._wrote()

    async def unlink(self, space: str, source: str, target: str, relation: str | None) -> int:
        relation = None if relation is None else check_name("relation", relation)
        unlinked = await self.store.unlink(space, check_name("id", source), check_name("id", target), relation)
        self._wrote()
        return unlinked

    async def neighbors(self, space: str, id: str, *, depth: int, limit: int) -> builtins.list[Neighbor]:
        """What is linked to a memory, within 1 to 3 steps, strongest first."""
        check_number("depth", depth, 1, 3, whole=True)
        check_number("limit", limit, 1, LIST_MOST, whole=True)
        await self.get(space, id)
        where = Filter(include_superseded=True, now=datetime.now(UTC))
        reached = await self.store.walk(space, [id], where, depth=depth, limit=limit)
        rows = await read_all([r.id for r in reached], partial(self.store.get, space))
        return [Neighbor(rows[r.id], r.strength, r.steps, r.relation) for r in reached if r.id in rows]

    async def stats(self, space: str) -> SpaceStats:
        await self._hits.flush()
        return await self.store.stats(space)

    async def usage(self, space: str, since: datetime | str | None) -> SpaceUsage:
        start = check_time("since", since, datetime.now(UTC))
        await self._hits.flush()
        return await usage_since(self.store, space, start)

    async def score(self, space: str, on_progress: Callable[[int], None] | None = None) -> Rated:
        await self._hits.flush()
        return await score(self.store, space, datetime.now(UTC), on_progress or (lambda _: None))

    async def export(self, space: str) -> AsyncIterator[dict[str, Any]]:
        await self._hits.flush()
        async for line in transfer.export(self.store, space):
            yield line

    async def import_lines(
        self,
        space: str,
        lines: Iterable[str] | AsyncIterable[str],
        on_progress: Callable[[transfer.Imported], None] | None = None,
    ) -> transfer.Imported:
        try:
            async with self.store.bulk(length_hint(lines)):
                return await transfer.import_lines(self.store, self._rememberer, space, lines, on_progress)
        finally:
            self._upkeep.catch_up(space)


def _missing(space: str, id: str) -> NotFound:
    return NotFound(f"space {space!r} holds no memory {id!r}")
