"""How memories and answers look on a terminal. All text from outside passes `visible` on its way here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recollect.recipes import RECIPES
from recollect.servers.why import DOUBT, by_share, fate, is_noise, label, look, origin
from recollect.types import (
    Expectation,
    Hit,
    LaneReport,
    Memory,
    Migration,
    Neighbor,
    Page,
    Recall,
    Remembered,
    Snippet,
    Why,
)

if TYPE_CHECKING:
    from recollect.engine.copying import Copied, IdSample
    from recollect.engine.doctor import Diagnosis
    from recollect.engine.transfer import Imported

MARK = "bold yellow"
QUIET = "dim"
WARNING = "yellow"
SNIPPET = 240
"""Characters of a text that are shown beside others."""

_CONTROL = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_INVISIBLE = (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
_VISIBLE = {**_CONTROL, 0x7F: 0x2421} | dict.fromkeys((*range(0x80, 0xA0), *_INVISIBLE, *range(0xD800, 0xE000)), 0xFFFD)


def visible(text: str) -> str:
    """The text without what a terminal would obey: each control character becomes one sign that can be seen.

    Character for character, so that positions in the text still hold.
    """
    return text.translate(_VISIBLE)


def one_line(text: str) -> str:
    """The same on one line, character for character."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def count(number: int, one: str, many: str = "") -> str:
    """`1 memory`, `1,200 memories`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def marked(snippet: Snippet) -> Text:
    """A snippet on one line, its matches highlighted."""
    text = Text(one_line(snippet.text))
    for start, end in snippet.marks:
        text.stylize(MARK, start, end)
    return text


def reason(why: Why) -> Text:
    """Why a hit is there, in a phrase: each part with its share, in the colour of its kind."""
    return Text("  ").join(
        Text.assemble((one_line(label(part)), look(part.kind).colour), (f" {part.contribution:+.3f}", QUIET))
        for part in by_share(why)
    )


def memory_line(memory: Memory, space: str | None = None) -> Text:
    """What a memory is, in one quiet line: whose it is where it is not of this space, kind, tags, source, thread."""
    parts = [] if space in (None, memory.space) else [f"shared by {memory.space} / {memory.namespace}"]
    parts += [memory.kind, *(f"#{tag}" for tag in memory.tags)]
    parts += [part for part in (memory.source, f"in {memory.thread}" if memory.thread else "") if part]
    if memory.superseded_by:
        parts.append(f"superseded by {memory.superseded_by}")
    return Text(one_line("  ".join(parts)), style=QUIET, overflow="ellipsis", no_wrap=True)


def recall(answer: Recall, *, space: str | None = None, explain: bool = False) -> RenderableType:
    """An answer to a space: what is missing from it, its hits, where the expected memory went, how the lanes fared."""
    parts: list[RenderableType] = list(degraded(answer))
    parts += sureness(answer)
    hits = telling(answer.hits)
    parts += [hit_block(rank, hit, space=space, explain=explain) for rank, hit in enumerate(hits, 1)]
    if answer.truncated:
        parts.append(Text(f"truncated: {answer.truncated}", style=WARNING))
    if answer.expected:
        parts.append(expectation(answer.expected))
    if explain:
        parts.append(lane_table(answer.lanes))
    rest = len(answer.hits) - len(hits)
    left_out = f"; {rest:,} more with a score of 0.00 left out, which --json shows" if rest else ""
    parts.append(Text(f"{count(len(hits), 'hit')} by {answer.recipe} in {answer.took:.0f} ms{left_out}", style=QUIET))
    return Group(*parts)


def telling(hits: Sequence[Hit]) -> Sequence[Hit]:
    """The hits, without those at the end that score next to nothing; the best one stays."""
    last = next((rank for rank in range(len(hits), 1, -1) if round(hits[rank - 1].score, 2)), 1)
    return hits[:last]


def sureness(answer: Recall) -> Iterable[RenderableType]:
    """That nothing was found, or only noise; where nothing is sure enough, what came nearest."""
    if answer.nearest_miss:
        yield Text("nothing relevant is remembered; the nearest miss:\n", style=WARNING)
        yield hit_block(1, answer.nearest_miss)
    elif not answer.hits:
        yield Text(one_line(f"nothing found{only_kinds(answer.recipe)}"))
    elif is_noise(answer):
        yield Text(f"{DOUBT}\n", style=WARNING)


def only_kinds(recipe: str) -> str:
    """What a recipe is for, where that is not every memory."""
    kinds = [lane.kinds for lane in RECIPES[recipe].lanes] if recipe in RECIPES else [()]
    named = ", ".join(dict.fromkeys(kind for some in kinds for kind in some))
    return f": {recipe} searches memories of kind {named} only" if all(kinds) else ""


def degraded(answer: Recall) -> Iterable[Text]:
    """One warning for each lane that did not answer, or not with everything."""
    for report in answer.lanes:
        if report.incomplete:
            status = "answered in part" if report.status == "ok" else report.status
            yield Text(one_line(f"degraded: lane {report.lane} {status}: {report.reason}"), style=WARNING)


def hit_block(rank: int, hit: Hit, *, space: str | None = None, explain: bool = False) -> RenderableType:
    """Rank and score on the left; on the right the snippet between its neighbours, what it is, and why."""
    body: list[RenderableType] = [beside(memory) for memory in hit.before]
    if hit.memory.title:
        body.append(Text(one_line(hit.memory.title), style="bold"))
    body.append(marked(hit.snippet))
    body += [beside(memory) for memory in hit.after]
    body.append(contribution_table(hit.why) if explain else reason(hit.why))
    sure = Text(f"confidence {hit.confidence:.2f}  ", style=QUIET, overflow="ellipsis", no_wrap=True)
    body += [sure.append_text(memory_line(hit.memory, space)), Text(visible(hit.memory.id), style=QUIET), Text()]
    return hit_grid([(Text(str(rank), style="bold"), Text(f"{hit.score:.4f}"), Group(*body))])


def hit_grid(rows: Iterable[tuple[Text, Text, RenderableType]]) -> Table:
    """Rank, score and body, aligned from hit to hit."""
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(justify="right", width=3)
    grid.add_column(width=6)
    grid.add_column(ratio=1)
    for row in rows:
        grid.add_row(*row)
    return grid


def beside(memory: Memory) -> Text:
    """A neighbour of a hit in its thread, on one line."""
    return Text(f"| {one_line(memory.text)}", style=QUIET, overflow="ellipsis", no_wrap=True)


def contribution_table(why: Why) -> Table:
    """`--explain` for one hit: what each lane and each adjustment gave."""
    table = plain_table("from", ">rank", ">raw", ">normalised", ">contribution")
    for part in why:
        table.add_row(
            Text(one_line(origin(part)), style=look(part.kind).colour),
            str(part.rank),
            f"{part.raw:.4f}",
            f"{part.normalised:.4f}",
            f"{part.contribution:.4f}",
        )
    return table


def lane_table(lanes: Sequence[LaneReport]) -> Table:
    """`--explain` for an answer: how each lane fared."""
    table = plain_table("lane", "status", ">ms", ">candidates", "reason")
    for report in lanes:
        table.add_row(
            Text(one_line(report.lane), style=look(report.leg).colour),
            Text(report.status, style="" if report.status == "ok" else WARNING),
            f"{report.ms:.1f}",
            f"{report.candidates:,}",
            one_line(report.reason),
        )
    return table


def expectation(expected: Expectation) -> RenderableType:
    """Where an expected memory got to."""
    line = Text.assemble(("expected ", "bold"), (visible(expected.id), QUIET), f": {one_line(fate(expected))}")
    return Padding(Group(line, reason(expected.why)) if expected.why else line, (0, 0, 1, 0))


def memory_sheet(memory: Memory) -> RenderableType:
    """Everything about one memory: its text, then its fields that hold something."""
    fields: dict[str, object] = {
        "id": memory.id,
        "space": f"{memory.space} / {memory.namespace}",
        "kind": memory.kind,
        "tags": " ".join(memory.tags),
        "source": memory.source,
        "thread": f"{memory.thread} at {memory.place}" if memory.thread else "",
        "metadata": json.dumps(dict(memory.metadata), ensure_ascii=False) if memory.metadata else "",
        "created": moment(memory.created_at),
        "updated": moment(memory.updated_at) if memory.updated_at != memory.created_at else "",
        "occurred": moment(memory.occurred_at),
        "expires": moment(memory.expires_at),
        "superseded": f"by {memory.superseded_by}" if memory.superseded_by else "",
        "quality": "" if memory.quality is None else f"{memory.quality:g}",
        "recalled": count(memory.hits, "time") + (f", last {moment(memory.last_hit_at)}" if memory.last_hit_at else ""),
        "of use": count(memory.used, "time") + (f", last {moment(memory.last_used_at)}" if memory.last_used_at else ""),
        "embedding": memory.embedding,
    }
    head = [Text(one_line(memory.title), style="bold")] if memory.title else []
    return Group(*head, Text(visible(memory.text)), "", sheet(fields))


def remembered(outcome: Remembered) -> RenderableType:
    """What became of a text: where it is now, and whether it was there before."""
    words = "remembered as" if outcome.created else "already there as"
    return Text.assemble(f"{words} ", (visible(outcome.memory.id), "bold"), *pending_note(outcome.memory))


def pending_note(memory: Memory) -> Iterable[tuple[str, str]]:
    if memory.embedding != "ready":
        yield (f"  (embedding {memory.embedding}: found by its words until it has a vector)", WARNING)


def sheet(fields: Mapping[str, object]) -> Table:
    """Names and values, those that hold something."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=QUIET)
    grid.add_column(ratio=1)
    for name, value in fields.items():
        if value != "":
            grid.add_row(Text(one_line(name)), Text(visible(str(value))))
    return grid


