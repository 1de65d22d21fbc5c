"""Warming up: an embedder inside this process is loaded before it is needed, and nothing else happens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recollect import AsyncRecollect
from recollect.embedders.local import LocalEmbedder
from recollect.ports import Role
from tests.conftest import FlakyEmbedder

if TYPE_CHECKING:
    from recollect.types import Vectors


class Broken(FlakyEmbedder):
    """Fails as nobody thought of."""

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        raise KeyError("surprise")


async def test_the_model_is_loaded_and_no_store_is_opened(tmp_path: Path) -> None:
    """So that a server can do it beside everything else."""
    model = LocalEmbedder()
    client = AsyncRecollect(f"sqlite:///{tmp_path / 'memory.db'}", embedder=model)
    await client.warm_up()
    assert model._model is not None
    assert not (tmp_path / "memory.db").exists()
    await client.close()
    await model.close()


@pytest.mark.parametrize("kind", [FlakyEmbedder, Broken])
async def test_an_embedder_that_fails_is_left_to_whoever_embeds(url: str, kind: type[FlakyEmbedder]) -> None:
    """It raises nothing."""
    embedder = kind()
    embedder.down = True
    async with AsyncRecollect(url, embedder=embedder) as client:
        await client.warm_up()
        assert (await client.space("work").stats()).memories == 0  # the client goes on


async def test_a_provider_is_not_asked(url: str, embedder: FlakyEmbedder) -> None:
    """An embedder outside this process has nothing to load, and may cost money."""
    embedder.in_process = False
    async with AsyncRecollect(url, embedder=embedder) as client:
        await client.warm_up()
    assert embedder.asked == 0
