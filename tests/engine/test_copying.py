"""copy: everything from store to store, and the proof of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect import AsyncRecollect, BackendUnavailable, ConfigError, EmbeddingMismatch, InvalidRequest, Recollect
from recollect.conformance.records import COMPLETE
from recollect.conformance.samples import MODEL, NOW, record, unit
from recollect.conformance.usage import FIRST, HOUR, ONE
from recollect.engine import transfer
from recollect.engine.copying import Copied, CopyProgress, IdSample, copy
from recollect.engine.usage import EVER
from recollect.ports import Store
from recollect.settings import PostgresSettings
from recollect.stores.sqlite.store import SqliteStore
from recollect.types import Bucket, Edge, Generation, Memory, Record, Remembered, Scored, Token, Usage, Use

MakeStore = Callable[[], Store]
WAYS = ["sqlite to sqlite", "sqlite to postgres", "postgres to sqlite"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[MakeStore, MakeStore]:
    """A source and a target that are not there yet; each call opens the same one anew."""

    def maker(kind: str, name: str) -> MakeStore:
        if kind == "sqlite":
            return lambda: SqliteStore(tmp_path / f"{name}.db")
        from recollect.stores.postgres.store import PostgresStore

        dsn: str = request.getfixturevalue("pg_database")
        return lambda: PostgresStore(dsn)

    source, target = request.param.split(" to ")
    return maker(source, "source"), maker(target, "target")


@pytest.fixture
def files(tmp_path: Path) -> tuple[MakeStore, MakeStore]:
    """The same, of two SQLite files."""
    return lambda: SqliteStore(tmp_path / "source.db"), lambda: SqliteStore(tmp_path / "target.db")


@pytest.fixture
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that links lead from page to page."""
    monkeypatch.setattr(transfer, "PAGE", 3)


async def in_store(store: Store, work: Callable[[Store], Any]) -> Any:
    """Open a store, do something with it, close it."""
    await store.open()
    try:
        return await work(store)
    finally:
        await store.close()


async def fill(store: Store) -> None:
    """Two spaces with everything that a store can hold."""
    await store.set_generation(MODEL)
    gone, later = datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(hours=1)
    await store.add("here", [Record(COMPLETE, unit(1, 2, 3)), record("another", vector=unit(1), linked=True)])
    await store.add("here", [record("lapsed", "true again", expires_at=gone), record("lapses", expires_at=later)])
    await store.add("here", [record("again", "true again"), record("waits"), record("fails", embedding="failed")])
    await store.add("here", [record("turn 1", "yes", thread="chat"), record("turn 2", "yes", thread="chat", place=0)])
    await store.add("here", [record(id, thread="one place", place=7, vector=unit(0.3, 1)) for id in "ab"])
    await store.link("here", [Edge("a", "another", "because", 0.1), Edge("waits", "a"), Edge("a", "waits", "so")])
    await store.link_nearest("here", {"b": [Scored("a", 0.7), Scored("again", 1 / 3)]})
    await store.mark_hits("here", {"a": 3}, now=NOW)
    await store.mark_used("here", ["a", "b"], now=NOW)
    await store.supersede("here", "waits", "fails", now=NOW)
    await store.add("日本", [record(f"{n}", space="日本", tags=(f"t{n}", "t")) for n in range(5)])
    await store.ledger.grant("here", "notes", "日本", "write")
    await store.ledger.accept("here", "notes", "日本")
    await store.ledger.grant("here", "notes", "not here yet", "read")
    await store.ledger.count_usage("here", [Bucket(FIRST, ONE), Bucket(FIRST + HOUR, Usage(recalls=1))])
    await store.ledger.note_uses("here", [Use("what then?", "a", NOW), Use("why?", "b", NOW + HOUR)])


