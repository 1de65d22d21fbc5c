"""Memories in Postgres: many writers at once, many rows at once, and what is kept apart from the rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from recollect.conformance.samples import HERE, MODEL, NOW, ids, memory, record, unit
from recollect.errors import InvalidRequest, NotFound, RecollectError
from recollect.settings import PostgresSettings
from recollect.stores.postgres.bulk import MANY
from recollect.stores.postgres.store import PostgresStore
from recollect.types import Edge, Filter, Memory, Record

WRITERS = 6
EVERYTHING = Filter(include_superseded=True, include_expired=True)


def rich(number: int) -> Record:
    """A record with something in every field."""
    return Record(
        memory(
            f"m{number:03}",
            f"Straße № {number}\tin 東京 \\N \\.",
            namespace="n",
            kind="message",
            title=f"“{number}”",
            tags=("b", "a", 'quoted "', "{x,y}", "", "NULL"),
            source="s/\\",
            thread=f"t{number % 3}",
            metadata={"n": number, "deep": {"list": [1, 2.5, None, True, "ü"]}},
            created_at=datetime(2024, 5, 3, 9, 0),
            occurred_at=NOW - timedelta(days=400_000),
            expires_at=datetime(9999, 12, 31, 23, 59, 59, 999999),
            superseded_by="other" if number % 5 == 0 else None,
            quality=0.1 + number,
            hits=number,
            last_hit_at=datetime(2024, 5, 3, 10, 0) if number else None,
            used=2 * number,
            last_used_at=datetime(2024, 5, 3, 11, 0) if number else None,
        ),
        unit(1, number),
        linked=number % 2 == 0,
    )


async def test_many_rows_are_stored_as_one_is(pg_store: PostgresStore) -> None:
    """A batch that goes by COPY reads back as one that goes by INSERT: every field, place, vector and mark."""
    await pg_store.set_generation(MODEL)
    batch = [rich(number) for number in range(2 * MANY)]
    answers = [answer.memory for answer in await pg_store.add(HERE, batch)]
    for given in batch:
        await pg_store.add("there", [replace(given, memory=replace(given.memory, space="there"))])
    wanted = [given.memory.id for given in batch]
    stored = await pg_store.get(HERE, wanted)
    assert [*stored.values()] == answers
    assert [replace(one, space=HERE) for one in (await pg_store.get("there", wanted)).values()] == answers
    assert await pg_store.marks(HERE, wanted) == await pg_store.marks("there", wanted)
    one, other = await pg_store.vectors(HERE, wanted), await pg_store.vectors("there", wanted)
    assert {id: vector.tolist() for id, vector in one.items()} == {id: vector.tolist() for id, vector in other.items()}
    for where in (replace(EVERYTHING, tags=("{x,y}", "")), replace(EVERYTHING, thread="t1")):
        assert await ids(pg_store, where) == [m.id for m in (await pg_store.list("there", where, limit=99)).memories]


async def test_postgres_gets_to_know_a_new_store(pg_store: PostgresStore, pg_dsn: str) -> None:
    """The first batch that is worth it gives Postgres statistics, by which it plans all that follows."""
    known = "SELECT count(*) FROM pg_stats WHERE schemaname = %s AND tablename = 'memories'"
    with psycopg.connect(pg_dsn, autocommit=True) as db:
        await pg_store.add(HERE, [record("a")])
        assert db.execute(known, [pg_store.settings.schema]).fetchone() == (0,)
        await pg_store.add(HERE, [record(f"m{number}") for number in range(MANY)])
        assert db.execute(known, [pg_store.settings.schema]).fetchone() != (0,)


async def test_writers_of_the_same_store_it_once(pg_store: PostgresStore) -> None:
    """Of several who remember the same at the same time, in whichever order, one stores each memory, and all are
    answered with it.
    """
    batches = [
        [record(f"{writer}-{number:02}", f"fact {number}") for number in range(25)][:: 1 if writer % 2 else -1]
        for writer in range(WRITERS)
    ]
    answers = await asyncio.gather(*(pg_store.add(HERE, batch) for batch in batches))
    flat = [answer for batch in answers for answer in batch]
    assert Counter(answer.created for answer in flat) == {True: 25, False: 25 * (WRITERS - 1)}
    assert len({answer.memory.id for answer in flat}) == len({answer.memory.text for answer in flat}) == 25
    assert (await pg_store.stats(HERE)).memories == 25


async def test_what_others_forget_is_stored_again(pg_store: PostgresStore) -> None:
    """Whoever remembers what somebody else forgets at the same time is answered with a memory that says it."""

    async def remember(writer: int) -> list[str]:
        answers = [await pg_store.add(HERE, [record(f"{writer}-{n}", "the same")]) for n in range(20)]
        return [answer.memory.text for (answer,) in answers]

    async def forget() -> None:
        for _ in range(20):
            await pg_store.forget(HERE, [one.id for one in (await pg_store.list(HERE, Filter(), limit=9)).memories])

    texts = await asyncio.gather(remember(1), remember(2), remember(3), forget(), forget())
    assert {text for said in texts if said for text in said} == {"the same"}
    assert (await pg_store.stats(HERE)).memories <= 1


async def test_what_expired_is_replaced_once(pg_store: PostgresStore) -> None:
    """Of several who remember again what has expired, one stores it."""
    await pg_store.add(HERE, [record("old", "the same", expires_at=datetime.now(UTC) + timedelta(seconds=0.05))])
    while await pg_store.visible(HERE, ["old"], Filter()):  # noqa: ASYNC110 (expiring sends no event)
        await asyncio.sleep(0.01)
    answers = await asyncio.gather(*(pg_store.add(HERE, [record(f"m{n}", "the same")]) for n in range(WRITERS)))
    assert [answer.created for (answer,) in answers].count(True) == 1
    assert len({answer.memory.id for (answer,) in answers}) == 1


async def test_a_thread_that_several_write_into(pg_store: PostgresStore) -> None:
    """Each memory gets a place of its own, and each writer's own stay in order."""

    async def write(writer: int) -> None:
        for number in range(6):
            await pg_store.add(HERE, [record(f"{writer}-{number}", f"turn {writer} {number}", thread="t")])

    await asyncio.gather(*(write(writer) for writer in range(WRITERS)))
    stored = (await pg_store.list(HERE, Filter(thread="t"), limit=99)).memories
    places = {one.id: one.place for one in stored}
    assert sorted(places.values()) == list(range(6 * WRITERS))  # type: ignore[type-var]
    for writer in range(WRITERS):
        own = [places[f"{writer}-{number}"] for number in range(6)]
        assert own == sorted(own)  # type: ignore[type-var]


