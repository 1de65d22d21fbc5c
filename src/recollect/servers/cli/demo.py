"""`recollect demo`: a small roastery's memory, and eight questions that show what each way to search is good for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.servers.cli import options as opt
from recollect.servers.cli.options import open_store
from recollect.servers.cli.output import console, print_json

if TYPE_CHECKING:
    from recollect.sync import Space
    from recollect.types import Recall

HITS = 3


class Question(NamedTuple):
    """A question of the demo: what it shows, which memory answers it, and what to notice about the answer."""

    shows: str
    text: str
    answer: str
    notice: str
    options: Mapping[str, Any] = {}

    @property
    def flags(self) -> str:
        """The options as one would type them."""
        weights = [f"--weight {lane}={weight:g}" for lane, weight in self.options.get("weights", {}).items()]
        window = [f"--window {self.options['window']}"] if "window" in self.options else []
        return " ".join((*weights, *window))


QUESTIONS = (
    Question(
        "Meaning",
        "are we reimbursed if a flood ruins our goods?",
        "insurance",
        "Not one word is shared, only the meaning: this is what vectors are for.",
    ),
    Question(
        "Exact words",
        "has invoice 12344 been paid?",
        "invoice-12344",
        "By meaning another invoice would have won; the number, matched exactly, decides.",
    ),
    Question(
        "Agreement",
        "which customers get a discount?",
        "discount",
        "Two legs that know nothing of each other put it first: the surest kind of answer.",
    ),
    Question(
        "Italian",
        "quando scadono gli affitti dei magazzini?",
        "affitto",
        "The question is in the plural, the memory is not: Italian words get Italian stems.",
    ),
    Question(
        "German",
        "Wann werden die Hütten beliefert?",
        "seilbahn",
        "The same in German, in the same space: nobody has to say which language it is.",
    ),
    Question(
        "Conversation",
        "who minds the counter on the Milan days?",
        "milan-3",
        "The turn does not say Milan; it is found, and understood, by what stands beside it.",
        {"window": 2},
    ),
    Question(
        "Links",
        "why could nobody buy anything on 14 May?",
        "fuse",
        "Words and meaning are switched off: from the outage a link leads to its cause.",
        {"weights": {"vector": 0.0, "keyword": 0.0}},
    ),
    Question(
        "Correction",
        "where do our green beans come from?",
        "beans-now",
        "The importer in Hamburg is still stored, but superseded: the correction wins.",
    ),
)


class Answered(NamedTuple):
    """A question of the demo, asked."""

    question: Question
    recall: Recall


def demo_url() -> str:
    """The demo's own store, beside the default one: your memories and the demo's never mix."""
    from recollect.settings import default_url

    return default_url("demo.db")


def memory_lines() -> list[str]:
    """The demo's memories and links, as `recollect import` reads them."""
    return files(__package__).joinpath("demo_memories.jsonl").read_text(encoding="utf-8").splitlines()


def ask(space: Space) -> Iterator[Answered]:
    """All questions of the demo, one by one."""
    for question in QUESTIONS:
        yield Answered(question, space.recall(question.text, limit=HITS, **question.options))


def demo(
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.DemoStore = None,
    as_json: opt.Json = False,
) -> None:
    """Load a small memory, ask it eight questions, and see what each way to search is good for."""
    from recollect.servers.cli import render_demo
    from recollect.settings import without_password

    url = store or demo_url()
    shown = without_password(url)
    with open_store(url, embedder, create=True) as r:
        here = r.space(space)
        imported = here.import_lines(memory_lines())
        here.settle()
        held = here.stats()
        if as_json:
            print_json({"store": shown, "imported": imported, "memories": held.memories, "questions": list(ask(here))})
            return
        out = console()
        out.print(render_demo.opening(shown, held, imported))
        for number, answered in enumerate(ask(here), 1):
            out.print(render_demo.answer(number, len(QUESTIONS), *answered))
    out.print(render_demo.closing(shown, space), soft_wrap=True)