async def contents(store: Store) -> dict[str, Any]:
    """All that the port shows of a store, read call by call."""
    shown: dict[str, Any] = {"generation": await store.generation()}
    for space in await store.spaces():
        memories = [memory async for page in transfer.pages(store, space) for memory in page]
        ids = [memory.id for memory in memories]
        vectors = {id: vector.tolist() for id, vector in (await store.vectors(space, ids)).items()}
        links = sorted([edge async for edge in store.edges(space)], key=str)
        around = await store.beside(space, ids, 5)
        beside = (
            await store.ledger.granted_by(space),
            await store.ledger.granted_to(space),
            await store.ledger.offered_to(space),
            await store.ledger.usage(space, EVER),
            await store.ledger.uses(space),
        )
        shown[space] = (
            memories,
            await store.marks(space, ids),
            vectors,
            links,
            around,
            await store.stats(space),
            beside,
        )
    return shown


@pytest.mark.usefixtures("_small_pages")
async def test_everything_is_there_afterwards(way: tuple[MakeStore, MakeStore]) -> None:
    """Every field, mark, vector, link, neighbour, grant and count of every space; nothing of the source has changed."""
    source, target = way
    await in_store(source(), fill)
    before = await in_store(source(), contents)
    copied = await copy(source(), target())
    assert copied.verified
    assert await in_store(target(), contents) == before
    assert await in_store(source(), contents) == before
    here, there = copied.spaces
    held = here.source
    assert (here.space, here.new, held.memories, held.vectors, held.links) == ("here", 11, 11, 4, 5)
    assert (held.grants, held.recalls) == (2, 3)
    assert (there.space, there.new, there.target.vectors) == ("日本", 5, 0)
    assert here.rounded == 0


async def test_what_was_a_copy_before_is_one_afterwards(files: tuple[MakeStore, MakeStore]) -> None:
    """A turn that went to the end of its thread is not stored again, in either store, when it is told once more."""
    source, target = files
    await in_store(source(), lambda store: store.add("here", [record(id, f"turn {id}", thread="t") for id in "abc"]))
    await copy(source(), target())
    told = [record("other", "turn b", thread="t")]
    for store in (source(), target()):
        (answer,) = await in_store(store, lambda opened: opened.add("here", told))
        assert (answer.memory.id, answer.created) == ("b", False)


async def test_running_it_again_copies_nothing(way: tuple[MakeStore, MakeStore]) -> None:
    """The second run finds everything there, and says so."""
    source, target = way
    await in_store(source(), fill)
    first = await copy(source(), target())
    again = await copy(source(), target())
    assert again.verified
    assert [space.new for space in again.spaces] == [0, 0]
    assert [replace(space, new=0) for space in first.spaces] == list(again.spaces)


class Breaking(SqliteStore):
    """A store that breaks when it is given its third batch."""

    batches = 0

    async def add(self, space: str, records: Sequence[Record]) -> list[Remembered]:
        self.batches += 1
        if self.batches == 3:
            raise BackendUnavailable("the disk is full", backend="sqlite")
        return await super().add(space, records)


@pytest.mark.usefixtures("_small_pages")
async def test_a_copy_that_was_cut_off_is_completed(files: tuple[MakeStore, MakeStore], tmp_path: Path) -> None:
    """What came before the failure is kept and not copied twice; afterwards both hold the same."""
    source, target = files
    await in_store(source(), fill)
    with pytest.raises(BackendUnavailable):
        await copy(source(), Breaking(tmp_path / "target.db"))
    copied = await copy(source(), target())
    assert copied.verified
    assert [space.new for space in copied.spaces] == [11 - 6, 5]
    assert await in_store(target(), contents) == await in_store(source(), contents)


async def test_some_spaces(files: tuple[MakeStore, MakeStore]) -> None:
    """Only the named ones; one that is not there is named with those that are, and nothing is made."""
    source, target = files
    await in_store(source(), fill)
    with pytest.raises(InvalidRequest, match=r"'nowhere'.*here, 日本"):
        await copy(source(), target(), ["here", "nowhere"])
    assert (await target().migrate(dry_run=True)).steps
    copied = await copy(source(), target(), ["日本"])
    assert [space.space for space in copied.spaces] == ["日本"]
    assert await in_store(target(), lambda store: store.spaces()) == ["日本"]


