"""The stage after fusion: the best few are read together with the question, and their order follows from both.

    fused -> the best `count` -> their rows, and for a turn what stands beside it -> passages -> reranker.score
          -> mean of a memory's readings -> trust x score is added -> what the question names keeps its place

Whatever goes wrong on the way, the fused order stands, and the report says what went wrong.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from recollect.calls.deadline import Deadline, on_deadline
from recollect.calls.gate import Gates, Skipped, in_words
from recollect.engine.lanes import by_space
from recollect.errors import BackendTimeout
from recollect.legs.question import Question
from recollect.ports import Beside, Reranker
from recollect.ranking.fusion import keep_exact
from recollect.ranking.rerank import check_scores, fluency, mean_scores, reranked
from recollect.recipes import Recipe, Rerank
from recollect.rerankers import check_reranker, configured_reranker
from recollect.settings import Settings
from recollect.text.analyzer import words
from recollect.text.languages import small_words
from recollect.types import Filter, Fused, LaneReport, LaneStatus, Memory, Ranking

LANE = "rerank"
ALONE = Beside((), ())
QUESTION = re.compile(r"\?\W*(\[[^\]]*\]\s*)?$")
"""A turn that ends with a question; a remark in brackets, such as for a picture, may follow."""
READ = 4_000
"""Characters of a passage that tell how much it is like prose."""


class Rows(Protocol):
    """What the stage needs of a store."""

    async def get(self, space: str, ids: Sequence[str]) -> dict[str, Memory]: ...

    async def beside(self, space: str, ids: Sequence[str], reach: int) -> dict[str, Beside]: ...

    async def visible(self, space: str, ids: Sequence[str], where: Filter) -> set[str]: ...


class Reading(NamedTuple):
    """One passage that is read for a memory, which goes by the id that it was fused under."""

    id: str
    passage: str


class Rerankers:
    """Rerankers by the name that a recipe gives them, each made when it is first needed. `own` is the client's, for
    recipes that name none: a name, or an object, which whoever made it closes.
    """

    def __init__(self, settings: Settings | None = None, own: str | Reranker | None = None) -> None:
        self._settings = settings or Settings(url="")
        self._own = own
        self._made: dict[str | None, Reranker] = {}

    def check(self, recipes: Iterable[Recipe]) -> None:
        """Raises ConfigError if the client or a recipe names a reranker that does not exist. None is made."""
        if self._own is None or isinstance(self._own, str):
            check_reranker(self._own or self._settings.reranker)
        for one in recipes:
            if one.rerank and one.rerank.model:
                check_reranker(one.rerank.model)

    def of(self, model: str | None) -> Reranker:
        if model is None and self._own is not None and not isinstance(self._own, str):
            return self._own
        if model not in self._made:
            named = self._own if isinstance(self._own, str) else None
            self._made[model] = configured_reranker(self._settings, model or named)
        return self._made[model]

    async def close(self) -> None:
        for reranker in self._made.values():
            await reranker.close()
        self._made.clear()


class Reranking:
    """Runs the stage."""

    def __init__(self, rows: Rows, rerankers: Rerankers, gates: Gates) -> None:
        self._rows = rows
        self._rerankers = rerankers
        self._gates = gates

    async def rerank(
        self, question: Question, how: Rerank, fused: Sequence[Fused], rankings: Mapping[str, Ranking]
    ) -> tuple[list[Fused], LaneReport]:
        """The new order, and how the stage fared."""
        started = time.monotonic()

        def report(status: LaneStatus, reason: str = "", *, read: int = 0, wanted: bool = True) -> LaneReport:
            ms = (time.monotonic() - started) * 1000
            return LaneReport(LANE, "rerank", status, reason, ms, read, wanted)

        try:
            reranker = self._rerankers.of(how.model)
            language = question.words.language
            if language is not None and reranker.languages and language not in reranker.languages:
                return [*fused], report("skipped", f"{reranker.name} does not know {language}", wanted=False)
            best = [one.id for one in fused[: how.count]]
            memories = await by_space(question.space, best, self._rows.get)
            readings = await self._readings(question, {id: memories[id] for id in best if id in memories})
            given = await self._read(reranker, question, how, [reading.passage for reading in readings])
            scores = mean_scores([r.id for r in readings], check_scores(given, len(readings)))
        except Skipped as error:
            return [*fused], report("skipped", in_words(error))
        except BackendTimeout as error:
            return [*fused], report("late", in_words(error))
        except Exception as error:  # noqa: BLE001  # whatever a reranker does, the lanes' answer stands
            return [*fused], report("failed", in_words(error))
        trust = trust_in(reranker.languages, how, memories, readings)
        order = reranked(fused, scores, trust, size_of(rankings))
        for ranking in rankings.values():
            order = keep_exact(order, ranking)
        return order, report("ok", read=len(scores))

    async def _read(
        self, reranker: Reranker, question: Question, how: Rerank, passages: Sequence[str]
    ) -> Sequence[float]:
        """The reranker's scores, through its gate: one that keeps being late or failing is left alone for a while."""
        if not passages:
            return ()

        async def read() -> Sequence[float]:
            try:
                async with asyncio.timeout(how.deadline):  # which also ends work in this process
                    return await reranker.score(question.text, passages)
            except TimeoutError:
                late = f"{reranker.name} was not done within {how.deadline:g} s"
                raise BackendTimeout(late, backend=reranker.name) from None

        with on_deadline(Deadline(how.deadline)):
            return await self._gates.of("rerank", reranker).call(read, question.space)

    async def _readings(self, question: Question, memories: Mapping[str, Memory]) -> list[Reading]:
        """Each memory alone, and a turn also between those before and after it that may be seen."""
        readings = [Reading(id, own_passage(one)) for id, one in memories.items() if not is_turn(one)]
        for space in dict.fromkeys(memory.space for memory in memories.values() if is_turn(memory)):
            turns = {id: one for id, one in memories.items() if one.space == space and is_turn(one)}
            beside = await self._rows.beside(space, [turn.id for turn in turns.values()], 1)
            near = [id for there in beside.values() for id in (*there.before, *there.after)]
            seen = await self._rows.visible(space, near, question.where_in(space))
            texts = {id: row.text for id, row in (await self._rows.get(space, [*seen])).items()}
            for id, turn in turns.items():
                there = beside.get(turn.id, ALONE)
                before = next((texts[other] for other in there.before if other in texts), "")
                after = next((texts[other] for other in there.after if other in texts), "")
                readings += [Reading(id, passage) for passage in turn_passages(before, own_passage(turn), after)]
        return readings


