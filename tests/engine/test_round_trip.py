"""export, import, export: the same bytes, from either store to either store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import AsyncRecollect, AsyncSpace
from recollect.engine.remember import EMBED_BATCH
from recollect.engine.transfer import REASON_CHARACTERS

PAST = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request, tmp_path / "source.db")


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request, tmp_path / "target.db")


def url_of(request: pytest.FixtureRequest, file: Path) -> str:
    """A store that is not there yet, in a file or in a database of this test's own."""
    if request.param == "sqlite":
        return f"sqlite:///{file}"
    return f"postgresql://?{urlencode(conninfo_to_dict(request.getfixturevalue('pg_database')))}"


async def lines_of(space: AsyncSpace) -> list[str]:
    return [json.dumps(line, ensure_ascii=False) async for line in space.export()]


async def fill(work: AsyncSpace) -> None:
    """One of everything: links of both kinds, threads, hits, and what was corrected, changed, expired and forgotten."""
    for n in range(30):
        id = f"{n * 7 % 30:02}"  # rows do not come in the order of ids
        await work.remember(f"note {n} on the oven, the {n % 4} cats and invoice {n * 7}", id=id, tags=[f"t{n % 3}"])
    await work.supersede("03", "the oven is new", id="new", metadata={"deep": [1, None, {"ü": 2.5}]})
    await work.update("04", text="the oven was cleaned", quality=0.3)
    await work.remember("the oven is broken", id="past", expires_at=PAST)
    await work.remember("the oven is rented", id="later", expires_at=PAST.replace(year=2099), occurred_at=PAST)
    for n in range(6):
        await work.remember(f"turn {n} about cats", thread="talk", namespace="chat", source="mail", title=f"Turn {n}")
    await work.link("05", "01", "belongs to", 0.25)
    await work.link("05", "02", "similar", 0.125)
    await work.link("01", "05")
    await work.forget("06")
    await work.settle()
    await work.recall("which oven?")


async def test_a_round_trip_gives_the_same_bytes(source: str, target: str) -> None:
    """Into another store under the same name, with the links that were made by themselves: no more of them than there
    were. Nothing differs but the name of the space, where that has
    another; importing it again where it came from changes nothing either.
    """
    name = "copy" if source == target else "work"  # one Postgres holds both, under two names
    async with AsyncRecollect(source, embedder="hashing") as r:
        await fill(r.space("work"))
        lines = await lines_of(r.space("work"))
        assert sum('"relation": "similar"' in line for line in lines) > 60
        done = await r.space("work").import_lines(lines)
        await r.space("work").settle()
        assert (done.created, done.broken) == (0, ())
        assert await lines_of(r.space("work")) == lines
    async with AsyncRecollect(target, embedder="hashing") as r:
        done = await r.space(name).import_lines(lines)
        assert (done.copies, done.broken, done.dangling) == (0, (), ())
        await r.space(name).settle()
        found = [line.replace(f'"space": "{name}"', '"space": "work"') for line in await lines_of(r.space(name))]
    assert "\n".join(found) == "\n".join(lines)


async def test_lines_without_links_are_linked(work: AsyncSpace) -> None:
    """A plain line says nothing of links: they are made. So they are for a memory that had none yet when it left."""
    lines = [json.dumps({"text": f"note {n} on the oven"}) for n in range(5)]
    await work.import_lines([*lines, json.dumps({"text": "note 5 on the oven", "linked": False})])
    await work.settle()
    assert (await work.stats()).edges == 18
    done = await work.import_lines([json.dumps({"text": "note 6", "linked": "yes"})])
    assert [line.reason for line in done.broken] == ["linked must be True or False, not 'yes'"]


async def test_an_import_reads_no_further_than_it_stores(work: AsyncSpace) -> None:
    """Whether lines come from an iterator or from a stream: never more than a batch is held."""

    class Source:
        """Counts what was read, and looks how far it is ahead of what is stored."""

        def __init__(self) -> None:
            self.read = self.stored = self.ahead = 0

        def line(self, n: int) -> str:
            self.read += 1
            self.ahead = max(self.ahead, self.read - self.stored)
            return json.dumps({"text": f"note {n}", "id": f"{n}", "superseded_by": f"{n}" if n > 999 else "gone"})

        def plain(self) -> Iterator[str]:
            return map(self.line, range(300))

        async def stream(self) -> AsyncIterator[str]:
            for line in map(self.line, range(300, 600)):
                yield line

    for kind in ("plain", "stream"):
        source = Source()

        def follow(done: object, source: Source = source) -> None:
            source.stored = done.read  # type: ignore[attr-defined]

        done = await work.import_lines(getattr(source, kind)(), on_progress=follow)
        assert (done.created, done.dangling_count, source.read) == (300, 300, 300)
        assert source.ahead <= EMBED_BATCH


async def test_long_lines_make_small_batches(work: AsyncSpace) -> None:
    """What an import holds is bounded by the length of its lines, not by their number alone, and a reason why a line
    is broken does not hold the whole line.
    """
    seen: list[int] = []
    lines = [json.dumps({"text": f"note {n} {' ' * 1_000_000}"}) for n in range(12)]
    done = await work.import_lines(lines, on_progress=lambda now: seen.append(now.read))
    assert (done.created, seen) == (12, [5, 10, 12])
    done = await work.import_lines([json.dumps({"text": "note", "y" * 1_000_000: 1})])
    assert len(done.broken[0].reason) <= REASON_CHARACTERS + 1
    assert done.broken[0].reason.startswith("a memory has no field 'yyy")


async def test_what_is_awaited_is_looked_for_at_the_end(work: AsyncSpace) -> None:
    """Of many lines that wait for a successor, those are dangling whose successor is in no line and not here."""
    lines = [
        json.dumps({"text": f"old {n}", "id": f"old {n}", "superseded_by": f"new {n}" if n % 10 else "gone"})
        for n in range(1_500)
    ]
    lines += [json.dumps({"text": f"new {n}", "id": f"new {n}"}) for n in range(1_500) if n % 10]
    done = await work.import_lines(lines)
    assert (done.created, done.dangling_count) == (2_850, 150)
    assert [line.number for line in done.dangling[:3]] == [1, 11, 21]
