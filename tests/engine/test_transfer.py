"""import and export: every field, streamed, again and again."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from recollect import AsyncRecollect, AsyncSpace
from recollect.engine.transfer import BROKEN_NAMED

PAST = datetime(2020, 1, 1, tzinfo=UTC)


async def lines_of(space: AsyncSpace) -> list[str]:
    return [json.dumps(line, ensure_ascii=False) async for line in space.export()]


async def test_a_space_round_trips(client: AsyncRecollect, work: AsyncSpace) -> None:
    """Export, import elsewhere, export again: the same lines but for the name of the space."""
    old = await work.remember(
        "Die Rechnung 12345 ist bezahlt", title="Rechnung", tags=["büro"], thread="t", metadata={"n": [1, None]}
    )
    new = await work.supersede(old.memory.id, "Die Rechnung 12345 ist storniert", expires_at="2099-01-01")
    await work.update(new.id, quality=0.5)
    await work.remember("日本語のメモ", kind="message", occurred_at="2026-01-01T00:00:00.000001+09:00")
    await work.link(old.memory.id, new.id, "corrected by", 0.25)
    await work.recall("Rechnung")
    await work.used(new.id)
    await work.stats()
    copy = client.space("copy")
    done = await copy.import_lines(await lines_of(work))
    assert (done.created, done.copies, done.broken) == (3, 0, ())
    before = [{**json.loads(line), "space": None} for line in await lines_of(work)]
    after = [{**json.loads(line), "space": None} for line in await lines_of(copy)]
    assert [line for line in before if "text" in line] == [line for line in after if "text" in line]
    assert all(line in after for line in before)
    assert (await copy.get(new.id)).used == 1


async def test_a_broken_line_is_named_and_the_good_ones_are_kept(work: AsyncSpace) -> None:
    """Line numbers count from 1 and include blank lines."""
    lines = [
        '{"text": "one"}',
        "",
        "{broken",
        '{"text": ""}',
        '{"title": "no text"}',
        '{"text": "two", "colour": 1}',
        '{"from": "x", "to": "y"}',
        '{"text": "three", "tags": ["a"]}',
        "[1]",
        '{"text": "four", "id": "k", "superseded_by": "k"}',
    ]
    done = await work.import_lines(lines)
    assert [line.number for line in done.broken] == [3, 4, 5, 6, 7, 9, 10]
    assert (done.read, done.created) == (10, 2)
    assert {m.text for m in (await work.list()).memories} == {"one", "three"}


async def test_of_many_broken_lines_the_first_are_named_and_all_counted(work: AsyncSpace) -> None:
    """In the order of the file, with the links whose ends are missing."""
    lines = ['{"from": "x", "to": "y"}' if n % 500 == 0 else "{broken" for n in range(BROKEN_NAMED + 200)]
    seen: list[int] = []
    done = await work.import_lines([*lines, '{"text": "good"}'], on_progress=lambda now: seen.append(now.broken_count))
    assert [line.number for line in done.broken] == [*range(1, BROKEN_NAMED + 1)]
    assert (done.broken_count, done.read, done.created) == (len(lines), len(lines) + 1, 1)
    assert seen[0] == 64
    assert seen[-1] == len(lines)


async def test_another_text_under_a_known_id_is_refused_by_its_line(work: AsyncSpace) -> None:
    """Nothing is overwritten, also where the memory was updated since its export; the other lines are kept, and the
    same text is a copy.
    """
    await work.remember("one", id="k")
    await work.remember("same", id="s")
    lines = await lines_of(work)
    await work.update("k", text="two")
    new = ['{"text": "three", "id": "n"}', '{"text": "four", "id": "n"}', '{"text": "five"}']
    done = await work.import_lines([*(line for line in lines if "text" in json.loads(line)), *new])
    assert (done.created, done.copies, done.broken_count) == (2, 1, 2)
    assert [(line.number, line.reason) for line in done.broken] == [
        (1, "memory 'k' already exists with another text: update it, or leave out the id"),
        (4, "memory 'n' already exists with another text: update it, or leave out the id"),
    ]
    assert {m.text for m in (await work.list()).memories} == {"two", "same", "three", "five"}


async def test_a_successor_that_is_missing_is_named_and_its_memory_kept(work: AsyncSpace) -> None:
    """It may be in the space, or in an earlier or later line. What is nowhere is told by line and id, each time; what
    it superseded is kept, and is shown only when asked for.
    """
    await work.remember("the door is green", id="there")
    replaced = {1: "later", 2: "there", 3: "nowhere", 100: "first", 101: "refused", 102: "nowhere"}
    memories = [{"text": f"the door is red {n}", "id": f"{n}", "superseded_by": id} for n, id in replaced.items()]
    lines = [{"text": f"note {n}"} for n in range(200)]
    for memory in memories:
        lines[int(memory["id"])] = memory
    lines[0]["id"], lines[150]["id"], lines[151] = "first", "later", {"text": "", "id": "refused"}
    for created in (199, 0):
        done = await work.import_lines(map(json.dumps, lines))
        assert (done.created, done.broken_count, done.dangling_count) == (created, 1, 3)
        assert [(line.number, line.superseded_by) for line in done.dangling] == [
            (4, "nowhere"),
            (102, "refused"),
            (103, "nowhere"),
        ]
    assert {memory["id"] for memory in memories}.isdisjoint(hit.memory.id for hit in await work.recall("red"))
    kept = {
        memory.id: memory.superseded_by for memory in (await work.list(include_superseded=True, limit=500)).memories
    }
    assert {int(id): successor for id, successor in kept.items() if successor} == replaced


async def test_what_a_forgotten_memory_superseded_goes_and_comes_as_it_is(
    client: AsyncRecollect, work: AsyncSpace
) -> None:
    """A correction that was forgotten is missing in the export as well: that is told, and nothing comes back by it."""
    old = (await work.remember("the door is red")).memory.id
    new = (await work.supersede(old, "the door is blue")).id
    await work.forget(new)
    copy = client.space("copy")
    done = await copy.import_lines(await lines_of(work))
    assert [(line.number, line.superseded_by) for line in done.dangling] == [(1, new)]
    assert (await copy.get(old)).superseded_by == new


async def test_of_many_dangling_lines_the_first_are_named_and_all_counted(work: AsyncSpace) -> None:
    """In the order of the file."""
    lines = [json.dumps({"text": f"note {n}", "superseded_by": f"gone {n % 3}"}) for n in range(BROKEN_NAMED + 1)]
    done = await work.import_lines(lines)
    assert [line.number for line in done.dangling] == [*range(1, BROKEN_NAMED + 1)]
    assert (done.created, done.dangling_count) == (len(lines), len(lines))


async def test_what_does_not_hold_any_more_is_known_again_without_an_id(work: AsyncSpace) -> None:
    """By its line, for a text that was superseded or has expired may be said anew."""
    gone = {"superseded_by": "later"}, {"expires_at": PAST.isoformat()}
    lines = [json.dumps({"text": "the door is red", **why}) for why in gone]
    lines.append(json.dumps({"text": "the door is red"}))
    for created in (3, 0):
        assert (await work.import_lines(lines)).created == created


async def test_what_has_expired_goes_with_what_says_the_same(client: AsyncRecollect, work: AsyncSpace) -> None:
    """Both come back, whichever has the lower id."""
    for id, expires_at in {"1": PAST, "2": None, "3": PAST}.items():
        await work.remember("the door is red", id=id, expires_at=expires_at)
    copy = client.space("copy")
    assert (await copy.import_lines(await lines_of(work))).created == 3
    assert [memory.id for memory in (await copy.list(include_expired=True)).memories] == ["1", "2", "3"]


async def test_running_an_import_again_makes_no_copies(work: AsyncSpace) -> None:
    """With ids or without."""
    lines = [json.dumps({"text": f"note {n}"}) for n in range(100)]
    assert (await work.import_lines(lines[:70])).created == 70
    done = await work.import_lines(lines)
    assert (done.created, done.copies) == (30, 70)
    exported = await lines_of(work)
    again = await work.import_lines(exported)
    assert (again.created, again.copies) == (0, 100)
