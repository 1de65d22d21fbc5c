"""One scenario through every door by its real client: the same answers, and the same errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.servers import doors
from tests.servers.cli_runner import Cli
from tests.servers.doors import Door, Refused

Opening: TypeAlias = Callable[..., AbstractAsyncContextManager[list[Door]]]
OF_THE_MOMENT = frozenset({"created_at", "updated_at", "last_hit_at", "last_used_at", "hits", "took", "ms", "note"})
"""What differs from run to run; `hits` of a memory, since they are counted after an answer has gone out;
`note`, which is for people."""
EMPTY = re.compile(r"; space '\w+' is empty.*")
"""What a door adds for people: it depends on what they may see."""
DIGITS = 9


class Story:
    """What a door said, step by step. Ids are told by the order in which they came up."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self._ids: dict[str, str] = {}

    async def step(self, door: Door, verb: str, **said: Any) -> Any:
        try:
            answer = await door.do(verb, **said)
        except Refused as refused:
            answer = {"refused": [EMPTY.sub("", said) for said in refused.args]}
        self.told.append((verb, self._normalised(answer)))
        return answer

    def _normalised(self, value: Any) -> Any:
        if isinstance(value, dict):
            if isinstance(value.get("id"), str):
                self._ids.setdefault(value["id"], f"#{len(self._ids) + 1}")
            lasting = {name: item for name, item in value.items() if name not in OF_THE_MOMENT}
            return {name: self._normalised(item) for name, item in lasting.items()} | self._found(value)
        if isinstance(value, list | tuple):
            return [self._normalised(item) for item in value]
        if isinstance(value, float):
            return round(value, DIGITS)
        if isinstance(value, str):
            for id, name in self._ids.items():
                value = value.replace(id, name)
        return value

    def _found(self, value: dict[str, Any]) -> dict[str, Any]:
        """The hits of a recall, which are called as a memory's count of them is."""
        hits = value.get("hits")
        return {"hits": self._normalised(hits)} if isinstance(hits, list) else {}


async def scenario(here: Door, elsewhere: Door) -> list[Any]:
    """Remember, recall, supersede, recall again, link, neighbours, forget, wrong space, bad input."""
    story = Story()
    office = (await story.step(here, "remember", text="The office is in Prague", tags=["office"]))["memory"]["id"]
    await story.step(here, "remember", text="The office is in Prague", tags=["office"])
    lunch = (await story.step(here, "remember", text="Lunch is at noon", title="Lunch", kind="message"))["memory"]["id"]
    tram = (await story.step(here, "remember", text="Tram 17 stops at the office in Prague"))["memory"]["id"]
    await story.step(here, "recall", query="where is the office?")
    moved = (await story.step(here, "supersede", old=office, text="The office is in Brno"))["id"]
    await story.step(here, "recall", query="where is the office?", limit=2)
    await story.step(here, "recall", query="office Prague", recipe="novamem")
    await story.step(here, "recall", query="how do earthquakes start?", min_confidence=0.9)
    await story.step(here, "recall", query="office Prague", since="7d", until="tomorrow")
    await story.step(here, "recall", query="office Prague", until="yesterday")
    await story.step(here, "recall", query="office Prague", since="last week")
    await story.step(here, "get", id=office)
    await story.step(here, "link", source=lunch, target=moved, relation="near", strength=0.5)
    await story.step(here, "neighbors", id=lunch, depth=2)
    await story.step(here, "used", id=moved)
    await story.step(here, "get", id=moved)
    await story.step(here, "forget", id=tram)
    await story.step(here, "recall", query="tram 17")

    await story.step(elsewhere, "get", id=moved)
    await story.step(elsewhere, "recall", query="where is the office?")
    await story.step(elsewhere, "supersede", old=moved, text="The office is here")
    await story.step(elsewhere, "neighbors", id=moved)

    await story.step(here, "get", id=tram)
    await story.step(here, "remember", text=" ")
    await story.step(here, "remember", text="x", kind="k" * 201)
    await story.step(here, "remember", text="x", occurred_at="soon")
    await story.step(here, "recall", query="")
    await story.step(here, "recall", query="x", limit=0)
    await story.step(here, "recall", query="x", recipe="stew")
    await story.step(here, "supersede", old=office, text="The office is in Ostrava")
    await story.step(here, "link", source=moved, target=lunch, strength=1.5)
    await story.step(here, "link", source=moved, target=moved)
    await story.step(here, "link", source=moved, target="nothing")
    await story.step(here, "neighbors", id=moved, depth=4)
    return story.told


@pytest.fixture
async def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What the library says."""
    async with doors.library(Cli(tmp_path_factory.mktemp("library")), "work", "home") as (here, elsewhere):
        return await scenario(here, elsewhere)


@pytest.mark.parametrize(
    "opening",
    [doors.waiting_library, doors.command_line, doors.http, doors.mcp_on_stdio, doors.mcp_over_http],
    ids=lambda opening: str(opening.__name__),
)
async def test_every_door_tells_the_same_story(tmp_path: Path, expected: list[Any], opening: Opening) -> None:
    """Texts, scores, reasons and links, and each error's type and sentence, are those of the library."""
    async with opening(Cli(tmp_path), "work", "home") as (here, elsewhere):
        told = await scenario(here, elsewhere)
    for ours, theirs in zip(expected, told, strict=True):
        assert theirs == ours


async def test_the_story_is_the_one_that_was_meant(expected: list[Any]) -> None:
    """The library itself answers as the design says: else all doors could agree on nonsense."""
    recalls = [answer for verb, answer in expected if verb == "recall" and "hits" in answer]
    texts = [[hit["memory"]["text"] for hit in answer["hits"]] for answer in recalls]
    assert texts[0][0] == "The office is in Prague"
    assert texts[1][0] == "The office is in Brno"
    assert "The office is in Prague" not in texts[1]
    assert texts[-1] == texts[5] == []
    assert texts[4]
    assert [answer["answerable"] for answer in recalls[:4]] == [True, True, True, False]
    assert all(0 < hit["confidence"] < 1 for answer in recalls for hit in answer["hits"])
    assert (texts[3], recalls[3]["nearest_miss"]["confidence"] < 0.9) == ([], True)
    refusals = [answer["refused"] for _, answer in expected if isinstance(answer, dict) and "refused" in answer]
    assert [kind for kind, _ in refusals].count("NotFound") == 5
    assert [kind for kind, _ in refusals].count("InvalidRequest") == 11
    assert refusals[1] == ["NotFound", "space 'home' holds no memory '#4'"]