async def test_threads_that_memories_move_between(pg_store: PostgresStore) -> None:
    """Memories that several move to and fro between threads, and forget, end where the last one put them, each thread
    with places of its own.
    """
    await pg_store.add(HERE, [record(f"m{number}", thread="t") for number in range(12)])

    async def move(names: tuple[str | None, ...]) -> None:
        for number in range(12):
            try:
                await pg_store.update(HERE, f"m{number}", {"thread": names[number % len(names)]}, now=NOW)
            except NotFound:
                continue

    async def forget() -> None:
        for number in (3, 7, 11):
            await pg_store.forget(HERE, [f"m{number}"])

    await asyncio.gather(move(("u", "t")), move(("t", None, "u")), move((None, "u")), forget())
    stored = (await pg_store.list(HERE, Filter(), limit=99)).memories
    assert [one.id for one in stored] == sorted(f"m{number}" for number in range(12) if number not in (3, 7, 11))
    taken = [(one.thread, one.place) for one in stored if one.thread]
    assert len(set(taken)) == len(taken)
    assert all(one.place is None for one in stored if one.thread is None)


async def test_vectors_for_what_others_forget(pg_store: PostgresStore) -> None:
    """Vectors for memories that are being forgotten or changed are dropped; the others are stored."""
    await pg_store.set_generation(MODEL)
    memories = [memory(f"m{number:02}") for number in range(30)]
    await pg_store.add(HERE, [Record(one) for one in memories])

    async def embed() -> None:
        for start in range(0, 30, 5):
            await pg_store.put_vectors(HERE, [(one, unit(1)) for one in memories[start : start + 5]])

    async def forget() -> None:
        for one in reversed(memories[::3]):
            await pg_store.forget(HERE, [one.id])

    async def change() -> None:
        for one in reversed(memories[1::3]):
            await pg_store.update(HERE, one.id, {"text": f"new {one.id}"}, now=NOW)

    await asyncio.gather(embed(), forget(), change())
    assert len(await pg_store.vectors(HERE, [one.id for one in memories[2::3]])) == 10
    waiting = {one.id for one in await pg_store.pending(HERE, limit=99)}
    assert waiting == {one.id for one in memories[1::3]}
    assert await pg_store.vectors(HERE, [*waiting]) == {}


async def test_hits_counted_by_several(pg_store: PostgresStore) -> None:
    """No count is lost, whoever counts, in whichever order, while the memories are changed and forgotten."""
    names = [f"m{number}" for number in range(10)]
    await pg_store.add(HERE, [record(name) for name in names])

    async def count(order: list[str]) -> None:
        for _ in range(5):
            await pg_store.mark_hits(HERE, dict.fromkeys(order, 2), now=NOW)

    async def disturb() -> None:
        for name in names[:5]:
            await pg_store.update(HERE, name, {"text": f"new {name}"}, now=NOW)
        await pg_store.forget(HERE, names[8:])

    await asyncio.gather(count(names), count(names[::-1]), disturb(), count(names[3:] + names[:3]))
    assert {one.hits for one in (await pg_store.get(HERE, names)).values()} == {30}
    assert len(await pg_store.get(HERE, names)) == 8


