"""What a guest is told does not depend on what it may not see: the same answer, to the last digit, whatever the other
namespaces of a space hold.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import AsyncRecollect, AsyncSpace
from recollect.servers.documents import json_ready

QUESTIONS = (
    "when was invoice 12345 paid?",
    '"green umbrella" of the office',
    "umbrella ERR_CONN_REFUSED invoice paid green office kite",
    "who has locker AB-9981?",
    "something else entirely",
)
NOTES = (
    "The green umbrella is in the office",
    "Invoice 12345 was paid on 3 May",
    "Invoice 12346 was paid late, and the umbrella got wet",
    "ERR_CONN_REFUSED when the office printer is off",
    "A kite, a long text about a kite, which goes on and on and has no end in sight, not even at the office",
    "The office is closed in May",
)
SECRETS = (
    "Invoice 12345 was paid twice, and invoice 12345 is secret",
    "The green umbrella is in the office safe",
    "The office, the umbrella and the kite are paid",
    "ERR_CONN_REFUSED means that the invoice was refused",
    "Locker AB-9981 is empty",
    "something else",
)
RECIPES = ("balanced", "polyant", "sci", "pgmemory", "drobek", "novamem")
KINDS = ("fact", "message", "semantic", "knowledge")
HIDDEN = 48


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    return f"postgresql://?{urlencode(conninfo_to_dict(request.getfixturevalue('pg_database')))}"


@pytest.fixture
async def opened(place: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncRecollect]:
    """A memory whose searches drop common words, and take what many hold for a topic, as those of a large space do."""
    for name, value in {"BUDGET": 6, "WIDE_BUDGET": 12, "MOST_HOLDERS": 6, "FEW": 4, "PHRASE_BUDGET": 6}.items():
        monkeypatch.setattr(f"recollect.stores.bm25.{name}", value)
        if name.endswith("BUDGET") and name != "PHRASE_BUDGET":
            monkeypatch.setattr(f"recollect.stores.sqlite.word_scores.{name}", value)
    async with AsyncRecollect(place, embedder="hashing") as recollect:
        yield recollect


async def hide(space: AsyncSpace) -> None:
    """Many memories that a guest may not see: with the same words, nearer to the questions, in the same threads."""
    for number in range(HIDDEN):
        text, kind = SECRETS[number % len(SECRETS)], KINDS[number % len(KINDS)]
        await space.remember(f"{text} {number}", namespace="secret", thread=kind, kind=kind)


async def note(space: AsyncSpace) -> None:
    """What a guest may see, in threads and linked."""
    for number, text in enumerate(NOTES):
        for kind in KINDS:
            id = f"{kind}-{number}"
            await space.remember(text, id=id, namespace="notes", kind=kind, thread=kind if number % 2 else None)
    await space.remember("Locker AB-9981 is Ada's", id="locker", namespace="notes")
    await space.link("fact-0", "fact-1", "beside", 0.5)
    await space.link("message-2", "fact-2", "beside", 0.25)


async def answers(space: AsyncSpace, owner: AsyncSpace) -> list[str]:
    """All that a guest is told, but for how long it took and when it was stored."""
    await owner.grant("notes", to=space.name)
    await space.accept(owner.name, "notes")
    await owner.settle()
    notes = space.shared(owner.name, "notes")
    told = []
    for question in QUESTIONS:
        for recipe in RECIPES:
            for answer in (
                await space.recall(question, recipe=recipe, window=1),
                await notes.recall(question, recipe=recipe, limit=3),
            ):
                assert not answer.degraded
                assert answer.hits or question.startswith("something") or recipe != "balanced"
                told.append(json.dumps(timeless(json_ready(answer))))
    told += [json.dumps(timeless(json_ready(await notes.neighbors(f"fact-{n}")))) for n in range(len(NOTES))]
    return [one.replace(owner.name, "OWNER") for one in told]


def timeless(document: Any) -> Any:
    if isinstance(document, dict):
        times = ("took", "ms", "created_at", "updated_at")
        return {name: timeless(value) for name, value in document.items() if name not in times}
    return [timeless(one) for one in document] if isinstance(document, list) else document


async def test_what_is_hidden_does_not_show(opened: AsyncRecollect) -> None:
    """Scores, reasons, reports, candidates, order and links are those of a space that holds nothing else: with the
    hidden memories stored before the others, after them, or not at all.
    """
    told = []
    for number, steps in enumerate(((note,), (hide, note), (note, hide))):
        owner = opened.space(f"owner-{number}")
        for step in steps:
            await step(owner)
        told.append(await answers(opened.space(f"guest-{number}"), owner))
    alone, before, after = told
    for one, two, three in zip(alone, before, after, strict=True):
        assert one == two
        assert one == three


async def test_a_score_follows_what_is_seen(opened: AsyncRecollect) -> None:
    """A word that is rare in the granted namespace counts much, however common it is elsewhere; and what is granted
    counts, whoever asks.
    """
    owner, guest = opened.space("owner"), opened.space("guest")
    await note(owner)
    await hide(owner)
    await owner.grant("notes", to="guest")
    await guest.accept("owner", "notes")
    own = await owner.recall("umbrella", namespaces=["notes"], weights={"vector": 0, "graph": 0})
    seen = await guest.recall("umbrella", weights={"vector": 0, "graph": 0})
    assert {hit.memory.id for hit in own} == {hit.memory.id for hit in seen}
    assert seen[0].why[0].raw != own[0].why[0].raw
