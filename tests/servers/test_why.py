"""Why a hit is there: every kind of part has its words, by every door, with the defaults that people use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from recollect import Recall, Recollect, Space
from recollect.embedders import local
from recollect.servers import dashboard
from recollect.servers.cli.render import telling
from recollect.servers.why import label, look, phrase
from recollect.types import ADJUSTMENTS, LEGS, Contribution, Draft, PartKind, Why
from tests.servers import doors
from tests.servers.cli_runner import Cli
from tests.servers.doors import Page

Opening: TypeAlias = Callable[..., AbstractAsyncContextManager[list[Page]]]
KINDS: tuple[PartKind, ...] = (*LEGS, *sorted(ADJUSTMENTS))
INVOICES = (
    "The bakery settled 12345 on 3 May",
    "When was invoice 12346 paid? On 9 May",
    "Invoice 12346 was paid on 9 May",
    "The roaster is cleaned on Mondays",
    "Lena is on holiday in August",
    "The van needs new tyres",
    "Beans from Huehuetenango taste of plums",
    "Invoices are paid on the last Friday of the month",
    "An invoice that is not paid after 30 days gets a reminder",
)
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("when was invoice 12345 paid?", {}),
    ("when was invoice 12346 paid?", {"limit": 2}),
    ("when was invoice 12345 paid?", {"quality_weight": 0.5, "limit": 3}),
    ("when are bills settled?", {"recipe": "sci", "limit": 3}),
    ("when are bills settled?", {"recipe": "careful", "limit": 3}),
)


PACKAGED = cache(local._Model)
"""The packaged model, loaded once for all commands that run in this process."""


@pytest.fixture(autouse=True)
def _loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_Model", PACKAGED)


async def asked(page: Page, query: str, **said: Any) -> str:
    """The whole answer: while a server of its own still loads its model, the question is asked again."""
    while "egraded" in (answer := await page.recall(query, **said)):
        pass
    return answer


def part(kind: PartKind, lane: str | None = None) -> Contribution:
    return Contribution(lane or kind, 2, 0.75, 0.5, 0.25, kind)


def fill(cli: Cli) -> list[Why]:
    """Some notes, one of them of proven use; and why the library's hits are there."""
    with Recollect(cli.url, embedder=cli.embedder) as opened:
        work = opened.space("work")
        work.remember_many(Draft(text, kind="episodic", id=str(number)) for number, text in enumerate(INVOICES))
        work.settle()
        work.update("1", quality=0.9)
        return [hit.why for query, said in QUESTIONS for hit in telling(whole(work, query, said).hits)]


def whole(space: Space, query: str, said: dict[str, Any]) -> Recall:
    while (answer := space.recall(query, **said)).degraded:
        pass  # the model is being loaded
    return answer


def test_every_kind_has_its_words_and_its_colours() -> None:
    """No two kinds look alike, on a terminal or on a page."""
    sheet = (Path(dashboard.__file__).parent / "static" / "dashboard.css").read_text("utf-8")
    assert len({look(kind) for kind in KINDS}) == len(KINDS)
    assert all(f"svg .{kind}" in sheet for kind in KINDS)
    assert (
        phrase(Why(map(part, KINDS))) == "meaning #2, words #2, links #2, exact match, quality 0.75, read together 0.75"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_lane_may_be_called_like_an_adjustment(kind: PartKind) -> None:
    """What a part is told by is its kind."""
    assert label(part("keyword", lane=kind)).startswith("words #2")


@pytest.mark.parametrize(
    "opening", [doors.command_line, doors.mcp_on_stdio, doors.mcp_over_http], ids=lambda opening: str(opening.__name__)
)
async def test_every_door_says_why_in_the_same_words(tmp_path: Path, opening: Opening) -> None:
    """With its defaults and the packaged model, for questions that produce every kind of part."""
    cli = Cli(tmp_path, embedder="local")
    expected = fill(cli)
    assert {one.kind for why in expected for one in why} == {*KINDS}
    async with opening(cli, "work") as (page,):
        pages = [await asked(page, query, **more) for query, more in QUESTIONS]
    said = " ".join(" ".join(pages).split())  # however the lines were broken
    told = [label(one) for why in expected for one in sorted(why, key=lambda one: -one.contribution)]
    at = 0
    for words in told:
        assert words in said[at:]
        at = said.index(words, at) + len(words)


async def test_the_dashboard_says_why_in_the_same_words(tmp_path: Path) -> None:
    """For a question that names an invoice, and for a recipe whose lanes have names of their own."""
    cli = Cli(tmp_path, embedder="local")
    fill(cli)
    async with doors.dashboard(cli, "work") as (page,):
        said = await asked(page, QUESTIONS[0][0])
        assert "exact match" in said
        assert "meaning #1 in episodic-vector" in await asked(page, QUESTIONS[3][0], recipe="sci")