def is_turn(memory: Memory) -> bool:
    """Whether a memory is part of a conversation: a message, or in a thread and no chunk of a document."""
    return memory.kind == "message" or (memory.thread is not None and memory.kind != "chunk")


def own_passage(memory: Memory) -> str:
    return f"{memory.title}\n{memory.text}" if memory.title else memory.text


def turn_passages(before: str, turn: str, after: str) -> tuple[str, ...]:
    r"""What is read of a turn: itself, and itself between its neighbours. A turn that answers a question means little
    without it, so then the question is always read with it.

    >>> turn_passages("Do you have a pet?", "Yes, two.", "How old are they?")
    ('Do you have a pet?\nYes, two.', 'Do you have a pet?\nYes, two.\nHow old are they?')
    >>> turn_passages("Hello.", "I have two dogs.", "")
    ('I have two dogs.', 'Hello.\nI have two dogs.')
    """
    own = f"{before}\n{turn}" if QUESTION.search(before) else turn
    around = "\n".join(text for text in (before, turn, after) if text)
    return (own,) if own == around else (own, around)


def size_of(rankings: Mapping[str, Ranking]) -> int:
    """How many memories the lanes could have found."""
    return max((ranking.background.count for ranking in rankings.values() if ranking.background), default=1)


def trust_in(
    languages: Sequence[str], how: Rerank, memories: Mapping[str, Memory], readings: Sequence[Reading]
) -> dict[str, float]:
    """How far the reranker is trusted with each memory: as the recipe says for its kind, and for a turn the more, the
    more it is prose; not at all with a text in a language that it does not know.
    """
    trust: dict[str, float] = {}
    for reading in readings:
        language, share = small_words(words(reading.passage[:READ]))
        if language is not None and languages and language not in languages:
            own = 0.0
        elif is_turn(memories[reading.id]):
            own = how.rest + fluency(share) * (how.turns - how.rest)
        else:
            own = how.rest
        trust[reading.id] = max(trust.get(reading.id, 0.0), own)
    return trust