async def differing(source: MakeStore, target: MakeStore, change: Callable[[Store], Any]) -> Copied:
    """A copy whose target was changed before it is run again."""
    await in_store(source(), fill)
    await copy(source(), target())
    await in_store(target(), change)
    return await copy(source(), target())


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.update("here", "a", {"quality": 0.1}, now=NOW),
        lambda store: store.unlink("here", "a", "another"),
        lambda store: store.link("here", [Edge("a", "again")]),
        lambda store: store.link_nearest("here", {"a": []}),
        lambda store: store.mark_hits("here", {"a": 1}, now=NOW),
        lambda store: store.mark_used("here", ["a"], now=NOW),
        lambda store: store.put_vectors("here", [(Memory("a", "here", "memory a"), unit(1, 1))]),
    ],
    ids=["field", "link gone", "link made", "mark", "hits", "uses", "vector"],
)
async def test_what_differs_is_named_and_left_alone(files: tuple[MakeStore, MakeStore], change: Any) -> None:
    """A field, a link, a mark, a count or a vector of one memory: that one is named, and stays as it is."""
    copied = await differing(*files, change)
    assert not copied.verified
    (here, there) = copied.spaces
    assert (here.new, here.missing, here.extra, here.different) == (0, IdSample(), IdSample(), IdSample(1, ("a",)))
    assert there.verified
    assert await in_store(files[1](), contents) != await in_store(files[0](), contents)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda store: store.ledger.grant("here", "notes", "日本", "read"), "grants"),
        (lambda store: store.ledger.grant("here", "letters", "日本", "read"), "grants"),
        (lambda store: store.ledger.accept("here", "notes", "not here yet"), "grants"),
        (lambda store: store.ledger.count_usage("here", [Bucket(FIRST, Usage(failed=1))]), "usage"),
        (lambda store: store.ledger.note_uses("here", [Use("how?", "a", NOW)]), "uses"),
    ],
    ids=["access", "another grant", "accepted", "count", "use"],
)
async def test_what_differs_beside_the_memories_is_named(
    files: tuple[MakeStore, MakeStore], change: Any, named: str
) -> None:
    """Grants, usage and uses of the target stay as they are, and it is said which of them differ."""
    copied = await differing(*files, change)
    (here, there) = copied.spaces
    assert (here.beside, here.verified, there.beside) == ((named,), False, ())
    assert (here.missing, here.extra, here.different) == (IdSample(), IdSample(), IdSample())


async def test_a_space_that_forgot_everything(files: tuple[MakeStore, MakeStore]) -> None:
    """Its grants are copied; what was counted while it held something is not, for an empty space counts nothing."""
    source, target = files
    await in_store(source(), fill)
    await in_store(source(), lambda store: store.forget("日本", [f"{n}" for n in range(5)]))
    await in_store(source(), lambda store: store.ledger.count_usage("日本", [Bucket(FIRST, ONE)]))
    await in_store(source(), lambda store: store.ledger.grant("日本", "notes", "here", "read"))
    (_, there) = (await copy(source(), target())).spaces
    assert (there.verified, there.target.grants, there.target.recalls) == (True, 1, 0)


async def test_what_belongs_to_servers_stays(files: tuple[MakeStore, MakeStore]) -> None:
    """Neither tokens nor kept replies are copied: who may call one server may not call another one for it."""
    source, target = files
    await in_store(source(), fill)
    await in_store(source(), lambda store: store.ledger.add_token(Token("t", "", (), "admin", NOW), b"digest"))
    await in_store(source(), lambda store: store.ledger.claim("here", "key", "one", now=NOW, expires=NOW + HOUR))
    assert (await copy(source(), target())).verified
    assert await in_store(target(), lambda store: store.ledger.any_token()) is False
    claimed = await in_store(
        target(), lambda store: store.ledger.claim("here", "key", "two", now=NOW, expires=NOW + HOUR)
    )
    assert claimed is None


async def test_what_is_only_in_the_target_is_named(files: tuple[MakeStore, MakeStore]) -> None:
    """How many they are, and the first ids; the target keeps them."""
    own = [record(f"own {n}") for n in range(7)]
    copied = await differing(*files, lambda store: store.add("here", own))
    here = copied.spaces[0]
    assert here.extra == IdSample(7, tuple(f"own {n}" for n in range(5)))
    assert (here.missing, here.different) == (IdSample(), IdSample())
    assert here.target.memories == here.source.memories + 7


