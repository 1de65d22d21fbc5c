"""`stats` and `score`: how a space is used, as a chart and as JSON, and what its memories are worth by that."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

from rich.console import Console

from recollect.engine.quality import Rated
from recollect.servers.cli import render_stats
from recollect.types import Bucket, LegUsage, SpaceUsage, Usage
from tests.servers.cli_runner import Cli

NOW = datetime(2026, 5, 8, 12, 30, tzinfo=UTC)
WEEK_AGO = datetime(2026, 5, 1, 12, tzinfo=UTC)


def hour(ago: int, recalls: int, vector: int, keyword: int = 0) -> Bucket:
    legs = {"vector": LegUsage(vector, recalls, 2.0 * recalls), "keyword": LegUsage(keyword, recalls, ms=recalls)}
    return Bucket(NOW.replace(minute=0) - timedelta(hours=ago), Usage(recalls, legs=legs))


def used(*buckets: Bucket) -> SpaceUsage:
    return SpaceUsage("work", WEEK_AGO, sum((bucket.usage for bucket in buckets), Usage()), buckets)


def drawn(usage: SpaceUsage, encoding: str = "utf-8") -> str:
    """What a terminal without colours shows."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=stream, width=100, no_color=True).print(render_stats.usage(usage, NOW))
    stream.seek(0)
    return stream.read()


def test_stats_shows_how_a_space_was_used(cli: Cli) -> None:
    """What it holds, then recalls and the hits of each leg."""
    cli.remember("The red door")
    cli("recall", "door")
    shown = cli("stats").stdout
    assert "memories" in shown
    assert "1 recall since" in shown
    rows = {line.split()[0]: line.split()[1] for line in shown.splitlines() if line.strip()}
    assert (rows["vector"], rows["keyword"], rows["graph"]) == ("1", "1", "0")
    assert "█" in shown


def test_stats_as_json_has_the_buckets(cli: Cli) -> None:
    """Beside what the space holds: the total and every hour, each with its legs."""
    cli.remember("The red door")
    cli("recall", "door", "--weight", "vector=0", "--weight", "graph=0")
    document = cli.json("stats", "--since", "24h")
    assert document["memories"] == 1
    usage = document["usage"]
    assert usage["total"]["recalls"] == 1
    assert usage["total"]["legs"]["keyword"]["hits"] == 1
    (bucket,) = usage["buckets"]
    assert bucket["usage"] == usage["total"]
    assert datetime.fromisoformat(bucket["start"]) >= datetime.fromisoformat(usage["since"])


def test_stats_of_a_space_that_nobody_asked(cli: Cli) -> None:
    """No chart, and no error."""
    cli.remember("The red door")
    assert "no recalls since" in cli("stats").stdout
    assert cli.json("stats")["usage"]["buckets"] == []


def test_a_wrong_since_is_one_sentence(cli: Cli) -> None:
    """It says what would do."""
    cli.remember("The red door")
    result = cli("stats", "--since", "soon")
    assert result.exit_code == 2
    assert "'soon'" in result.stderr
    assert "7d" in result.stderr


def test_score_says_how_many_have_another_quality(cli: Cli) -> None:
    """The first time all, the second time none."""
    id = cli.remember("The red door")
    assert cli("score").stdout == "scored 1 memory, 1 of them anew\n"
    assert cli.json("score") == {"memories": 1, "changed": 0}
    assert cli.json("get", id)["quality"] == 0.5


def test_used_says_for_how_many_it_was_noted(cli: Cli) -> None:
    """`get` shows it; an unknown id is one sentence, and exit code 1."""
    id = cli.remember("The red door")
    assert cli("used", id).stdout == "noted for 1 memory\n"
    assert cli.json("used", id, "--query", "which door?") == {"used": 1}
    assert cli.json("get", id)["used"] == 2
    assert "of use" in cli("get", id).stdout
    missing = cli("used", id, "nothing")
    assert missing.exit_code == 1
    assert "1 of the 2 ids given had no memory in space 'default'" in missing.stderr


def test_recall_can_weigh_by_quality(cli: Cli) -> None:
    """`--quality-weight` reaches the library, and why says what it did."""
    id = cli.remember("The red door")
    cli("update", id, "--quality", "0.5")
    parts = cli.json("recall", "door", "--quality-weight", "0.5")["hits"][0]["why"]
    assert [part["normalised"] for part in parts if part["lane"] == "quality"] == [0.75]
    assert "quality 0.50 -0." in cli("recall", "door", "--quality-weight", "0.5").stdout


def test_the_chart_needs_no_colour() -> None:
    """Heights are signs; legs are named; numbers stand beside; the highest column of all legs is full."""
    shown = drawn(used(hour(10, 2, 8, 1), hour(0, 1, 2, 4)))
    lines = {line.split()[0]: line for line in shown.splitlines()}
    assert lines["vector"].split()[1:] == ["10", "█", "▂", "2.0"]
    assert lines["keyword"].split()[1:] == ["5", "▁", "▄", "1.0"]
    assert lines["graph"].split()[1:] == ["0"]


def test_the_chart_is_drawn_on_a_terminal_of_old() -> None:
    """One that knows ASCII alone."""
    shown = drawn(used(hour(10, 2, 8, 1), hour(0, 1, 2, 4)), "ascii")
    lines = {line.split()[0]: line for line in shown.splitlines()}
    assert lines["vector"].split()[1:] == ["10", "@", ":", "2.0"]


def test_what_did_not_answer_is_said() -> None:
    """How many recalls were not whole, and which leg was the cause."""
    legs = {"vector": LegUsage(hits=0, searches=6, ms=9.0, late=1, failed=2, skipped=4)}
    start = NOW.replace(minute=0)
    shown = drawn(used(Bucket(start, Usage(recalls=10, degraded=7, failed=1, legs=legs))))
    assert "10 recalls since 2026-05-01 12:00:00 UTC, 7 degraded (70.0%), 1 failed (10.0%)" in shown
    assert "1 late, 2 failed, 4 skipped of 10" in shown


def test_rated_many() -> None:
    """Numbers are readable."""
    assert str(render_stats.rated(Rated(1200, 1001))) == "scored 1,200 memories, 1,001 of them anew"