def moment(time: datetime | None) -> str:
    return "" if time is None else time.strftime("%Y-%m-%d %H:%M:%S %Z").strip()


def page(listed: Page) -> RenderableType:
    """One line for each memory."""
    if not listed.memories:
        return Text("no memories")
    table = listing("id", "when", "kind", "text")
    for memory in listed.memories:
        when = f"{memory.occurred_at or memory.created_at:%Y-%m-%d}"
        table.add_row(Text(visible(memory.id), style=QUIET), when, one_line(memory.kind), summary(memory))
    return Group(table, Text(f"truncated: {listed.truncated}", style=WARNING)) if listed.truncated else table


def history(versions: Sequence[Memory]) -> RenderableType:
    """One line for each version, and which of them holds now."""
    table = listing("id", "created", "", "text")
    for memory in versions:
        state = Text("superseded", style=QUIET) if memory.superseded_by else Text("holds now", style="green")
        table.add_row(Text(visible(memory.id), style=QUIET), f"{memory.created_at:%Y-%m-%d}", state, summary(memory))
    return table


def listing(*columns: str) -> Table:
    """A table with one line for each row; the last column takes the room that there is."""
    table = plain_table(*columns)
    table.expand = True
    for column in table.columns:
        column.no_wrap = True
    table.columns[-1].ratio = 1
    return table