async def test_what_the_target_has_under_another_id_is_named(files: tuple[MakeStore, MakeStore]) -> None:
    """An exact copy in the target stands in the way of a memory: it is missing, and the other is extra."""
    source, target = files
    await in_store(source(), lambda store: store.add("here", [record("a", "the same"), record("b")]))
    await in_store(target(), lambda store: store.add("here", [record("z", "the same")]))
    (here,) = (await copy(source(), target())).spaces
    assert (here.new, here.missing, here.extra) == (1, IdSample(1, ("a",)), IdSample(1, ("z",)))


async def test_another_models_vectors_are_refused(files: tuple[MakeStore, MakeStore]) -> None:
    """The models are named, and nothing is copied."""
    source, target = files
    await in_store(source(), fill)
    await in_store(target(), lambda store: store.set_generation(Generation("another", 8)))
    with pytest.raises(EmbeddingMismatch, match=r"another \(8 dimensions\), not by conformance \(4 dimensions\)"):
        await copy(source(), target())
    assert await in_store(target(), lambda store: store.spaces()) == []


async def test_a_store_is_not_copied_to_itself(files: tuple[MakeStore, MakeStore], tmp_path: Path) -> None:
    """Whatever it is called."""
    source, _ = files
    await in_store(source(), fill)
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "source.db")
    for same in (source(), SqliteStore(link)):
        with pytest.raises(ConfigError, match="to itself"):
            await copy(source(), same)


async def test_vectors_may_be_rounded(pg_database: str, files: tuple[MakeStore, MakeStore]) -> None:
    """A target that keeps vectors in half precision holds the same, and it is said how many were rounded; back again
    they are exactly what it kept.
    """
    from recollect.stores.postgres.store import PostgresStore

    source, back = files
    await in_store(source(), fill)
    (here, there) = (await copy(source(), PostgresStore(pg_database, PostgresSettings(halfvec=True)))).spaces
    assert here.verified
    assert (here.rounded, there.rounded) == (3, 0)
    (here, _) = (await copy(PostgresStore(pg_database), back())).spaces
    assert here.verified
    assert here.rounded == 0


async def test_an_empty_store_is_copied(files: tuple[MakeStore, MakeStore]) -> None:
    """Nothing to do is no failure."""
    source, target = files
    await in_store(source(), lambda store: store.stats("here"))
    assert await copy(source(), target()) == Copied(())


@pytest.mark.usefixtures("_small_pages")
async def test_progress_is_reported_page_by_page(files: tuple[MakeStore, MakeStore]) -> None:
    """Each stage counts the memories of all spaces up to their total."""
    source, target = files
    await in_store(source(), fill)
    seen: list[CopyProgress] = []
    await copy(source(), target(), on_progress=seen.append)
    for stage in ("copying", "comparing"):
        assert [now.done for now in seen if now.stage == stage] == [3, 6, 9, 11, 14, 16]
    assert [now.done for now in seen if now.stage == "indexing"] == [11, 16]
    assert {(now.space, now.total) for now in seen} == {("here", 16), ("日本", 16)}


async def test_through_the_library(tmp_path: Path) -> None:
    """A copied memory is recalled as before, with no new embedding; a store that is not there is not made."""
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("one", "two", "three")]
    async with AsyncRecollect(urls[0], embedder="hashing") as r:
        for text in ("Invoice 12345 was paid on 3 May", "The cat is called Minka"):
            await r.space("work").remember(text)
        before = await r.space("work").recall("invoice 12345")
    assert (await AsyncRecollect.copy(urls[0], urls[1], spaces=["work"])).verified
    async with AsyncRecollect(urls[1], embedder="hashing") as r:
        after = await r.space("work").recall("invoice 12345")
    assert [(hit.memory.id, hit.score) for hit in after] == [(hit.memory.id, hit.score) for hit in before]
    with pytest.raises(ConfigError, match="no store at"):
        await AsyncRecollect.copy(urls[2], urls[0])
    assert not (tmp_path / "three.db").exists()


def test_without_await(tmp_path: Path) -> None:
    """`Recollect.copy` is the same call."""
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("one", "two")]
    with Recollect(urls[0], embedder="hashing") as r:
        r.space("work").remember("The cat is called Minka")
    assert Recollect.copy(*urls).verified
