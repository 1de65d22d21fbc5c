"""Another embedding model for a store that is in use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recollect import AsyncRecollect, InvalidRequest
from recollect.embedders.hashing import HashingEmbedder
from recollect.engine import embedding
from recollect.engine.reembed import ReembedProgress, drop_old
from recollect.errors import EmbeddingError, EmbeddingMismatch
from recollect.ports import Role
from recollect.settings import Settings
from recollect.types import Generation, Recall

if TYPE_CHECKING:
    from recollect.types import Vectors

OLD, NEW = "hashing:64", "hashing:32"
NOTES = [f"note {n} about {word}" for n, word in enumerate(("foxes", "owls", "bees", "invoices", "trains") * 8)]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'memory.db'}"


async def filled(url: str) -> None:
    async with AsyncRecollect(url, embedder=OLD) as r:
        for note in NOTES:
            await r.space("work").remember(note)


async def by_meaning(r: AsyncRecollect, text: str) -> tuple[list[str], bool]:
    answer = await r.space("work").recall(text, weights={"keyword": 0.0, "graph": 0.0}, limit=5)
    return [hit.memory.text for hit in answer.hits], answer.degraded


async def links(url: str, embedder: str) -> set[tuple[str, str, float]]:
    """Which notes are linked to which, and how strongly."""
    async with AsyncRecollect(url, embedder=embedder) as r:
        space = r.space("work")
        await space.settle()
        notes = (await space.list(limit=100)).memories
        near = {note.text: await space.neighbors(note.id, depth=1) for note in notes}
    return {(text, one.memory.text, round(one.strength, 5)) for text, some in near.items() for one in some}


async def test_links_follow_the_new_model(url: str, tmp_path: Path) -> None:
    """They are those of a store that never had another one."""
    await filled(url)
    before = await links(url, OLD)
    async with AsyncRecollect(url, embedder=OLD) as r:
        await r.reembed(NEW)
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    async with AsyncRecollect(fresh, embedder=NEW) as r:
        for note in NOTES:
            await r.space("work").remember(note)
    assert await links(url, NEW) == await links(fresh, NEW) != before


async def test_the_client_goes_over_to_the_new_model(url: str) -> None:
    """All memories have a vector of it, progress is told, and what is remembered from then on is embedded by it."""
    await filled(url)
    told: list[ReembedProgress] = []
    async with AsyncRecollect(url, embedder=OLD) as r:
        done = await r.reembed(NEW, on_progress=told.append)
        assert (done.generation.model, done.embedded, done.failed) == ("hashing-32", len(NOTES), {})
        assert told[-1] == ReembedProgress(len(NOTES), len(NOTES))
        await r.space("work").remember("a last note about hedgehogs")
        assert (await by_meaning(r, "hedgehogs"))[0][0] == "a last note about hedgehogs"
        states = {one.generation.model: (one.state, one.vectors) for one in await r.generations()}
        assert states == {"hashing-64": ("old", len(NOTES)), "hashing-32": ("current", len(NOTES) + 1)}
    async with AsyncRecollect(url, embedder=NEW) as r:
        assert not (await by_meaning(r, "owls"))[1]
    async with AsyncRecollect(url, embedder=OLD) as r:
        with pytest.raises(EmbeddingMismatch, match="recollect reembed"):
            await by_meaning(r, "owls")


@pytest.fixture
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every recall looks whether the store has changed to another model."""
    monkeypatch.setattr(embedding, "LOOK_SECONDS", 0.0)


async def by_old_vectors(r: AsyncRecollect, text: str) -> Recall:
    """The answer of a client once it knows that the store has changed. A recall does not wait for its own look."""
    while not (answer := await r.space("work").recall(text, limit=5)).degraded:
        pass
    return answer