def summary(memory: Memory) -> Text:
    """What a memory says, on one line, struck through if that no longer holds."""
    shown = f"{memory.title}: {memory.text}" if memory.title else memory.text
    return Text(one_line(shown), style="strike" if memory.superseded_by else "")


def shortened(text: str) -> str:
    return text if len(text) <= SNIPPET else f"{text[:SNIPPET]}…"


def neighbors(found: Sequence[Neighbor]) -> RenderableType:
    if not found:
        return Text("no linked memories")
    table = plain_table(">strength", ">steps", "relation", "memory")
    for near in found:
        body = Group(Text(one_line(shortened(near.memory.text))), Text(visible(near.memory.id), style=QUIET))
        table.add_row(f"{near.strength:.3f}", str(near.steps), one_line(near.relation), body)
    return table


def diagnosis(found: Diagnosis) -> RenderableType:
    """Each check with its verdict."""
    grid = Table.grid(padding=(0, 2))
    for check in found.checks:
        verdict = Text("ok", style="green") if check.ok else Text("FAILED", style="bold red")
        grid.add_row(verdict, Text(one_line(check.name), style="bold"), Text(visible(check.detail)))
    return grid


def sync(indexes: Mapping[str, Mapping[str, Any]]) -> RenderableType:
    """Each external index: how many changes it got, and how many are left."""
    if not indexes:
        return Text("there is no external index: the store answers every leg itself")
    return Text(
        "\n".join(
            f"{name}: {count(one['told'], 'change')} sent, {one['waiting']:,} left" for name, one in indexes.items()
        )
    )