async def test_a_circle_of_corrections_cannot_be_closed(pg_store: PostgresStore) -> None:
    """Of corrections that would close a circle together, made at once, one is refused."""
    names = [f"m{number}" for number in range(WRITERS)]
    await pg_store.add(HERE, [record(name) for name in names])
    answers = await asyncio.gather(
        *(pg_store.supersede(HERE, old, new, now=NOW) for old, new in zip(names, [*names[1:], names[0]], strict=True)),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers].count(InvalidRequest) == 1
    assert [type(answer) for answer in answers].count(Memory) == WRITERS - 1


async def test_updates_make_no_copies(pg_store: PostgresStore) -> None:
    """Of several who give different memories the same text at once, one does, and the others are told."""
    names = [f"m{number}" for number in range(WRITERS)]
    await pg_store.add(HERE, [record(name) for name in names])
    answers = await asyncio.gather(
        *(pg_store.update(HERE, name, {"text": "the same"}, now=NOW) for name in names), return_exceptions=True
    )
    assert [type(answer) for answer in answers].count(InvalidRequest) == WRITERS - 1
    assert [one.text for one in (await pg_store.get(HERE, names)).values()].count("the same") == 1


async def test_a_space_begins_with_its_first_memory(pg_store: PostgresStore) -> None:
    """A first batch that is refused begins no space; several at once begin one together."""
    with pytest.raises(InvalidRequest):
        await pg_store.add("new", [record("a", edges=[Edge("a", "a")], space="new")])
    assert await pg_store.spaces() == []
    await asyncio.gather(*(pg_store.add("new", [record(f"m{n}", space="new")]) for n in range(WRITERS)))
    assert await pg_store.spaces() == ["new"]
    assert (await pg_store.stats("new")).memories == WRITERS


async def test_another_client_s_space_is_found(pg_store: PostgresStore, pg_dsn: str) -> None:
    """A space that was empty when it was first looked at is seen once another process has begun it."""
    assert (await pg_store.stats("new")).memories == 0
    other = PostgresStore(pg_dsn, pg_store.settings)
    await other.open()
    try:
        await other.add("new", [record("a", space="new")])
        assert list(await pg_store.get("new", ["a"])) == ["a"]
    finally:
        await other.close()


async def test_one_connection_is_enough(pg_store: PostgresStore, pg_dsn: str) -> None:
    """Every call works on a pool of one connection, also when many are made at once."""
    alone = PostgresStore(pg_dsn, replace(pg_store.settings, pool_size=1))
    await alone.open()
    try:
        await asyncio.gather(*(alone.add(HERE, [record(f"m{number}", thread="t")]) for number in range(20)))
        found = await asyncio.gather(*(alone.get(HERE, [f"m{number}"]) for number in range(20)))
        assert sum(map(len, found)) == 20
    finally:
        await alone.close()


async def test_what_was_linked_needs_it_again_with_a_new_text(pg_store: PostgresStore) -> None:
    """What is to be linked to its nearest is kept apart from the memories, and goes with them."""
    await pg_store.set_generation(MODEL)
    await pg_store.add(HERE, [record(id, vector=unit(1), linked=True) for id in "ab"])
    assert {id: mark.linked for id, mark in (await pg_store.marks(HERE, ["a", "b"])).items()} == {"a": True, "b": True}
    await pg_store.update(HERE, "a", {"text": "new"}, vector=unit(1), now=NOW)
    assert await pg_store.unlinked(HERE, limit=9) == ["a"]
    await pg_store.forget(HERE, ["a"])
    assert await pg_store.unlinked(HERE, limit=9) == []


async def test_a_store_in_a_folder(tmp_path: Path) -> None:
    """A private server starts with the store, stops with it, and has everything when it is opened again."""
    folder = tmp_path / "memory"
    missing = PostgresStore.embedded(folder, create=False)
    with pytest.raises(RecollectError, match="no store"):
        await missing.open()
    for created in (True, False):
        store = PostgresStore.embedded(folder, PostgresSettings(pool_size=2))
        assert str(folder) in store.location
        for _ in range(2):
            await store.open()
        try:
            assert (await store.add(HERE, [record("a")]))[0].created is created
        finally:
            await store.close()


async def test_row_security_is_asked_for_once(pg_database: str) -> None:
    """`migrate` makes the store, with row security and further configurations where that is asked for, and has nothing
    to do the second time; a dry run only says so.
    """
    store = PostgresStore(pg_database)
    planned = await store.migrate(dry_run=True, row_security=True, words=["german", "simple"])
    assert await store.migrate(dry_run=False, row_security=True, words=["german", "simple"]) == planned
    assert "german" in planned.steps[-2]
    assert "simple" in planned.steps[-1]
    assert (await store.migrate(dry_run=True, row_security=True, words=["german"])).steps == ()
    with pytest.raises(InvalidRequest, match="klingon"):
        await store.migrate(dry_run=False, words=["klingon"])
