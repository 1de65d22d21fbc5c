"""The same answer, whichever way the memories came in, and whichever store holds them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import AsyncRecollect, AsyncSpace, Draft

PEOPLE = ("Ada", "Boris", "Chiara", "Dmitri", "Elena", "Farid", "Greta")
DEEDS = ("paid the invoice of", "met the owners of", "cancelled the order from", "wrote a long letter to",
         "complained about", "repaired the roof of", "recommended")  # fmt: skip
THINGS = (
    "the bakery",
    "the printer in Ulm",
    "a cycling club",
    "the harbour office",
    "the museum",
    "a law firm",
    "the zoo",
)
TEXTS = [f"{who} {did} {what}" for who, did, what in product(PEOPLE, DEEDS, THINGS)]
random.Random(31).shuffle(TEXTS)
DRAFTS = [Draft(text, id=f"{number:03}") for number, text in enumerate(TEXTS[:280])]
FEW = 50
QUESTIONS = ("who settled a bill?", "Greta and animals", "letters to lawyers", "what happened at the harbour?",
             "bread", "Who went to see the cyclists?", "the printer in Ulm", "craftsmanship")  # fmt: skip
NEARLY = 1e-3
"""Cosines are exact to six digits, and a score is a hundred times as large as a cosine at most."""

Load = Callable[[AsyncSpace], Awaitable[None]]
Answer = list[tuple[str, dict[str, float]]]
"""The ids of the hits in their order, and what each lane adds to their scores."""


@pytest.fixture
def urls(tmp_path: Path, pg_database: str) -> list[str]:
    """A store of each kind."""
    return [f"sqlite:///{tmp_path / 'memory.db'}", f"postgresql://?{urlencode(conninfo_to_dict(pg_database))}"]


async def at_once(space: AsyncSpace) -> None:
    await space.remember_many(DRAFTS)


async def one_by_one(space: AsyncSpace) -> None:
    """Asked on the way, so that whatever is kept of a small space would be outdated at the end."""
    for number, draft in enumerate(DRAFTS):
        await space.remember(draft.text, id=draft.id)
        if number in (0, FEW, 270):
            await answers(space)


async def in_reverse(space: AsyncSpace) -> None:
    """By several at once, who do not wait for each other."""
    left = iter(DRAFTS[::-1])

    async def work() -> None:
        for draft in left:
            await space.remember(draft.text, id=draft.id)

    await asyncio.gather(*(work() for _ in range(4)))


async def answers(space: AsyncSpace) -> list[Answer]:
    """With everything that the default recipe asks, once upkeep is done."""
    await space.settle()
    return [
        [(hit.memory.id, {part.lane: part.contribution for part in hit.why}) for hit in await space.recall(question)]
        for question in QUESTIONS
    ]


def assert_same(found: Sequence[Answer], wanted: Sequence[Answer]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert [id for id, _ in one] == [id for id, _ in other]
        for (_, parts), (_, expected) in zip(one, other, strict=True):
            assert parts == pytest.approx(expected, abs=NEARLY)


@pytest.fixture(scope="module")
def wanted() -> dict[int, list[Answer]]:
    """What a file answers that got all memories at once, by how many those are."""

    async def answered(count: int) -> list[Answer]:
        async with AsyncRecollect("sqlite:///:memory:") as recollect:
            await recollect.space("work").remember_many(DRAFTS[:count])
            return await answers(recollect.space("work"))

    return {count: asyncio.run(answered(count)) for count in (FEW, len(DRAFTS))}


@pytest.mark.parametrize("load", [at_once, one_by_one, in_reverse])
async def test_answers_do_not_depend_on_how_the_memories_came(
    load: Load, urls: Sequence[str], wanted: dict[int, list[Answer]]
) -> None:
    """The same ids, order and scores by meaning, words and links: loaded at once, one by one or in reverse, on both
    stores, and again after a restart.
    """
    for url in urls:
        async with AsyncRecollect(url) as recollect:
            space = recollect.space("work")
            await load(space)
            assert_same(await answers(space), wanted[len(DRAFTS)])
        async with AsyncRecollect(url) as recollect:
            assert_same(await answers(recollect.space("work")), wanted[len(DRAFTS)])


async def test_answers_follow_a_space_that_grows_and_shrinks(
    urls: Sequence[str], wanted: dict[int, list[Answer]]
) -> None:
    """From 50 memories to more than a sample and back again, and each time at once."""
    for url in urls:
        async with AsyncRecollect(url) as recollect:
            space = recollect.space("work")
            await space.remember_many(DRAFTS[:FEW])
            assert_same(await answers(space), wanted[FEW])
            await space.remember_many(DRAFTS[FEW:])
            assert_same(await answers(space), wanted[len(DRAFTS)])
            await space.forget(*(str(draft.id) for draft in DRAFTS[FEW:]))
            assert_same(await answers(space), wanted[FEW])
