"""The hashing embedder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedders.hashing import HashingEmbedder
from recollect.errors import ConfigError
from tests.embedders.conftest import cosine


async def test_the_same_on_every_machine() -> None:
    """A text's vector never changes, whatever the process's hash seed: these places and signs are pinned."""
    vector = (await HashingEmbedder(8).embed(["fox"], space="s", role="document"))[0]
    assert [round(float(x), 4) for x in vector] == [-0.4472, 0.0, 0.0, 0.8944, 0.0, 0.0, 0.0, 0.0]


async def test_similar_texts_are_near() -> None:
    """Shared words and shared parts of words bring texts together; case does not matter."""
    fox, foxes, upper, other = await HashingEmbedder().embed(
        ["the red fox", "red foxes", "THE RED FOX", "quarterly invoices"], space="s", role="document"
    )
    assert cosine(fox, foxes) > cosine(fox, other) + 0.3
    assert np.array_equal(fox, upper)


@given(st.text())
def test_any_text_has_a_unit_vector(text: str) -> None:
    """Blank texts, symbols and features that cancel each other out still have length 1."""
    vector = HashingEmbedder(2)._vectors([text])[0]
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


async def test_no_texts() -> None:
    """No texts give no rows of the right width."""
    assert (await HashingEmbedder(64).embed([], space="s", role="document")).shape == (0, 64)


@pytest.mark.parametrize("dimensions", [0, -1, 10**9])
def test_impossible_dimensions(dimensions: int) -> None:
    """A width that no vector can have is refused."""
    with pytest.raises(ConfigError, match=f"are {dimensions}, and must be from 1 to 4096"):
        HashingEmbedder(dimensions)