@pytest.mark.usefixtures("looks_each_time")
async def test_another_open_client_goes_on_with_the_old_vectors(url: str) -> None:
    """Its questions are compared with vectors of its own model as long as they are kept; what it remembers waits for
    somebody with the new model. Its answers are degraded and say what to do, also when the old vectors are gone.
    """
    await filled(url)
    async with AsyncRecollect(url, embedder=OLD) as other, AsyncRecollect(url, embedder=OLD) as r:
        before, _ = await by_meaning(other, "invoices")
        await r.reembed(NEW)
        after, _ = await by_meaning(other, "invoices")
        assert after == before
        stored = await other.space("work").remember("a note by the other about hedgehogs")
        assert stored.memory.embedding == "pending"
        await r.space("work").settle()
        assert (await by_meaning(r, "hedgehogs"))[0][0] == "a note by the other about hedgehogs"
        for status in ("ok", "failed"):
            answer = await by_old_vectors(other, "invoices")
            (lane,) = [lane for lane in answer.lanes if lane.incomplete]
            assert (lane.leg, lane.status) == ("vector", status)
            assert "changed to hashing-32 (32 dimensions)" in lane.reason
            assert "old vectors of hashing-64" in lane.reason
            assert "restart it with the embedder hashing:32 (--embedder" in lane.reason
            assert any("invoices" in hit.memory.text for hit in answer.hits)
            await r.drop_vectors("old")


@pytest.mark.usefixtures("looks_each_time")
async def test_a_client_with_the_old_model_recovers_when_the_store_changes_back(url: str) -> None:
    """It need not be restarted then."""
    await filled(url)
    async with AsyncRecollect(url, embedder=OLD) as other, AsyncRecollect(url, embedder=OLD) as r:
        await r.reembed(NEW)
        assert not (await other.ready()).ok
        await by_old_vectors(other, "invoices")
        await r.reembed(OLD, back=True)
        assert (await other.ready()).ok
        assert not (await by_meaning(other, "invoices"))[1]


async def test_doctor_and_ready_name_the_model_and_how_far_a_change_is(url: str) -> None:
    """And a client that still works with the old model is told what to do."""
    await filled(url)
    async with AsyncRecollect(url, embedder=OLD) as other, AsyncRecollect(url, embedder=OLD) as r:
        with pytest.raises(EmbeddingError, match="down"):
            await r.reembed(Stopping(32))
        vectors = {check.name: check for check in (await other.doctor()).checks}["vectors"]
        assert vectors.detail == "hashing-64, 64 dimensions; the change to hashing-32 has 16 of 40 vectors"
        await r.reembed(NEW)
        store, embedder = (await other.ready()).checks
        assert (store.ok, store.detail) == (True, "sqlite answers, with vectors of hashing-32")
        vectors = {check.name: check for check in (await other.doctor()).checks}["vectors"]
        for told in (embedder, vectors):
            assert not told.ok
            assert "restart it with the embedder hashing:32" in told.detail


async def test_what_others_write_meanwhile_is_caught_up(url: str) -> None:
    """Memories that come, change and go while the new vectors are made."""
    await filled(url)
    async with AsyncRecollect(url, embedder=OLD) as other, AsyncRecollect(url, embedder=OLD) as r:
        work = other.space("work")
        first, second = [memory.id for memory in (await work.list(limit=2)).memories]

        async def write() -> None:
            await work.remember("an early note about hedgehogs")
            await work.update(first, text="this note is about badgers now")
            await work.forget(second)

        changing = asyncio.create_task(r.reembed(NEW, rate=400))
        await write()
        await changing
        assert (await by_meaning(r, "hedgehogs"))[0][0] == "an early note about hedgehogs"
        assert (await by_meaning(r, "badgers"))[0][0] == "this note is about badgers now"
        assert {one.state: one.vectors for one in await r.generations()}["current"] == len(NOTES)


class Picky(HashingEmbedder):
    """Cannot take a text about bees."""

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        if any("bees" in text for text in texts):
            raise EmbeddingError("no bees, please")
        return await super().embed(texts, space=space, role=role)


