"""Making the graphs of FalkorDB anew while others go on reading and writing them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from recollect.errors import BackendError, BackendUnavailable
from recollect.ports import Change
from recollect.types import Edge
from tests.indexes.falkordb_samples import ALL, FalkorIndex, around, everything, gone, held, there


@pytest.fixture
async def index(falkordb_url: str) -> AsyncIterator[FalkorIndex]:
    opened = FalkorIndex(falkordb_url, visible=everything)
    yield opened
    await opened.close()


async def graphs(index: FalkorIndex) -> list[tuple[int, str]]:
    """Generation and space of what is on the server."""
    return sorted([found async for found in index._graphs()])


def chain(*ids: str) -> list[Change]:
    """Memories of which each is linked to the next."""
    return [there(id, Edge(id, follower)) for id, follower in pairwise(ids)]


async def test_a_shadow_is_apart_until_it_is_published(index: FalkorIndex, falkordb_url: str) -> None:
    """What is made anew is not seen before, and by every process afterwards; spaces that it lacks are gone, and so is
    what was there before.
    """
    elsewhere = FalkorIndex(falkordb_url, visible=everything)
    await index.apply("here", [there("a", Edge("a", "old"))])
    await index.apply("vanishing", [there("v")])
    shadow = await index.shadow()
    assert await shadow.spaces() == []
    await shadow.apply("here", [there("a", Edge("a", "new")), there("b")])
    await shadow.apply("fresh", [there("f")])
    assert (await held(index), await index.spaces()) == (["a"], ["here", "vanishing"])
    await index.publish(shadow)
    await shadow.close()
    for one in (index, elsewhere):
        assert (await around(one, "a"), await held(one)) == (["new"], ["a", "b"])
        assert await one.spaces() == ["fresh", "here"]
    assert await graphs(index) == [(1, "fresh"), (1, "here")]
    await index.apply("here", [gone("b")])
    assert await held(elsewhere) == ["a"]
    await elsewhere.close()


async def test_walks_go_on_while_it_is_made_anew(index: FalkorIndex) -> None:
    """Whoever walks meanwhile gets the old answer or the new one, never none and never a mixture."""
    await index.apply("here", chain("a", "b", "c", "d"))
    answers: set[tuple[str, ...]] = set()
    done = asyncio.Event()

    async def walking() -> None:
        while not done.is_set():
            answers.add(tuple(await around(index, "a", depth=3)))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(4):
            tasks.create_task(walking())
        for number in range(5):
            shadow = await index.shadow()
            await shadow.apply("here", chain("a", f"b{number}", f"c{number}", f"d{number}"))
            await index.publish(shadow)
            assert await around(index, "a", depth=3) == [f"b{number}", f"c{number}", f"d{number}"]
        done.set()
    assert answers <= {("b", "c", "d"), *((f"b{n}", f"c{n}", f"d{n}") for n in range(5))}
    assert await graphs(index) == [(5, "here")]


async def test_a_walk_starts_anew_when_its_graph_is_taken_away(
    index: FalkorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two steps of a walk a rebuild is published: the walk answers from what was published."""
    await index.apply("here", chain("a", "b", "c"))
    shadow = await index.shadow()
    await shadow.apply("here", chain("a", "x", "y"))
    read = index._server.read
    steps: list[str] = []

    async def interrupted(graph: str, query: str, **values: Any) -> Any:
        steps.append(graph)
        if len(steps) == 2:
            await index.publish(shadow)
        return await read(graph, query, **values)

    monkeypatch.setattr(index._server, "read", interrupted)
    assert await around(index, "a", depth=2) == ["x", "y"]


async def test_a_change_is_not_lost_to_a_rebuild(index: FalkorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that began before a rebuild was published and ended after it is in what was published."""
    await index.apply("here", [there("a")])
    shadow = await index.shadow()
    await shadow.apply("here", [there("a")])
    write = index._server.write
    waiting = [shadow]

    async def interrupted(graph: str, query: str, **values: Any) -> Any:
        if waiting:
            await index.publish(waiting.pop())
        return await write(graph, query, **values)

    monkeypatch.setattr(index._server, "write", interrupted)
    await index.apply("here", [there("b", Edge("b", "a"))])
    assert (await held(index), await around(index, "a")) == (["a", "b"], ["b"])
    assert await graphs(index) == [(1, "here")]


async def test_reading_ids_says_that_it_was_interrupted(index: FalkorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that are read while a rebuild is published are not passed off as all there are."""
    monkeypatch.setattr("recollect.indexes.falkordb.index.NODES_PER_PAGE", 2)
    await index.apply("here", [there(name) for name in "abcd"])
    shadow = await index.shadow()
    ids = index.ids("here")
    assert await anext(ids) in "abcd"
    await index.publish(shadow)
    with pytest.raises(BackendUnavailable, match="rebuilt meanwhile: try again"):
        [id async for id in ids]


async def test_the_rebuild_that_began_last_stays(index: FalkorIndex) -> None:
    """Two rebuilds at once: the later one is published and takes the earlier one's graphs along, which then is told."""
    earlier = await index.shadow()
    later = await index.shadow()
    await earlier.apply("here", [there("early")])
    await later.apply("here", [there("late")])
    await index.publish(later)
    await index.publish(later)
    with pytest.raises(BackendError, match="answers from a rebuild that began later"):
        await index.publish(earlier)
    assert await held(index) == ["late"]
    assert await graphs(index) == [(2, "here")]


async def test_a_rebuild_that_the_server_lost_is_not_published(index: FalkorIndex) -> None:
    """A server that was emptied meanwhile has only a part of what was made: nobody is to answer from that."""
    shadow = await index.shadow()
    await index._server.command("DEL", index._address.begun)
    with pytest.raises(BackendError, match="rebuild it again"):
        await index.publish(shadow)


async def test_only_a_shadow_can_be_published(index: FalkorIndex) -> None:
    """An index that answers already is no shadow."""
    with pytest.raises(TypeError, match="shadow"):
        await index.publish(index)
    assert await index.walk("here", ["a"], ALL, depth=1, limit=1) == []
