"""What an answer says about how sure it is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from recollect import AsyncRecollect, AsyncSpace, InvalidRequest

TEXTS = (
    "The invoice of the carpenter was paid on 3 May.",
    "Our cat is called Tom and sleeps all day.",
    "The meeting about the new office is on Thursday.",
    "She moved to Lisbon because of the light.",
)


@pytest.fixture
async def work() -> AsyncIterator[AsyncSpace]:
    async with AsyncRecollect("sqlite:///:memory:") as client:
        space = client.space("work")
        for text in TEXTS:
            await space.remember(text)
        await space.settle()
        yield space


@pytest.mark.parametrize("recipe", ["balanced", "careful", "pgmemory"])
async def test_an_answer_is_surer_than_noise(work: AsyncSpace, recipe: str) -> None:
    """By any recipe: what answers is surer than what does not, and than anything is of an off-topic question."""
    right = await work.recall("when was the carpenter's invoice paid?", recipe=recipe)
    wrong = await work.recall("how do plate tectonics cause earthquakes?", recipe=recipe)
    assert right[0].memory.text == TEXTS[0]
    assert all(right[0].confidence > hit.confidence for hit in (*right.hits[1:], *wrong))
    assert all(0 <= hit.confidence <= 1 for hit in (*right, *wrong))


async def test_an_answer_knows_whether_it_has_one(work: AsyncSpace) -> None:
    """`answerable` is for those who want a yes or no."""
    assert (await work.recall("when was the carpenter's invoice paid?", recipe="careful")).answerable
    assert not (await work.recall("how do plate tectonics cause earthquakes?", recipe="careful")).answerable


async def test_noise_can_be_cut_off(work: AsyncSpace) -> None:
    """`min_confidence` leaves out what is less sure; where that is everything, the nearest miss is named."""
    noise = await work.recall("how do plate tectonics cause earthquakes?", min_confidence=0.3)
    assert noise.hits == ()
    assert noise.nearest_miss is not None
    assert noise.nearest_miss.confidence < 0.3
    answer = await work.recall("when was the carpenter's invoice paid?", min_confidence=0.1)
    assert answer[0].memory.text == TEXTS[0]
    assert answer.nearest_miss is None
    assert all(hit.confidence >= 0.1 for hit in answer)


@pytest.mark.parametrize("least", [-0.1, 1.1, "high"])
async def test_a_probability_is_from_0_to_1(work: AsyncSpace, least: float) -> None:
    """Anything else is refused by name."""
    with pytest.raises(InvalidRequest, match="min_confidence"):
        await work.recall("invoice", min_confidence=least)