async def test_a_text_that_the_new_model_cannot_take(url: str) -> None:
    """It does not hold up the others; it is named, and found by its words."""
    await filled(url)
    async with AsyncRecollect(url, embedder=OLD) as r:
        done = await r.reembed(Picky(32))
        assert len(done.failed["work"]) == 8
        assert done.embedded == len(NOTES) - 8
        assert any("bees" in hit.memory.text for hit in (await r.space("work").recall("bees")).hits)


class Stopping(HashingEmbedder):
    """Goes down after some texts."""

    left = 20

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        self.left -= len(texts)
        if self.left < 0:
            raise EmbeddingError("down")
        return await super().embed(texts, space=space, role=role)


async def test_it_goes_on_where_it_was(url: str) -> None:
    """A run that failed left the old vectors in use; the next one embeds only what is missing."""
    await filled(url)
    async with AsyncRecollect(url, embedder=OLD) as r:
        with pytest.raises(EmbeddingError, match="down"):
            await r.reembed(Stopping(32))
        assert not (await by_meaning(r, "owls"))[1]
        done = await r.reembed(NEW)
        assert 0 < done.embedded < len(NOTES)


async def test_back_and_forth(url: str) -> None:
    """The way back embeds only what came since; without old vectors there is none."""
    await filled(url)
    async with AsyncRecollect(url, embedder=OLD) as r:
        await r.reembed(NEW)
        await r.space("work").remember("a note of the new time")
        with pytest.raises(InvalidRequest, match="the old vectors are of hashing-64, not of hashing-16"):
            await r.reembed("hashing:16", back=True)
        done = await r.reembed(OLD, back=True)
        assert done.embedded == 1
        assert (await by_meaning(r, "note of the new time"))[0][0] == "a note of the new time"
        assert [one.model for one in await r.drop_vectors("old")] == ["hashing-32"]
        with pytest.raises(InvalidRequest, match="no vectors of an earlier model"):
            await r.reembed(NEW, back=True)


async def test_old_vectors_are_dropped_after_their_grace(url: str) -> None:
    """Not before."""
    await filled(url)
    async with AsyncRecollect(url, embedder=OLD) as r:
        await r.reembed(NEW)
        assert await drop_old(r._engine, older_than=timedelta(days=1)) == []
        assert [one.model for one in await drop_old(r._engine, older_than=timedelta(0))] == ["hashing-64"]


async def test_an_unfinished_change_can_be_given_up(url: str) -> None:
    """Until then, another one is refused."""
    await filled(url)
    async with AsyncRecollect(url, embedder=OLD) as r:
        with pytest.raises(EmbeddingError):
            await r.reembed(Stopping(32))
        with pytest.raises(InvalidRequest, match="the change to hashing-32 is not complete"):
            await r.reembed("hashing:16")
        await r.drop_vectors("next")
        assert (await r.reembed("hashing:16")).generation.model == "hashing-16"


async def test_an_index_beside_the_store_is_filled_before_the_switch(tmp_path: Path) -> None:
    """Qdrant has the new vectors when the store goes over to them, keeps the old ones for whoever still asks them, and
    lets go of them when they are dropped.
    """
    pytest.importorskip("qdrant_client")
    url, corner = f"sqlite:///{tmp_path / 'memory.db'}", f"qdrant+local:///{tmp_path / 'qdrant'}"
    async with AsyncRecollect(embedder=OLD, settings=Settings(url=url, vectors=corner)) as r:
        for note in NOTES:
            await r.space("work").remember(note)
        await r.sync()
        await r.reembed(NEW)
        found, degraded = await by_meaning(r, "invoices")
        assert not degraded
        assert "invoices" in found[0]
        assert r._engine.vectors is not None
        for generation in (Generation("hashing-32", 32), Generation("hashing-64", 64)):
            held = await r._engine.vectors.of(generation)
            assert await held.count("work") == len(NOTES)
        await r.drop_vectors("old")
        await r.space("work").remember("a last note about hedgehogs")
        await r.sync()
        assert (await by_meaning(r, "hedgehogs"))[0][0] == "a last note about hedgehogs"
