"""`recollect demo`: the first thing a newcomer sees must be right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from recollect import Recollect
from recollect.servers.cli.demo import QUESTIONS, Answered, ask, demo_url, memory_lines
from tests.servers.cli_runner import Cli


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Answered]]:
    """The demo's questions, asked of the real model."""
    with Recollect(f"sqlite:///{tmp_path_factory.mktemp('demo') / 'demo.db'}", embedder="local") as r:
        space = r.space("default")
        assert not space.import_lines(memory_lines()).broken
        space.settle()
        yield list(ask(space))


def lanes(answer: Answered) -> dict[str, int]:
    """The best hit's rank in each lane that found it."""
    return {part.lane: part.rank for part in answer.recall.hits[0].why}


@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=[q.shows for q in QUESTIONS])
def test_every_answer_is_right(answers: list[Answered], number: int) -> None:
    """The memory that answers the question is the first hit, and no lane failed."""
    question, recall = answers[number]
    assert recall.hits[0].memory.id == question.answer
    assert not recall.degraded


def test_what_the_notices_say_is_true(answers: list[Answered]) -> None:
    """Each leg really does what the demo says it does."""
    found = {answer.question.shows: answer for answer in answers}
    assert "keyword" not in lanes(found["Meaning"])
    assert lanes(found["Exact words"])["keyword"] == 1 < lanes(found["Exact words"])["vector"]
    assert lanes(found["Agreement"])["keyword"] == lanes(found["Agreement"])["vector"] == 1
    assert lanes(found["Italian"])["keyword"] == lanes(found["German"])["keyword"] == 1
    assert lanes(found["Links"])["graph"] == 1
    assert found["Links"].recall.hits[0].why[0].raw == 1.0
    assert all(hit.memory.id != "beans-before" for hit in found["Correction"].recall)
    turn = found["Conversation"].recall.hits[0]
    assert len(turn.before) == len(turn.after) == 2
    assert "Milan" not in turn.memory.text


def test_the_memories_are_what_the_demo_promises() -> None:
    """Some 60 memories of several kinds, with threads, links and a superseded fact; every id is used once."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in memory_lines()]
    memories = [line for line in lines if "text" in line]
    assert len(memories) == len({m["id"] for m in memories}) == 60
    assert {"identity", "episodic", "message", "chunk", "knowledge"} <= {m.get("kind") for m in memories}
    assert sum("superseded_by" in m for m in memories) == 1
    assert len(lines) - len(memories) >= 5


def test_the_demo_store_is_its_own(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --store the demo leaves the default store alone; a second run makes no copies."""
    monkeypatch.setenv("XDG_DATA_HOME", cli.environment["XDG_DATA_HOME"])
    first = cli.json("demo")
    assert first["store"] == demo_url()
    assert (cli.folder / "share" / "recollect" / "demo.db").exists()
    assert cli.json("spaces") == []
    assert (first["imported"]["created"], first["imported"]["broken"]) == (60, [])
    again = cli.json("demo")
    assert (again["imported"]["created"], again["memories"]) == (0, 60)
    assert len(again["questions"]) == 8


def test_the_demo_reads_well(cli: Cli) -> None:
    """Eight questions with answers and notices, within 100 columns, and at the end commands that work."""
    shown = cli("demo", "--store", cli.url).stdout
    for question in QUESTIONS:
        assert f'"{question.text}"' in shown
        assert question.notice in shown
    body, ending = shown.split("What to type next")
    assert max(map(len, body.splitlines())) <= 100
    commands = [line.strip() for line in ending.splitlines() if line.startswith("  recollect ")]
    assert commands
    assert all(f"--store {cli.url}" in command for command in commands[:-1])
