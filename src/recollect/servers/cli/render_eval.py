"""How an evaluation looks on a terminal: one table, and what can be said of the differences."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recollect.evaluation.metrics import percentile
from recollect.evaluation.results import Comparison, Result
from recollect.evaluation.sureness import Sureness
from recollect.servers.cli.render import QUIET, WARNING, count, one_line, plain_table

COLUMNS = {
    "nDCG@10": "ndcg@10",
    "MRR@10": "mrr@10",
    "any@10": "recall_any@10",
    "share@10": "recall_share@10",
    "all@10": "recall_all@10",
    "no hit": "no_hit",
}
"""Headings and the metrics under them; `--json` has the others."""


def report(results: Sequence[Result], compared: Sequence[Comparison]) -> RenderableType:
    warnings = [warning for result in results for warning in cautions(result)]
    sure = [line for result in results if result.sureness for line in sureness_lines(result, result.sureness)]
    return Group(results_table(results), *map(comparison_line, compared), *sure, *warnings)


def results_table(results: Sequence[Result]) -> Table:
    table = plain_table("set", "recipe", ">questions", *(f">{name}" for name in COLUMNS), ">p50 ms", ">p95 ms")
    for result in results:
        table.add_row(
            Text(one_line(result.dataset), style="bold"),
            one_line(result.recipe),
            f"{result.questions:,}",
            *(share(result.metrics.get(name)) for name in COLUMNS.values()),
            *(milliseconds(percentile(result.latency.recall, part)) for part in (0.50, 0.95)),
        )
    return table


def share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def comparison_line(comparison: Comparison) -> Text:
    """One recipe against the first, with the interval that the difference lies in."""
    interval = comparison.interval
    verdict = "certain" if interval.is_certain else "could be chance"
    return Text(
        one_line(
            f"{comparison.dataset}: {comparison.recipe} {interval.difference:+.3f} nDCG@10"
            f" against {comparison.baseline} (95 % within {interval.low:+.3f} and {interval.high:+.3f}: {verdict})"
        ),
        style="" if interval.is_certain else QUIET,
    )


def sureness_lines(result: Result, sure: Sureness) -> list[Text]:
    """Calibration, separation, and the reliability diagram: how sure the best hits were, and how often right."""
    found = sure.to_json()
    apart = found["auroc_off_topic"]
    off_topic = (
        f"from off-topic ones in {share(apart)}" if sure.off_topic else "off-topic questions need a second folder"
    )
    head = (
        f"{result.dataset}: confidence by {result.recipe} is off by {found['calibration_error']:.3f} on average;"
        f" it tells answers from answers removed in {share(found['auroc_removed'])} of pairs, {off_topic}"
    )
    rows = [
        f"  {one.low:.1f} to {one.high:.1f}  {one.predictions:>6,} sure {one.confidence:.2f}  right {one.right:.2f}  "
        + "#" * round(40 * one.right)
        for one in sure.diagram
    ]
    return [Text(one_line(head)), *(Text(row, style=QUIET) for row in rows)]


def cautions(result: Result) -> list[Text]:
    """What makes a result less than it seems."""
    said = []
    if result.degraded:
        lanes = "; ".join(f"{reason} ({times:,} times)" for reason, times in result.failures.items())
        said.append(f"{count(result.degraded, 'answer')} by {result.recipe} lacked a lane: {lanes}")
    if result.skipped:
        said.append(f"{count(result.skipped, 'document')} of {result.dataset} had no text and were left out")
    return [Text(one_line(line), style=WARNING) for line in said]
