"""The dashboard's pure parts: usage and reasons as shapes, surroundings as a drawing, values as words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.servers.dashboard import charts, graph
from recollect.servers.dashboard.recall import STAGES, stages
from recollect.servers.dashboard.shell import local
from recollect.servers.dashboard.wording import label, link, marked, share
from recollect.servers.slots import slotted
from recollect.types import (
    Bucket,
    Contribution,
    Expectation,
    LegUsage,
    Memory,
    Neighbor,
    Snippet,
    SpaceUsage,
    Usage,
    Why,
)

NOW = datetime(2026, 5, 8, 12, 30, tzinfo=UTC)


def hour(ago: int, recalls: int, degraded: int = 0, failed: int = 0, vector: int = 0, ms: float = 0.0) -> Bucket:
    usage = Usage(recalls, degraded, failed, {"vector": LegUsage(vector, recalls, ms)})
    return Bucket(NOW.replace(minute=0) - timedelta(hours=ago), usage)


def used(*buckets: Bucket, since: datetime | None = None) -> SpaceUsage:
    return SpaceUsage("work", since, sum((bucket.usage for bucket in buckets), Usage()), buckets)


def memory(id: str, text: str = "", title: str = "") -> Memory:
    return Memory(id, "work", text or f"text of {id}", title=title)


def neighbor(id: str, strength: float = 0.5) -> Neighbor:
    return Neighbor(memory(id), strength, 1, "similar")


def test_the_highest_column_fills_the_chart() -> None:
    """The others are as high as they are against it, and an hour without hits has no column."""
    slots = slotted(used(hour(2, 1, vector=8), hour(0, 1, vector=2)), NOW, charts.SLOTS)[1]
    row = next(row for row in charts.leg_rows(Usage(), slots) if row.leg == "vector")
    assert [(column.x, column.height) for column in row.hits.columns] == [(0.08, charts.HEIGHT), (2.08, 10.0)]
    assert row.hits.columns[1].y == charts.HEIGHT - 10.0
    assert row.hits.columns[0].title == "2026-05-08 10:00 UTC: 8 hits"


def test_latency_is_the_average_of_the_searches() -> None:
    """In each column, and for the whole time."""
    buckets = hour(1, 2, ms=8.0), hour(0, 1, ms=2.0)
    row = charts.leg_rows(used(*buckets).total, slotted(used(*buckets), NOW, charts.SLOTS)[1])[0]
    assert [column.title[-6:] for column in row.latency.columns] == ["4.0 ms", "2.0 ms"]
    assert row.did.average == pytest.approx(10 / 3)
    assert charts.leg_rows(Usage(), [])[0].did.average is None


def test_degraded_and_failed_answers_stand_on_the_whole_ones() -> None:
    """One on top of the other, together as high as the recalls."""
    columns = charts.answers(slotted(used(hour(0, 10, degraded=3, failed=2)), NOW, charts.SLOTS)[1]).columns
    assert [(column.tone, column.y, column.height) for column in columns] == [
        ("whole", 20.0, 20.0),
        ("degraded", 8.0, 12.0),
        ("failed", 0.0, 8.0),
    ]


def test_a_space_without_recalls_has_an_empty_chart() -> None:
    """And nothing is divided by nothing."""
    slots = slotted(used(), NOW, charts.SLOTS)[1]
    assert charts.answers(slots).columns == ()
    assert all(row.hits.columns == () for row in charts.leg_rows(Usage(), slots))


def test_a_bar_is_made_of_the_lanes_shares() -> None:
    """Side by side, in the tones of their legs; an exact match and what is no lane have tones of their own."""
    why = [Contribution("words", 1, 9.0, 1.0, 3.0, "keyword"), Contribution("vector", 2, 0.5, 0.5, 1.0, "vector")]
    why.append(Contribution("exact", 1, 9.0, 1.0, 1.0, "exact"))
    parts = charts.bar(why, full=10.0)
    assert [(part.tone, part.x, part.width) for part in parts] == [
        ("keyword", 0.0, 300.0),
        ("vector", 300.0, 100.0),
        ("exact", 400.0, 100.0),
    ]


def test_what_is_taken_off_lies_over_the_end_of_the_bar() -> None:
    """A poor quality takes away from the score; a share of nothing is not drawn."""
    why = [Contribution("quality", 1, 0.5, 0.5, -1.0, "quality"), Contribution("vector", 1, 0.9, 1.0, 4.0, "vector")]
    parts = charts.bar([*why, Contribution("words", 9, 0.1, 0.0, 0.0, "keyword")], full=4.0)
    assert [(part.label, part.x, part.width, part.taken) for part in parts] == [
        ("meaning #1", 0.0, 1000.0, False),
        ("quality 0.50", 750.0, 250.0, True),
    ]
    assert charts.given(Why(why)) == 4.0


def test_a_small_share_shows() -> None:
    """It is drawn wide enough to be seen."""
    assert charts.bar([Contribution("vector", 9, 0.1, 0.0, 1e-9, "vector")], full=1.0)[0].width == charts.LEAST


def test_bars_of_nothing_can_be_drawn() -> None:
    """Where every lane gave 0, as to the last hit of a min-max fusion."""
    assert charts.bar([Contribution("vector", 1, 0.2, 0.0, 0.0, "vector")], full=0.0) == []
    assert charts.fullest(()) == 0.0


def test_a_drawing_holds_everything_once() -> None:
    """A memory that two others lead to is one circle with two lines; a link that is met from both ends is one line."""
    beyond = {"a": [neighbor("me"), neighbor("b"), neighbor("far")], "b": [neighbor("a"), neighbor("far")]}
    drawing = graph.draw(memory("me"), [neighbor("a", 1.0), neighbor("b")], beyond)
    assert [(node.memory.id, node.ring, node.number) for node in drawing.nodes] == [
        ("me", 0, 0),
        ("a", 1, 1),
        ("b", 1, 2),
        ("far", 2, 3),
    ]
    ends = [(line.start.memory.id, line.end.memory.id) for line in drawing.lines]
    assert ends == [("me", "a"), ("me", "b"), ("a", "b"), ("a", "far"), ("b", "far")]
    assert drawing.lines[0].stroke > drawing.lines[1].stroke


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_a_drawing_stays_in_its_frame(count: int) -> None:
    """Every circle is whole, and no two are in the same place."""
    around = [neighbor(f"a{at}") for at in range(count)]
    beyond = {one.memory.id: [neighbor(f"{one.memory.id}-{far}") for far in range(3)] for one in around}
    nodes = graph.draw(memory("me"), around, beyond).nodes
    assert len({(node.x, node.y) for node in nodes}) == len(nodes) == 1 + 4 * count
    for node in nodes:
        assert node.radius <= node.x <= graph.WIDTH - node.radius
        assert node.radius <= node.y <= graph.HEIGHT - node.radius


def test_a_memory_alone_is_one_circle() -> None:
    """Without lines."""
    drawing = graph.draw(memory("me"), [], {})
    assert (len(drawing.nodes), drawing.lines) == (1, ())


@pytest.mark.parametrize(
    ("stage", "passed"),
    [
        ("not stored", [False, None, None, None, None]),
        ("superseded", [True, False, None, None, None]),
        ("not a candidate", [True, True, False, None, None]),
        ("near-copy", [True, True, True, False, None]),
        ("found", [True] * 5),
    ],
)
def test_the_way_of_an_expected_memory(stage: str, passed: list[bool | None]) -> None:
    """It passed what is before the stage at which it was lost, and never came to what is after it."""
    way = stages(Expectation("a", stage, "because"))  # type: ignore[arg-type]
    assert [one.name for one in way] == list(STAGES)
    assert [one.passed for one in way] == passed


@pytest.mark.parametrize(
    ("path", "gone_to"),
    [
        ("/memories?space=a", "/memories?space=a"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("", "/"),
    ],
)
def test_nobody_is_sent_elsewhere(path: str, gone_to: str) -> None:
    """Where a form says to go back to is a path of this server, or the first page."""
    assert local(path) == gone_to


def test_words() -> None:
    """Labels are short and on one line, links keep what was asked, marks are pieces of the text, shares are percent."""
    assert label(memory("a", "one\n two", "Title")) == "Title: one two"
    assert label(memory("a", "x" * 50), 10) == "xxxxxxxxx…"
    assert link("/", space="a b&c", q=None) == "/?space=a+b%26c"
    assert marked(Snippet("<b>", ((0, 1), (1, 3)))) == [("<", True), ("b>", True)]
    assert (share(1, 8), share(0, 0)) == ("12.5%", "0%")
