"""How the demo looks on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from recollect.servers.cli.render import QUIET, beside, count, degraded, hit_grid, marked, reason, visible
from recollect.servers.why import look
from recollect.types import LEGS, Hit, Recall, SpaceStats

if TYPE_CHECKING:
    from recollect.engine.transfer import Imported
    from recollect.servers.cli.demo import Question

ACCENT = "bold cyan"


def opening(url: str, held: SpaceStats, imported: Imported) -> RenderableType:
    """What was loaded, and where to."""
    loaded = f"{count(held.memories, 'memory', 'memories')} of a small coffee roastery in the Alps"
    news = f"{imported.created} new" if imported.created else "all there from an earlier run"
    return Group(
        "",
        Text.assemble(("recollect demo", ACCENT), f"  {loaded}, ", (news, QUIET)),
        Text(visible(url), style=QUIET, overflow="fold"),
        "",
        legend(),
        "",
    )


def legend() -> Text:
    """How to read the line under each hit."""
    legs = Text(", ").join(Text(look(leg).word, look(leg).colour) for leg in LEGS)
    return Text.assemble("Under each hit, what found it (", legs, "), with its rank there and its share of the score.")


def answer(number: int, total: int, question: Question, recall: Recall) -> RenderableType:
    """One question with its best hits, why they are there, and what to notice."""
    asked = Text.assemble((f'"{question.text}"', "bold"), (f"  {question.flags}", QUIET))
    return Group(
        Rule(Text.assemble((question.shows, ACCENT), (f"  {number}/{total}", QUIET)), align="left", style=QUIET),
        Padding(asked, (0, 0, 1, 0)),
        *degraded(recall),
        hits(recall),
        Text.assemble(("Notice: ", "bold"), (question.notice, "italic")),
        "",
    )


def hits(recall: Recall) -> RenderableType:
    """The hits: the best one in full, the others quieter."""
    rows = []
    for rank, hit in enumerate(recall.hits, 1):
        style = "bold" if rank == 1 else QUIET
        body = Group(*hit_lines(hit, with_neighbours=rank == 1), reason(hit.why), Text())
        rows.append((Text(str(rank), style=style), Text(f"{hit.score:.3f}", style=style), body))
    return hit_grid(rows)


def hit_lines(hit: Hit, *, with_neighbours: bool) -> Iterable[Text]:
    """The snippet; for the best hit between its thread neighbours."""
    if with_neighbours:
        yield from (beside(memory) for memory in hit.before)
    yield marked(hit.snippet)
    if with_neighbours:
        yield from (beside(memory) for memory in hit.after)


def closing(url: str, space: str) -> RenderableType:
    """What to type next."""
    where = f"--store {quote(visible(url))}" + ("" if space == "default" else f" --space {quote(visible(space))}")
    commands = (
        ("ask something yourself", f'recollect recall "what if the chaff catches fire?" {where}'),
        ("see every lane's share", f'recollect recall "is invoice 12346 paid?" --explain {where}'),
        ("add a memory", f'recollect remember "Lena is on holiday in August" --tag people {where}'),
        ("start your own", 'recollect remember "..." && recollect recall "..."'),
    )
    lines = [Text.assemble((f"  # {what}\n", QUIET), f"  {command}") for what, command in commands]
    return Group(Rule(Text("What to type next", style=ACCENT), align="left", style=QUIET), *lines, "")