def migration(outcome: Migration, *, dry_run: bool) -> RenderableType:
    """The steps, and what is left to others."""
    lines = [f"{'to do' if dry_run else 'done'}: {visible(step)}" for step in outcome.steps]
    lines = lines or ["the store is up to date"]
    return Text("\n".join([*lines, *(f"left to you: {visible(word)}" for word in outcome.advice)]))


def imported(outcome: Imported) -> RenderableType:
    parts = [f"read {count(outcome.read, 'line')}", f"{outcome.created:,} new", f"{outcome.copies:,} already there"]
    parts.append(count(outcome.links, "link"))
    if outcome.broken_count:
        parts.append(f"{outcome.broken_count:,} broken")
    if outcome.dangling_count:
        parts.append(f"{outcome.dangling_count:,} dangling")
    return Text(", ".join(parts))


def copied(outcome: Copied) -> RenderableType:
    """What each space holds now, and whether both stores hold the same."""
    table = plain_table("space", ">memories", ">new", ">vectors", ">links", "")
    for space in outcome.spaces:
        held = space.target
        verdict = Text("the same", style="green") if space.verified else Text("DIFFERENT", style="bold red")
        numbers = (f"{number:,}" for number in (held.memories, space.new, held.vectors, held.links))
        table.add_row(one_line(space.space), *numbers, verdict)
    rounded = sum(space.rounded for space in outcome.spaces)
    notes = [Text(f"{count(rounded, 'vector')} rounded to half precision", style=QUIET)] if rounded else []
    return Group(table, *notes) if outcome.spaces else Text("nothing to copy")


def copy_differences(outcome: Copied) -> RenderableType:
    """What is not the same in both stores, space by space, with the first ids, and what to do."""
    lines = []
    for space in outcome.spaces:
        kinds = {"missing in TO": space.missing, "only in TO": space.extra, "different": space.different}
        lines += [f"space {space.space}: {some_ids(some)} {kind}" for kind, some in kinds.items() if some.count]
        lines += [f"space {space.space}: {what} different" for what in space.beside]
    lines.append("something was written meanwhile, or TO held memories of its own: copy to a store that is new")
    return Text("\n".join(map(one_line, lines)), style=WARNING)


def some_ids(some: IdSample) -> str:
    """`2 memories (a, b)`, the first ids of many."""
    more = ", ..." if some.count > len(some.first) else ""
    return f"{count(some.count, 'memory', 'memories')} ({', '.join(some.first)}{more})"


def broken_lines(outcome: Imported, *, most: int) -> RenderableType:
    """The lines that could not be taken, by number."""
    reasons = {line.number: line.reason for line in outcome.broken}
    return numbered_lines(reasons, outcome.broken_count, most=most)


def dangling_lines(outcome: Imported, *, most: int) -> RenderableType:
    """The lines that were taken and will not be recalled, by number, and why."""
    reasons = {
        line.number: f"kept, but superseded by {line.superseded_by}, which is missing: only `--superseded` recalls it"
        for line in outcome.dangling
    }
    return numbered_lines(reasons, outcome.dangling_count, most=most)


def numbered_lines(reasons: Mapping[int, str], total: int, *, most: int) -> RenderableType:
    """A line for each of the first lines of a file that need one, and how many others there are."""
    shown = [f"line {number}: {one_line(reason)}" for number, reason in islice(reasons.items(), most)]
    if others := total - len(shown):
        named = "them all" if total == len(reasons) else f"the first {len(reasons):,}"
        shown.append(f"and {count(others, 'other')}; --json names {named}")
    return Text("\n".join(shown), style=WARNING)


def tally(counts: Mapping[str, int]) -> str:
    """`fact 30, message 12`, the largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {number:,}" for name, number in ordered)


def plain_table(*columns: str) -> Table:
    """A table without lines; a heading that starts with `>` has its numbers on the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=QUIET)
    for column in columns:
        if column.startswith(">"):
            table.add_column(column[1:], justify="right", no_wrap=True)
        else:
            table.add_column(column)
    return table
